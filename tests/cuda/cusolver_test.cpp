// The stand-in for cuSOLVER: it computes what the arguments say, in the stream's turn, and refuses what the library's
// manual forbids.
#include "libraries/cusolver.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "entries.hpp"
#include "memory.hpp"

namespace cusolver = backplane::cuda::cusolver;
extern "C" {
#define BP_DECLARE(result, name, parameters) result name parameters;
BP_CUSOLVER(BP_DECLARE)
#undef BP_DECLARE
}

namespace {

using namespace backplane::cuda::cusolver;

class Cusolver : public testing::Test {
 protected:
  void SetUp() override {
    driver::Context context = nullptr;
    ASSERT_EQ(cuInit(0), 0);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), 0);
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    ASSERT_EQ(cusolverDnCreate(&handle), kSuccess);
    ASSERT_EQ(cusolverDnCreateParams(&parameters), kSuccess);
    ASSERT_EQ(cusolverDnSetStream(handle, stream), kSuccess);
    info = block<int>({-1});
  }
  void TearDown() override {
    emulator::Device::instance().contexts[0].lost.reset();  // a test's fault is that test's alone
    cusolverDnDestroyParams(parameters);
    cusolverDnDestroy(handle);
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
    for (const auto made : blocks) EXPECT_EQ(cuMemFree_v2(made), 0);
    driver::Context context = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&context), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
  }

  template <class T>
  T* block(const std::vector<T>& values) {
    driver::Pointer made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, values.size() * sizeof(T)), 0);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(made, values.data(), values.size() * sizeof(T), stream), 0);
    blocks.push_back(made);
    return reinterpret_cast<T*>(made);
  }
  Status factor_positive(Fill fill, int64_t n, double* a, int64_t lda, size_t missing = 0) {
    size_t device = 0, on_host = 0;
    if (const Status status =
            cusolverDnXpotrf_bufferSize(handle, parameters, fill, n, kReal64, a, lda, kReal64, &device, &on_host))
      return status;
    return cusolverDnXpotrf(handle, parameters, fill, n, kReal64, a, lda, kReal64,
                            block<char>(std::vector<char>(device)), device - missing, nullptr, 0, info);
  }
  Status factor_lu(int64_t n, double* a, int64_t* pivots) {
    size_t device = 0, on_host = 0;
    if (const Status status =
            cusolverDnXgetrf_bufferSize(handle, parameters, n, n, kReal64, a, n, kReal64, &device, &on_host))
      return status;
    host.resize(on_host);
    return cusolverDnXgetrf(handle, parameters, n, n, kReal64, a, n, pivots, kReal64,
                            block<char>(std::vector<char>(device)), device, host.data(), on_host, info);
  }

  driver::Stream stream = nullptr;
  Handle handle = nullptr;
  Parameters parameters = nullptr;
  int* info = nullptr;
  std::vector<char> host;
  std::vector<driver::Pointer> blocks;
};

TEST_F(Cusolver, ReadsAndWritesOneTriangleOfColumnsALeadingDimensionApart) {
  // [[4, ?], [2, 5]] with a row of padding: L = [[2, ?], [1, 2]].
  double* a = block<double>({4, 2, -9, 77, 5, -9});
  ASSERT_EQ(factor_positive(kLower, 2, a, 3), kSuccess);
  EXPECT_NE(a[0], 2) << "before the stream's turn";
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(std::vector<double>(a, a + 6), (std::vector<double>{2, 1, -9, 77, 2, -9}));
  EXPECT_EQ(*info, 0);
}

TEST_F(Cusolver, SaysInInfoWhichPivotIsWrong) {
  double* a = block<double>({1, 2, 2, 1});
  ASSERT_EQ(factor_positive(kUpper, 2, a, 2), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(*info, 2);
}

TEST_F(Cusolver, ALeadingDimensionThatReachesBeyondABlockLosesTheDevice) {
  double* a = block<double>({4, 2, 2, 5});
  ASSERT_EQ(factor_positive(kLower, 2, a, 300), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream), 700);
}

TEST_F(Cusolver, RefusesALeadingDimensionBelowTheRowsAndTooSmallAWorkspace) {
  double* a = block<double>({4, 2, 2, 5});
  EXPECT_EQ(factor_positive(kLower, 2, a, 1), kInvalidValue);
  EXPECT_EQ(factor_positive(kLower, 2, a, 2, 1), kInvalidValue);
}

TEST_F(Cusolver, SolvesTheTransposedSystemWhereThatIsAsked) {
  double* a = block<double>({0, 1, 2, 0});  // [[0, 2], [1, 0]]
  int64_t* pivots = block<int64_t>({0, 0});
  ASSERT_EQ(factor_lu(2, a, pivots), kSuccess);
  double *b = block<double>({6, 5}), *c = block<double>({6, 5});
  for (const auto& [operation, right] : {std::pair(kAsStored, b), std::pair(kTransposed, c)})
    ASSERT_EQ(cusolverDnXgetrs(handle, parameters, operation, 2, 1, kReal64, a, 2, pivots, kReal64, right, 2, info),
              kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(std::vector<double>(b, b + 2), (std::vector<double>{5, 3}));
  EXPECT_EQ(std::vector<double>(c, c + 2), (std::vector<double>{2.5, 6}));
}

TEST_F(Cusolver, AHostWorkspaceThatIsGivenAwayBeforeTheWorkHasEndedLosesTheDevice) {
  double* a = block<double>({4, 2, 2, 5});
  ASSERT_EQ(factor_lu(2, a, block<int64_t>({0, 0})), kSuccess);
  host.assign(host.size(), 0);
  EXPECT_EQ(cuStreamSynchronize(stream), 719);
}

}  // namespace
