// Kernels in CUDA C++ that a plugin brings to the backend "cuda".
//
//   backplane_add_plugin(mine OPS ops.yaml SOURCES plugin.cpp CUDA wave.cu KERNELS_FOR cuda)   # CMake
//
//   #include "wave.cu.hpp"  // made by CMake: `wave_cu`, the compiled wave.cu
//   void wave(Context call, ConstTensor<float> x, double speed, MutTensor<float> out) {
//     launch(call, wave_cu, "wave_f32", groups_of(out.size(), 256), 256, x, out, out.size(),
//     static_cast<float>(speed));
//   }
//
// Declare kernels `extern "C" __global__`, so that they have the name that `launch` is given. The work is recorded on
// the call's stream. Nothing of NVIDIA's is linked: the driver is opened at the first launch.
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

// Of a grid or a block: how many there are along each axis.
struct CudaExtent {
  CudaExtent(int64_t x, int64_t y = 1, int64_t z = 1) : x(x), y(y), z(z) {}
  bool is_empty() const { return x == 0 || y == 0 || z == 0; }
  int64_t x, y, z;
};

// The number of blocks of `size` threads that `items` need.
inline int64_t groups_of(int64_t items, int64_t size) { return (items + size - 1) / size; }

namespace cuda {

using Result = int;
using Handle = void*;

struct Driver {
  Result (*push)(Handle);
  Result (*pop)(Handle*);
  Result (*load)(Handle*, const void*);
  Result (*find)(Handle*, Handle, const char*);
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                   void**);
  Result (*name_of)(Result, const char**);
};

inline const Driver& driver() {
  static const Driver found = [] {
    const VendorLibrary library("libcuda.so.1");
    Driver made{};
    library.find(made.push, "cuCtxPushCurrent_v2");
    library.find(made.pop, "cuCtxPopCurrent_v2");
    library.find(made.load, "cuModuleLoadData");
    library.find(made.find, "cuModuleGetFunction");
    library.find(made.launch, "cuLaunchKernel");
    library.find(made.name_of, "cuGetErrorName");
    return made;
  }();
  return found;
}

// CUDA keeps errors from 700 to 721, and 999, for the life of its context.
inline void check(Result result, const char* op, const char* what) {
  if (result == 0) [[likely]]
    return;
  const char* name = nullptr;
  driver().name_of(result, &name);
  const bool lost = (result >= 700 && result <= 721) || result == 999;
  ::backplane::detail::fail(result == 2 ? BP_ERROR_MEMORY
                            : lost      ? BP_ERROR_DEVICE_LOST
                                        : BP_ERROR_DEVICE,
                            op, ": ", what, " failed with ", name ? name : "an unknown error", " (", result, ")");
}

// Makes the context of the device current while the object lives.
class Current {
 public:
  Current(Handle context, const char* op) { check(driver().push(context), op, "cuCtxPushCurrent"); }
  ~Current() {
    Handle popped;
    driver().pop(&popped);
  }
  Current(const Current&) = delete;
};

}  // namespace cuda

// A compiled .cu file: PTX text, which the driver compiles for a device at the first launch there. Compiled modules
// stay loaded until the device ends: at the end of a process the driver may have ended before. Any thread.
class CudaModule {
 public:
  CudaModule(const char* file, const char* ptx) : file_(file), ptx_(ptx) {}
  CudaModule(const CudaModule&) = delete;

  // With the context current. A reset drops loaded modules: `anew` loads this one again.
  cuda::Handle function(cuda::Handle context, const char* kernel, const char* op, bool anew) {
    const std::lock_guard guard(lock_);
    Loaded& loaded = contexts_[context];
    if (anew) loaded = {};
    if (!loaded.module) cuda::check(cuda::driver().load(&loaded.module, ptx_), op, file_);
    const auto [at, added] = loaded.functions.try_emplace(kernel, nullptr);
    if (added) {
      if (const cuda::Result result = cuda::driver().find(&at->second, loaded.module, kernel); result != 0) {
        loaded.functions.erase(at);
        BP_CHECK(result != 500, VALUE, op, ": ", file_, " has no kernel \"", kernel,
                 "\". Fix: declare it extern \"C\" __global__, and give its name");
        cuda::check(result, op, "cuModuleGetFunction");
      }
    }
    return at->second;
  }

 private:
  struct Loaded {
    cuda::Handle module = nullptr;
    std::map<std::string, cuda::Handle, std::less<>> functions;
  };
  const char *const file_, *const ptx_;
  std::mutex lock_;
  std::map<cuda::Handle, Loaded> contexts_;  // guarded by lock_
};

namespace cuda {

template <class T>
uint64_t argument(const TensorView<T>& tensor) {
  return reinterpret_cast<uint64_t>(tensor.handle()->dl.data) + tensor.handle()->dl.byte_offset;
}
template <class T>
T argument(T number) requires(std::is_arithmetic_v<T>) {
  return number;
}

inline void launch(Context call, CudaModule& module, const char* kernel, CudaExtent grid, CudaExtent block,
                   void** arguments) {
  constexpr int64_t kMostThreads = 1024, kMostBlocks = (int64_t{1} << 31) - 1, kMostBlocksAcross = 65535;
  const char* op = call.op_name();
  BP_CHECK(grid.x >= 0 && grid.x <= kMostBlocks && grid.y >= 0 && grid.y <= kMostBlocksAcross && grid.z >= 0 &&
               grid.z <= kMostBlocksAcross,
           VALUE, op, ": kernel ", kernel, ": found a grid of ", grid.x, " x ", grid.y, " x ", grid.z,
           " blocks, expected at most 2147483647 x 65535 x 65535. Fix: let each thread do several elements");
  BP_CHECK(block.x > 0 && block.y > 0 && block.z > 0 && block.x * block.y * block.z <= kMostThreads, VALUE, op,
           ": kernel ", kernel, ": found a block of ", block.x, " x ", block.y, " x ", block.z,
           " threads, expected 1 to 1024 in all");
  if (grid.is_empty()) return;
  Handle context = nullptr, stream = nullptr;
  check_status(call.host()->native(call.frame, "CUcontext", &context));
  check_status(call.host()->native(call.frame, "CUstream", &stream));
  const Current current(context, op);
  constexpr Result kInvalidHandle = 400;
  for (bool anew : {false, true}) {
    const Handle function = module.function(context, kernel, op, anew);
    const auto n = [](int64_t count) { return static_cast<unsigned>(count); };
    const Result result = driver().launch(function, n(grid.x), n(grid.y), n(grid.z), n(block.x), n(block.y), n(block.z),
                                          0, stream, arguments, nullptr);
    if (result == kInvalidHandle && !anew) continue;
    return check(result, op, kernel);
  }
}

}  // namespace cuda

// Records `kernel` on the call's stream. An argument is a tensor, which the kernel sees as a pointer to its first
// element, or a number, of the very type that the kernel declares. A grid without blocks launches nothing.
template <class... Arguments>
void launch(Context call, CudaModule& module, const char* kernel, CudaExtent grid, CudaExtent block,
            const Arguments&... arguments) {
  auto values = std::make_tuple(cuda::argument(arguments)...);
  std::apply(
      [&](auto&... each) {
        void* addresses[] = {static_cast<void*>(&each)..., nullptr};
        cuda::launch(call, module, kernel, grid, block, addresses);
      },
      values);
}

}  // namespace backplane::plugin
