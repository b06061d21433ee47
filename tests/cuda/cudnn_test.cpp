// The stand-in for cuDNN: it computes what the descriptors say, in the stream's turn, and refuses what the library's
// manual forbids.
#include "libraries/cudnn.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "entries.hpp"
#include "memory.hpp"

namespace cudnn = backplane::cuda::cudnn;
extern "C" {
#define BP_DECLARE(result, name, parameters) result name parameters;
BP_CUDNN(BP_DECLARE)
#undef BP_DECLARE
}

namespace {

using namespace backplane::cuda::cudnn;

// One image of 2 by 3, a kernel of 1 by 2: y = [[1a + 2b, 2a + 3b], [4a + 5b, 5a + 6b]].
class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    driver::Context context = nullptr;
    ASSERT_EQ(cuInit(0), 0);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), 0);
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    ASSERT_EQ(cudnnCreate(&handle), kSuccess);
    ASSERT_EQ(cudnnSetStream(handle, stream), kSuccess);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&x), kSuccess);
    ASSERT_EQ(cudnnCreateTensorDescriptor(&y), kSuccess);
    ASSERT_EQ(cudnnCreateFilterDescriptor(&w), kSuccess);
    ASSERT_EQ(cudnnCreateConvolutionDescriptor(&convolution), kSuccess);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(x, kChannelsFirst, kReal32, 1, 1, 2, 3), kSuccess);
    ASSERT_EQ(cudnnSetFilter4dDescriptor(w, kReal32, kChannelsFirst, 1, 1, 1, 2), kSuccess);
    ASSERT_EQ(cudnnSetTensor4dDescriptor(y, kChannelsFirst, kReal32, 1, 1, 2, 2), kSuccess);
    describe(kCrossCorrelation, 1);
  }
  void TearDown() override {
    emulator::Device::instance().contexts[0].lost.reset();  // a test's fault is that test's alone
    cudnnDestroyTensorDescriptor(x), cudnnDestroyTensorDescriptor(y), cudnnDestroyFilterDescriptor(w);
    cudnnDestroyConvolutionDescriptor(convolution), cudnnDestroy(handle);
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
    for (const auto block : blocks) EXPECT_EQ(cuMemFree_v2(block), 0);
    driver::Context context = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&context), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
  }

  void describe(int mode, int stride) {
    EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution, 0, 0, stride, 1, 1, 1, mode, kReal32), kSuccess);
    EXPECT_EQ(cudnnSetConvolutionMathType(convolution, kOfFused), kSuccess);
  }
  float* block(const std::vector<float>& values) {
    driver::Pointer made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, values.size() * 4), 0);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(made, values.data(), values.size() * 4, stream), 0);
    blocks.push_back(made);
    return reinterpret_cast<float*>(made);
  }
  Status propose() {
    found.resize(8);
    int count = 0;
    const Status status = cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, convolution, y, 8, &count, found.data());
    found.resize(static_cast<size_t>(count));
    return status;
  }
  // By the last proposal, which wants no workspace.
  Status convolve(const float* images, const float* kernels, float* result) {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(handle, &one, x, images, w, kernels, convolution, found.back().algorithm, nullptr, 0,
                                   &zero, y, result);
  }

  driver::Stream stream = nullptr;
  Handle handle = nullptr;
  Tensor x = nullptr, y = nullptr;
  Filter w = nullptr;
  Convolution convolution = nullptr;
  std::vector<Proposal> found;
  std::vector<driver::Pointer> blocks;
};

TEST_F(Cudnn, CrossCorrelatesInTheStreamsTurn) {
  float *images = block({1, 2, 3, 4, 5, 6}), *kernels = block({10, 1}), *result = block({0, 0, 0, 0});
  ASSERT_EQ(propose(), kSuccess);
  ASSERT_EQ(convolve(images, kernels, result), kSuccess);
  EXPECT_EQ(result[0], 0) << "before the stream's turn";
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(std::vector(result, result + 4), (std::vector<float>{12, 23, 45, 56}));
}

TEST_F(Cudnn, TheAdjointsAddWhatTheConvolutionMultiplies) {
  float *images = block({1, 2, 3, 4, 5, 6}), *kernels = block({10, 1}), *cotangent = block({1, 2, 3, 4});
  float *of_images = block({0, 0, 0, 0, 0, 0}), *of_kernels = block({0, 0});
  ASSERT_EQ(propose(), kSuccess);
  const float one = 1, zero = 0;
  const int algorithm = found.back().algorithm;
  ASSERT_EQ(cudnnConvolutionBackwardData(handle, &one, w, kernels, y, cotangent, convolution, algorithm, nullptr, 0,
                                         &zero, x, of_images),
            kSuccess);
  ASSERT_EQ(cudnnConvolutionBackwardFilter(handle, &one, x, images, y, cotangent, convolution, algorithm, nullptr, 0,
                                           &zero, w, of_kernels),
            kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(std::vector(of_images, of_images + 6), (std::vector<float>{10, 21, 2, 30, 43, 4}));
  EXPECT_EQ(std::vector(of_kernels, of_kernels + 2), (std::vector<float>{37, 47}));
}

TEST_F(Cudnn, RefusesSizesThatDoNotMeet) {
  ASSERT_EQ(propose(), kSuccess);
  describe(kCrossCorrelation, 2);  // one row of windows, where y has two
  EXPECT_EQ(propose(), kBadParameter);
  describe(kCrossCorrelation, 1);
  ASSERT_EQ(cudnnSetConvolutionGroupCount(convolution, 2), kSuccess);
  EXPECT_EQ(propose(), kBadParameter);
}

TEST_F(Cudnn, RefusesAnotherModeOrTypeOfComputation) {
  describe(0, 1);  // a true convolution turns the kernel around
  EXPECT_EQ(propose(), kNotSupported);
  EXPECT_EQ(cudnnSetConvolution2dDescriptor(convolution, 0, 0, 1, 1, 1, 1, kCrossCorrelation, kReal64), kSuccess);
  EXPECT_EQ(propose(), kNotSupported);
}

TEST_F(Cudnn, RefusesWhatMayRoundFloat32AndWhatIsNotTheSameEachTime) {
  float *images = block({1, 2, 3, 4, 5, 6}), *kernels = block({10, 1}), *result = block({0, 0, 0, 0});
  ASSERT_EQ(propose(), kSuccess);
  ASSERT_EQ(cudnnSetConvolutionMathType(convolution, kOfDefault), kSuccess);
  EXPECT_EQ(convolve(images, kernels, result), kNotSupported);
  ASSERT_EQ(cudnnSetConvolutionMathType(convolution, kOfFused), kSuccess);
  std::erase_if(found, [](const Proposal& one) { return one.determinism == kDeterministic; });
  EXPECT_EQ(convolve(images, kernels, result), kBadParameter);
}

TEST_F(Cudnn, RefusesAWorkspaceThatIsTooSmall) {
  float *images = block({1, 2, 3, 4, 5, 6}), *kernels = block({10, 1}), *result = block({0, 0, 0, 0});
  ASSERT_EQ(propose(), kSuccess);
  found.pop_back();
  size_t bytes = 0;
  ASSERT_EQ(cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, found.back().algorithm, &bytes),
            kSuccess);
  EXPECT_GT(bytes, 0u);
  EXPECT_EQ(convolve(images, kernels, result), kBadParameter);
}

}  // namespace
