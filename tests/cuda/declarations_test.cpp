// Our declarations of the driver against NVIDIA's, where these are installed.
#include <gtest/gtest.h>

#if __has_include(<cuda.h>)
#include <cuda.h>
#define BACKPLANE_HAS_CUDA_H 1
#endif

#include "declarations.hpp"
#include "driver/driver.hpp"

namespace {

#ifdef BACKPLANE_HAS_CUDA_H
using emulator::same_form;
namespace driver = backplane::cuda::driver;
#define BACKPLANE_CHECK(name, parameters) \
  static_assert(                          \
      same_form(static_cast<driver::Result(*) parameters>(nullptr), static_cast<decltype(&::name)>(nullptr)), #name);
BP_CUDA_DRIVER(BACKPLANE_CHECK)
#undef BACKPLANE_CHECK

TEST(Declarations, ValuesAreNvidias) {
  EXPECT_EQ(int{driver::kOutOfMemory}, CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(int{driver::kInvalidValue}, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(int{driver::kNotInitialized}, CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_EQ(int{driver::kNoDevice}, CUDA_ERROR_NO_DEVICE);
  EXPECT_EQ(int{driver::kInvalidPtx}, CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(int{driver::kUnsupportedPtx}, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  EXPECT_EQ(int{driver::kNotFound}, CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(int{driver::kNotReady}, CUDA_ERROR_NOT_READY);
  EXPECT_EQ(int{driver::kIllegalAddress}, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(int{driver::kLaunchTimeout}, CUDA_ERROR_LAUNCH_TIMEOUT);
  EXPECT_EQ(int{driver::kMisalignedAddress}, CUDA_ERROR_MISALIGNED_ADDRESS);
  EXPECT_EQ(int{driver::kLaunchFailed}, CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_EQ(int{driver::kUnknown}, CUDA_ERROR_UNKNOWN);
  EXPECT_EQ(int{driver::kPeerAccessAlreadyEnabled}, CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  EXPECT_EQ(int{driver::kMajor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  EXPECT_EQ(int{driver::kMinor}, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  EXPECT_EQ(int{driver::kMultiprocessors}, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  EXPECT_EQ(int{driver::kUnifiedAddressing}, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING);
  EXPECT_EQ(int{driver::kSharedMemoryPerBlock}, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
  EXPECT_EQ(int{driver::kWarpSize}, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  EXPECT_EQ(int{driver::kIntegrated}, CU_DEVICE_ATTRIBUTE_INTEGRATED);
  EXPECT_EQ(int{driver::kCacheSize}, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  EXPECT_EQ(int{driver::kManagedMemory}, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  EXPECT_EQ(int{driver::kCooperativeLaunch}, CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH);
  EXPECT_EQ(int{driver::kCaptureGlobal}, CU_STREAM_CAPTURE_MODE_GLOBAL);
  EXPECT_EQ(int{driver::kCaptureThreadLocal}, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_EQ(int{driver::kCaptureRelaxed}, CU_STREAM_CAPTURE_MODE_RELAXED);
  EXPECT_EQ(unsigned{driver::kEventBlockingSync}, unsigned{CU_EVENT_BLOCKING_SYNC});
  EXPECT_EQ(unsigned{driver::kHostRegisterPortable}, unsigned{CU_MEMHOSTREGISTER_PORTABLE});
  EXPECT_EQ(unsigned{driver::kStreamNonBlocking}, CU_STREAM_NON_BLOCKING);
  EXPECT_EQ(unsigned{driver::kEventDisableTiming}, CU_EVENT_DISABLE_TIMING);
  EXPECT_EQ(unsigned{driver::kHostAllocPortable}, unsigned{CU_MEMHOSTALLOC_PORTABLE});
  EXPECT_EQ(unsigned{driver::kHostAllocDeviceMap}, unsigned{CU_MEMHOSTALLOC_DEVICEMAP});
}
#else
TEST(Declarations, ValuesAreNvidias) { GTEST_SKIP() << "no cuda.h on this machine"; }
#endif

}  // namespace
