// Python's buffer protocol over tensors in host memory: how NumPy and memoryview read and write one without a copy.
//
// A buffer holds the tensor through a DLPack export, which also says where the memory may not be written.
#include <memory>
#include <vector>

#include "backplane/autograd.hpp"
#include "backplane/device.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/tensor/tensor_slots.hpp"

namespace backplane::python {
namespace {

// The struct module's codes by bp_dtype; bfloat16 has none.
constexpr const char* kFormats[] = {"?", "b", "h", "i", "l", "B", "H", "I", "L", "e", nullptr, "f", "d", "Zf", "Zd"};
static_assert(std::size(kFormats) == BP_DTYPE_COUNT && sizeof(long) == 8);

struct Export {
  DLManagedTensorVersioned* managed;
  std::vector<Py_ssize_t> sizes;
  std::vector<Py_ssize_t> strides;  // bytes

  explicit Export(DLManagedTensorVersioned* tensor) : managed(tensor) {}
  Export(const Export&) = delete;
  ~Export() { managed->deleter(managed); }
};

int refuse(const char* reason) {
  PyErr_SetString(PyExc_BufferError, reason);
  return -1;
}

const char* reason_against(const bp_tensor* tensor, int flags) {
  if (!in_host_memory(tensor)) return "the tensor is not in host memory; use x.to('cpu') first";
  if (!kFormats[tensor->dtype]) return "the buffer protocol has no bfloat16; use x.astype(backplane.float32) first";
  const bool contiguous = (tensor->flags & BP_TENSOR_CONTIGUOUS) != 0;
  const bool needs_rows = (flags & PyBUF_STRIDES) != PyBUF_STRIDES ||
                          (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                          (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
  if (needs_rows && !contiguous) return "the tensor is not contiguous; copy it first";
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && tensor->dl.ndim > 1)
    return "the tensor is not in column order";
  return nullptr;
}

void fill(Py_buffer* view, const bp_tensor* tensor, Export* held, int flags) {
  const DLTensor& dl = held->managed->dl_tensor;
  const Py_ssize_t itemsize = dtype_size(tensor->dtype);
  for (int32_t i = 0; i < tensor->dl.ndim; ++i) {
    held->sizes.push_back(tensor->dl.shape[i]);
    held->strides.push_back(tensor->dl.strides[i] * itemsize);
  }
  view->buf = static_cast<char*>(dl.data) + dl.byte_offset;
  view->len = static_cast<Py_ssize_t>(tensor->nbytes);
  view->itemsize = itemsize;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(kFormats[tensor->dtype]) : nullptr;
  view->ndim = tensor->dl.ndim;
  view->shape = flags & PyBUF_ND ? held->sizes.data() : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? held->strides.data() : nullptr;
  view->suboffsets = nullptr;
  view->internal = held;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded([&] {
    Tensor shared;
    try {
      shared = exportable_tensor(handle_of(self), "buffer");
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_VALUE) throw;
      return refuse(error.what());
    }
    const bp_tensor* tensor = shared.get();
    if (const char* reason = reason_against(tensor, flags)) return refuse(reason);
    const bool inside = tensor != handle_of(self);
    // A write that the tape or a transform cannot see would falsify derivatives.
    const bool differentiated = inside || requires_grad(shared);
    auto held = std::make_unique<Export>(to_dlpack(differentiated ? detach(shared) : shared));
    view->readonly = differentiated || (held->managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY);
    if (view->readonly && (flags & PyBUF_WRITABLE)) {
      return refuse(differentiated
                        ? "the tensor is differentiated, so that only reading is allowed; use x.detach()"
                        : "the tensor's memory is read-only, or some of its elements share memory; copy it first");
    }
    fill(view, tensor, held.release(), flags);
    view->obj = Py_NewRef(self);
    return 0;
  });
}

void release_buffer(PyObject*, Py_buffer* view) { delete static_cast<Export*>(view->internal); }

}  // namespace

void append_buffer_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)});
  slots.push_back({Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)});
}

}  // namespace backplane::python
