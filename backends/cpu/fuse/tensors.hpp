// The tensors of one execution: where they lie in the space, and the contiguous stand-ins of those whose columns lie
// unevenly, or that nobody wants.
#pragma once

#include <memory>
#include <vector>

#include "fuse/walk.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu::fuse {

class Tensors {
 public:
  Tensors(const Program& program, const bp_value* inputs, const bp_value* outs);
  int64_t count() const;  // elements of the space
  Walk walk(const Part& part) const;
  char* base(uint32_t k) const { return bases_[k]; }
  // From stand-ins to results.
  void write_back() const;

 private:
  struct Staged {
    const Slot* slot;
    std::unique_ptr<Scratch<char>> memory;
    char* original;
    std::vector<int64_t> strides, stand_in;
    bool result;
  };
  const bp_tensor* tensor(uint32_t i, const bp_value* inputs, const bp_value* outs) const;
  bool columns_even(const int64_t* own) const;
  void stage(size_t k, const Slot& slot, int64_t* own, bool wanted);
  void copy(bp_dtype dtype, const char* from, const std::vector<int64_t>& from_strides, char* to,
            const std::vector<int64_t>& to_strides, size_t d = 0) const;

  const Program& program_;
  std::vector<int64_t> sizes_, strides_;  // of the space; per tensor and dim, bytes
  std::vector<char*> bases_;              // per tensor
  std::vector<Staged> staged_;
};

}  // namespace backplane::cpu::fuse
