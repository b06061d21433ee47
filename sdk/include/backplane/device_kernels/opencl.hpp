// Kernels in OpenCL C that a plugin brings to the backend "opencl".
//
//   backplane_add_plugin(mine OPS ops.yaml SOURCES plugin.cpp OPENCL wave.cl KERNELS_FOR opencl)   # CMake
//
//   #include "wave.cl.hpp"  // made by CMake: `wave_cl`, the text of wave.cl
//   void wave(Context call, ConstTensor<float> x, double speed, MutTensor<float> out) {
//     launch(call, wave_cl, "wave_f32", out.size(), x, out, static_cast<float>(speed));
//   }
//
// A tensor is two parameters of the kernel: `global float* x, ulong x_first`, the buffer and the index of the tensor's
// first element in it. The work is recorded on the call's stream. Nothing of OpenCL's is linked.
// Not the contract: header-only sugar over backplane/abi.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "backplane/device_kernels/library.hpp"
#include "backplane/plugin/context.hpp"
#include "backplane/plugin/tensor_view.hpp"

namespace backplane::plugin {

namespace opencl {

using Handle = void*;

struct Driver {
  Handle (*make_program)(Handle context, unsigned n, const char** texts, const size_t* lengths, int* error);
  int (*build)(Handle program, unsigned n, const Handle* devices, const char* options, void*, void*);
  int (*build_info)(Handle program, Handle device, unsigned what, size_t size, void* value, size_t* needed);
  Handle (*make_kernel)(Handle program, const char* name, int* error);
  int (*set_argument)(Handle kernel, unsigned index, size_t size, const void* value);
  int (*enqueue)(Handle queue, Handle kernel, unsigned rank, const size_t* offset, const size_t* global,
                 const size_t* local, unsigned n_events, const Handle* events, Handle* event);
  int (*release_program)(Handle program);
};

inline const Driver& driver() {
  static const Driver found = [] {
    const VendorLibrary library("libOpenCL.so.1");
    Driver made{};
    library.find(made.make_program, "clCreateProgramWithSource");
    library.find(made.build, "clBuildProgram");
    library.find(made.build_info, "clGetProgramBuildInfo");
    library.find(made.make_kernel, "clCreateKernel");
    library.find(made.set_argument, "clSetKernelArg");
    library.find(made.enqueue, "clEnqueueNDRangeKernel");
    library.find(made.release_program, "clReleaseProgram");
    return made;
  }();
  return found;
}

inline void check(int result, const char* op, const char* what) {
  constexpr int kAllocation = -4, kResources = -5, kHostMemory = -6;
  const bool memory = result == kAllocation || result == kResources || result == kHostMemory;
  if (result != 0) [[unlikely]]
    ::backplane::detail::fail(memory ? BP_ERROR_MEMORY : BP_ERROR_DEVICE, op, ": ", what, " failed with code ", result);
}

}  // namespace opencl

// The text of a .cl file, which the driver compiles for a device at the first launch there. Compiled programs stay
// loaded: at the end of a process the driver may have ended before. Any thread.
class OpenclProgram {
 public:
  OpenclProgram(const char* file, const char* text) : file_(file), text_(text) {}
  OpenclProgram(const OpenclProgram&) = delete;

  // `use(kernel)` sets the arguments of the kernel and enqueues it; one thread at a time, as a kernel keeps arguments.
  template <class Use>
  void with_kernel(Context call, const char* name, Use use) {
    opencl::Handle context = nullptr, device = nullptr;
    check_status(call.host()->native(call.frame, "cl_context", &context));
    check_status(call.host()->native(call.frame, "cl_device_id", &device));
    const std::lock_guard guard(lock_);
    auto at = devices_.find({context, device});
    if (at == devices_.end()) at = devices_.emplace(std::pair{context, device}, build(call, context, device)).first;
    auto& kernels = at->second.kernels;
    auto kernel = kernels.find(name);
    if (kernel == kernels.end()) {
      int error = 0;
      const opencl::Handle made = opencl::driver().make_kernel(at->second.program, name, &error);
      BP_CHECK(error == 0, VALUE, call.op_name(), ": ", file_, " has no kernel \"", name, "\" (code ", error, ")");
      kernel = kernels.emplace(name, made).first;
    }
    use(kernel->second);
  }

 private:
  struct Built {
    opencl::Handle program = nullptr;
    std::map<std::string, opencl::Handle, std::less<>> kernels;
  };

  Built build(Context call, opencl::Handle context, opencl::Handle device) const {
    int error = 0;
    Built made;
    made.program = opencl::driver().make_program(context, 1, const_cast<const char**>(&text_), nullptr, &error);
    opencl::check(error, call.op_name(), "clCreateProgramWithSource");
    error = opencl::driver().build(made.program, 1, &device, "", nullptr, nullptr);
    if (error == 0) return made;
    constexpr unsigned kLog = 0x1183;
    size_t size = 0;
    opencl::driver().build_info(made.program, device, kLog, 0, nullptr, &size);
    std::string log(size, '\0');
    opencl::driver().build_info(made.program, device, kLog, size, log.data(), nullptr);
    opencl::driver().release_program(made.program);
    ::backplane::detail::fail(BP_ERROR_VALUE, call.op_name(), ": ", file_, " does not compile:\n", log.c_str());
  }

  const char *const file_, *text_;
  std::mutex lock_;
  std::map<std::pair<opencl::Handle, opencl::Handle>, Built> devices_;  // by context and device; guarded by lock_
};

namespace opencl {

// Sets the parameters of one argument, and says which index comes next.
template <class T>
unsigned set(Context call, Handle kernel, unsigned index, const TensorView<T>& tensor) {
  const bp_tensor& t = *tensor.handle();
  const uint64_t first = t.dl.byte_offset / static_cast<uint64_t>(kItemSize[t.dtype]);
  check(driver().set_argument(kernel, index, sizeof(Handle), &t.dl.data), call.op_name(), "clSetKernelArg (a tensor)");
  check(driver().set_argument(kernel, index + 1, sizeof first, &first), call.op_name(),
        "clSetKernelArg (the first element of a tensor, a ulong)");
  return index + 2;
}
template <class T>
unsigned set(Context call, Handle kernel, unsigned index, T number) requires(std::is_arithmetic_v<T>) {
  check(driver().set_argument(kernel, index, sizeof number, &number), call.op_name(), "clSetKernelArg (a number)");
  return index + 1;
}

}  // namespace opencl

// Records `kernel` on the call's stream, once for each of `items`. Arguments are tensors, and numbers of the very types
// that the kernel declares. Without items nothing is launched.
template <class... Arguments>
void launch(Context call, OpenclProgram& program, const char* kernel, int64_t items, const Arguments&... arguments) {
  if (items <= 0) return;
  opencl::Handle queue = nullptr;
  check_status(call.host()->native(call.frame, "cl_command_queue", &queue));
  program.with_kernel(call, kernel, [&](opencl::Handle made) {
    unsigned index = 0;
    ((index = opencl::set(call, made, index, arguments)), ...);
    const size_t global = static_cast<size_t>(items);
    opencl::check(opencl::driver().enqueue(queue, made, 1, nullptr, &global, nullptr, 0, nullptr, nullptr),
                  call.op_name(), kernel);
  });
}

}  // namespace backplane::plugin
