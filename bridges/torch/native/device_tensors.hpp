// Tensors of the PyTorch device over storages of Backplane, and the numbers of Backplane's devices in PyTorch.
//
// A storage of PyTorch owns one tensor of Backplane, its base. Every tensor of PyTorch over that storage is a view of
// the base, made when an op needs it. Any thread may call these functions. They throw c10::Error.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Allocator.h>

#include <string>

#include "backplane/device.hpp"
#include "backplane/tensor.hpp"

namespace backplane_torch {

inline constexpr c10::DeviceType kDevice = c10::DeviceType::PrivateUse1;

// ---- devices: an ordinal of PyTorch's one device is a device of Backplane. Ordinals are never given up.
c10::DeviceIndex add_device(bp_device device);
bp_device device_of(c10::DeviceIndex index);
c10::DeviceIndex index_of(bp_device device);
int device_count() noexcept;
// Gives PyTorch's engine of derivatives threads for `count` devices, where it has started with fewer.
void start_autograd_threads(int count);
c10::DeviceIndex current_device() noexcept;  // the calling thread's
void set_current_device(c10::DeviceIndex index);

// ---- dtypes
bp_dtype dtype_of(c10::ScalarType type);
c10::ScalarType scalar_type_of(bp_dtype dtype);

// ---- tensors
// A tensor of Backplane over the elements of x, which lies on the device.
backplane::Tensor view_of(const at::Tensor& x);
// The same for an argument of an op that runs on `device`: a tensor of PyTorch's CPU without axes is copied there.
backplane::Tensor operand_of(const at::Tensor& x, bp_device device);
// A tensor of PyTorch over a result, which nobody else writes. Row-major; others are copied.
at::Tensor tensor_from(backplane::Tensor result);
at::Tensor new_tensor(c10::IntArrayRef sizes, c10::ScalarType type, c10::DeviceIndex index);
c10::DataPtr data_of(backplane::Tensor base);
// A row-major copy.
backplane::Tensor copied(const backplane::Tensor& x);
// Writes `source`, which is broadcast and cast, to the elements of `target`.
void write(const backplane::Tensor& source, const backplane::Tensor& target);
// Gives a storage of the device another size. What fits of its content stays.
void resize_storage(const c10::Storage& storage, size_t bytes);
c10::Allocator* allocator();

// ---- errors
// Throws a failure of Backplane as the error that PyTorch's users expect.
[[noreturn]] void rethrow(const backplane::Error& error, const std::string& place);
template <class Function>
auto guarded(const char* place, Function function) -> decltype(function()) {
  try {
    return function();
  } catch (const backplane::Error& error) {
    rethrow(error, place);
  }
}

// ---- counts of ops that ran on the host
void note_host_call(const std::string& op);

}  // namespace backplane_torch
