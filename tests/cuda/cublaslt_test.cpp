// The stand-in for cuBLASLt: it computes what the descriptors say, in the stream's turn, and refuses what the library's
// manual forbids.
#include "libraries/cublaslt.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "entries.hpp"
#include "memory.hpp"

namespace cublaslt = backplane::cuda::cublaslt;
extern "C" {
#define BP_DECLARE(result, name, parameters) result name parameters;
BP_CUBLASLT(BP_DECLARE)
#undef BP_DECLARE
}

namespace {

using namespace backplane::cuda::cublaslt;

class Cublaslt : public testing::Test {
 protected:
  void SetUp() override {
    driver::Context context = nullptr;
    ASSERT_EQ(cuInit(0), 0);
    ASSERT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    ASSERT_EQ(cuCtxPushCurrent_v2(context), 0);
    ASSERT_EQ(cuStreamCreate(&stream, 1), 0);
    ASSERT_EQ(cublasLtMatmulDescCreate(&operation, kCompute32, kReal32), kSuccess);
  }
  void TearDown() override {
    emulator::Device::instance().contexts[0].lost.reset();  // a test's fault is that test's alone
    for (const Layout layout : {a, b, d})
      if (layout) cublasLtMatrixLayoutDestroy(layout);
    cublasLtMatmulDescDestroy(operation);
    EXPECT_EQ(cuStreamDestroy_v2(stream), 0);
    for (const auto block : blocks) EXPECT_EQ(cuMemFree_v2(block), 0);
    driver::Context context = nullptr;
    EXPECT_EQ(cuCtxPopCurrent_v2(&context), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), 0);
  }

  float* block(const std::vector<float>& values) {
    driver::Pointer made = 0;
    EXPECT_EQ(cuMemAlloc_v2(&made, values.size() * 4), 0);
    EXPECT_EQ(cuMemcpyHtoDAsync_v2(made, values.data(), values.size() * 4, stream), 0);
    blocks.push_back(made);
    return reinterpret_cast<float*>(made);
  }
  void layouts(std::array<int64_t, 3> a_form, std::array<int64_t, 3> b_form, std::array<int64_t, 3> d_form) {
    const auto make = [](Layout* layout, const std::array<int64_t, 3>& form) {
      EXPECT_EQ(cublasLtMatrixLayoutCreate(layout, kReal32, static_cast<uint64_t>(form[0]),
                                           static_cast<uint64_t>(form[1]), form[2]),
                kSuccess);
    };
    make(&a, a_form), make(&b, b_form), make(&d, d_form);
  }
  void add_bias(const float* bias, int32_t type) {
    const uint32_t epilogue = kEpilogueBias;
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(operation, kOperationEpilogue, &epilogue, sizeof(epilogue)), kSuccess);
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(operation, kOperationBiasType, &type, sizeof(type)), kSuccess);
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(operation, kOperationBias, &bias, sizeof(bias)), kSuccess);
  }
  Status choose(uint32_t aligned = 4) {
    Preference preference = nullptr;
    cublasLtMatmulPreferenceCreate(&preference);
    for (int which = kPreferAlignmentA; which <= kPreferAlignmentD; ++which)
      cublasLtMatmulPreferenceSetAttribute(preference, which, &aligned, sizeof(aligned));
    int count = 0;
    const Status status = cublasLtMatmulAlgoGetHeuristic(nullptr, operation, a, b, d, d, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    return status;
  }
  Status multiply(const float* x, const float* y, float* out) {
    const float one = 1, zero = 0;
    return cublasLtMatmul(nullptr, operation, &one, x, a, y, b, &zero, out, d, out, d, &found.algorithm, nullptr, 0,
                          stream);
  }

  driver::Stream stream = nullptr;
  Operation operation = nullptr;
  Layout a = nullptr, b = nullptr, d = nullptr;
  Heuristic found{};
  std::vector<driver::Pointer> blocks;
};

TEST_F(Cublaslt, ColumnsAreALeadingDimensionApart) {
  // a = [[1, 3], [2, 4]] with a row of padding, b = [[5], [6]].
  float *x = block({1, 2, 99, 3, 4, 99}), *y = block({5, 6}), *out = block({0, 0});
  layouts({2, 2, 3}, {2, 1, 2}, {2, 1, 2});
  ASSERT_EQ(choose(), kSuccess);
  ASSERT_EQ(multiply(x, y, out), kSuccess);
  EXPECT_EQ(out[0], 0) << "before the stream's turn";
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(out[0], 1 * 5 + 3 * 6);
  EXPECT_EQ(out[1], 2 * 5 + 4 * 6);
}

