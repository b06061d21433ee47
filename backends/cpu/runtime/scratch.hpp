// Working memory of one piece of a kernel, from the backend's own allocator: its pages are warm.
#pragma once

#include <cstddef>
#include <new>

#include "runtime/allocator.hpp"

namespace backplane::cpu {

// n elements of a trivial type, not initialised. Throws std::bad_alloc.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t n) : bytes_(static_cast<uint64_t>(n > 0 ? n : 1) * sizeof(T)) {
    data_ = static_cast<T*>(allocate(bytes_));
    if (data_ == nullptr) {
      release_kept();  // as the host does where `allocate` has failed
      data_ = static_cast<T*>(allocate(bytes_));
    }
    if (data_ == nullptr) throw std::bad_alloc();
  }
  ~Scratch() { deallocate(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return data_; }

 private:
  uint64_t bytes_;
  T* data_;
};

}  // namespace backplane::cpu
