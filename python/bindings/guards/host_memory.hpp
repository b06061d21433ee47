// Which bytes of the host's memory buffers and tensors show, and whose they are.
//
// All functions need the interpreter lock, and leave no Python error.
#pragma once

#include <cstddef>

#include "backplane/tensor.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// From the first byte to the one behind the last; empty where that is unknown.
struct MemorySpan {
  const std::byte *begin = nullptr, *end = nullptr;
  bool is_empty() const noexcept { return begin >= end; }
  bool overlaps(const MemorySpan& other) const noexcept { return begin < other.end && other.begin < end; }
};
MemorySpan memory_of(PyObject* buffer) noexcept;
MemorySpan memory_of(const Tensor& tensor) noexcept;

// The buffer that the memory of a view belongs to (`a` for `a[1]` and for `memoryview(a)`); the buffer itself if it is
// no view.
PyRef buffer_owner(PyObject* buffer);
// Does the memory belong to a tensor, as that of `t.numpy()` does?
bool is_memory_of_tensor(PyObject* buffer);

}  // namespace backplane::python