TEST_F(Cublaslt, ATransposedOperandIsReadAlongItsColumns) {
  float *x = block({1, 2, 3, 4}), *y = block({5, 6}), *out = block({0, 0});
  layouts({2, 2, 2}, {2, 1, 2}, {2, 1, 2});
  const int32_t transposed = kTransposed;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation, kOperationTransposeA, &transposed, 4), kSuccess);
  ASSERT_EQ(choose(), kSuccess);
  ASSERT_EQ(multiply(x, y, out), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(out[0], 1 * 5 + 2 * 6);
  EXPECT_EQ(out[1], 3 * 5 + 4 * 6);
}

TEST_F(Cublaslt, ALeadingDimensionThatReachesBeyondABlockLosesTheDevice) {
  float *x = block({1, 2, 3, 4}), *y = block({5, 6}), *out = block({0, 0});
  layouts({2, 2, 300}, {2, 1, 2}, {2, 1, 2});
  ASSERT_EQ(choose(), kSuccess);
  ASSERT_EQ(multiply(x, y, out), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream), 700);
}

TEST_F(Cublaslt, RefusesALeadingDimensionBelowTheRowsAndSizesThatDoNotMeet) {
  layouts({3, 2, 2}, {2, 1, 2}, {3, 1, 3});
  EXPECT_EQ(choose(), kInvalidValue);
  for (const Layout layout : {a, b, d}) cublasLtMatrixLayoutDestroy(layout);
  layouts({3, 2, 3}, {3, 1, 3}, {3, 1, 3});
  EXPECT_EQ(choose(), kInvalidValue);
}

TEST_F(Cublaslt, ABiasIsAddedToEveryColumn) {
  float *x = block({1, 2, 3, 4}), *y = block({5, 6, 7, 8}), *bias = block({10, 20}), *out = block({0, 0, 0, 0});
  layouts({2, 2, 2}, {2, 2, 2}, {2, 2, 2});
  add_bias(bias, kReal32);
  ASSERT_EQ(choose(), kSuccess);
  ASSERT_EQ(multiply(x, y, out), kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(std::vector(out, out + 4),
            (std::vector<float>{1 * 5 + 3 * 6 + 10, 2 * 5 + 4 * 6 + 20, 1 * 7 + 3 * 8 + 10, 2 * 7 + 4 * 8 + 20}));
}

TEST_F(Cublaslt, RefusesABiasOfAnotherTypeOrNone) {
  layouts({2, 2, 2}, {2, 1, 2}, {2, 1, 2});
  add_bias(nullptr, kReal32);
  EXPECT_EQ(choose(), kInvalidValue);
  add_bias(block({10, 20}), kReal64);
  EXPECT_EQ(choose(), kNotSupported);
}

TEST_F(Cublaslt, ABiasThatIsShorterThanTheRowsLosesTheDevice) {
  float *x = block({1, 2, 3, 4}), *y = block({5, 6}), *out = block({0, 0});
  layouts({2, 2, 2}, {2, 1, 2}, {2, 1, 2});
  add_bias(block({10}), kReal32);
  ASSERT_EQ(choose(), kSuccess);
  ASSERT_EQ(multiply(x, y, out), kSuccess);
  EXPECT_EQ(cuStreamSynchronize(stream), 700);
}

TEST_F(Cublaslt, CIsAddedWhereBetaIsOne) {
  float *x = block({1, 2, 3, 4}), *y = block({5, 6}), *c = block({100, 200}), *out = block({0, 0});
  layouts({2, 2, 2}, {2, 1, 2}, {2, 1, 2});
  ASSERT_EQ(choose(), kSuccess);
  const float one = 1;
  ASSERT_EQ(
      cublasLtMatmul(nullptr, operation, &one, x, a, y, b, &one, c, d, out, d, &found.algorithm, nullptr, 0, stream),
      kSuccess);
  ASSERT_EQ(cuStreamSynchronize(stream), 0);
  EXPECT_EQ(out[0], 1 * 5 + 3 * 6 + 100);
  EXPECT_EQ(out[1], 2 * 5 + 4 * 6 + 200);
}

TEST_F(Cublaslt, AnAlgorithmIsForItsDescriptorsAndAlignmentAlone) {
  float *x = block({1, 2, 3, 4, 5}), *y = block({5, 6}), *out = block({0, 0});
  layouts({2, 2, 2}, {2, 1, 2}, {2, 1, 2});
  ASSERT_EQ(choose(16), kSuccess);
  EXPECT_EQ(multiply(x + 1, y, out), kInvalidValue);
  EXPECT_EQ(multiply(x, y, out), kSuccess);
  const int32_t transposed = kTransposed;
  ASSERT_EQ(cublasLtMatmulDescSetAttribute(operation, kOperationTransposeA, &transposed, 4), kSuccess);
  EXPECT_EQ(multiply(x, y, out), kInvalidValue);
}

}  // namespace
