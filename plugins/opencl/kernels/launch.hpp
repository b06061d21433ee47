// One launch of a kernel of kernels.cl: its defines, its arguments, and the loop that it walks.
#pragma once

#include "kernels/kernels.hpp"

namespace opencl {

// As in kernels.cl. Dimensions beyond kMaxDims are walked by the host, a launch for each of their positions.
inline constexpr int32_t kMaxDims = 10;
inline constexpr int32_t kMaxOperands = 4;
struct Loop {
  int64_t rank = 0, count = 1;
  int64_t sizes[kMaxDims] = {};
  int64_t strides[kMaxOperands][kMaxDims] = {};  // bytes
};

// A loop of any rank over some operands.
struct Walk {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  // bytes, [operand][dimension]

  Walk() = default;
  // The loop that came with the call; without one, a flat loop over its first result.
  Walk(Context call, const bp_tensor& out, size_t n_operands, const bp_dtype* dtypes);
  // Over a shape, by strides in elements of tensors of one item size.
  Walk(Ints shape, std::initializer_list<Ints> strides, int64_t item);
  int64_t count() const { return count_of(sizes); }
};

// "#define PREFIX_T float" and what loads and stores such an element as the scalar functions take it.
std::string defines_for(const std::string& prefix, bp_dtype dtype);
// An unsigned type of the dtype's width, for elements that are moved and not read.
std::string width_defines(const std::string& prefix, bp_dtype dtype);
// The dtype as it stands in the names of scalar functions: float32 for the half floats.
std::string scalar_name(bp_dtype dtype);

class Launch {
 public:
  Launch(Context call, const char* kernel, const std::string& defines);
  ~Launch() = default;
  Launch(const Launch&) = delete;

  Launch& tensor(const bp_tensor& tensor, int64_t more_bytes = 0);  // two arguments: memory and byte offset
  Launch& memory(void* base);
  Launch& value(int64_t number);
  template <class T>
  Launch& bytes(const T& value) {
    arguments_.push_back({{reinterpret_cast<const char*>(&value), sizeof(value)}, nullptr});
    return *this;
  }
  // The kernel's next argument is a word that it sets where it meets bad data; what to say then.
  Launch& watch(std::string message);
  void run(int64_t items);
  // The loop is the next argument, and its tensors those given before it: an item per position.
  void run(const Walk& walk);

 private:
  struct Argument {
    std::string bytes;
    cl_mem memory;  // in place of bytes
  };
  void enqueue(int64_t items, const std::vector<Argument>& arguments);

  Stream& stream_;
  uint64_t ticket_;
  Kernel& kernel_;
  std::vector<Argument> arguments_;
  std::vector<size_t> offsets_;  // which arguments are byte offsets of tensors
  std::string watched_;
};

// Moves elements of one item size: to[...] = from[...], over `shape`.
void move(Context call, const bp_tensor& to, int64_t to_bytes, const bp_tensor& from, Ints shape, Ints to_strides,
          Ints from_strides);

}  // namespace opencl
