// Doors of C++ through which memory and counts enter: an address that is null, a count that does not fit another, and a
// handle or function that is empty are errors that say so, before anything is read.
#include <gtest/gtest.h>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::multiply;
using testing::null_backend;
using testing::scalar;
using testing::sum;
using testing::tensor;
using testing::values;

#define EXPECT_REFUSED(expression, words)                                  \
  do {                                                                     \
    bp_status code = BP_OK;                                                \
    const std::string text = error_of([&] { (void)(expression); }, &code); \
    EXPECT_EQ(code, BP_ERROR_VALUE);                                       \
    EXPECT_NE(text.find(words), std::string::npos) << text;                \
  } while (false)

TEST(FromHost, RefusesANullAddressUnlessThereAreNoElements) {
  for (const bp_dtype dtype : {BP_FLOAT64, BP_BOOL}) {
    for (const Ints& shape : {Ints{}, Ints{2, 3}}) {
      EXPECT_REFUSED(from_host(nullptr, shape, {}, dtype, null_backend()),
                     "from_host: the address of its elements is null");
      const Ints strides(shape.size(), 0);
      EXPECT_REFUSED(from_host(nullptr, shape, strides, dtype, null_backend()), "from_host: the address");
    }
    EXPECT_EQ(from_host(nullptr, Ints{0, 3}, {}, dtype, null_backend()).get()->nbytes, 0u);
  }
}

TEST(FromHost, TakesAStridePerAxisOrNone) {
  const double data[] = {1, 2, 3, 4};
  const Ints shape{2, 2};
  EXPECT_EQ(values(from_host(data, shape, Ints{1, 2}, BP_FLOAT64, null_backend())), (std::vector<double>{1, 3, 2, 4}));
  for (const Ints& strides : {Ints{1}, Ints{1, 1, 1}}) {
    EXPECT_REFUSED(from_host(data, shape, strides, BP_FLOAT64, null_backend()), "from_host: found ");
    EXPECT_REFUSED(wrap_host(const_cast<double*>(data), shape, strides, BP_FLOAT64, nullptr, nullptr, true),
                   "wrap_host: found ");
  }
}

TEST(FromHost, RefusesStridesThatLeadOutOfTheAddressSpace) {
  const double data[] = {1, 2, 3, 4};
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const Ints& strides : {Ints{kMost, 1}, Ints{1, -kMost}, Ints{int64_t{1} << 60, 1}, Ints{1, int64_t{1} << 58}})
    EXPECT_REFUSED(from_host(data, Ints{2, 2}, strides, BP_FLOAT64, null_backend()), "from_host: ");
  const auto* odd = reinterpret_cast<const char*>(data) + 1;  // only copied from: it need not be aligned
  EXPECT_EQ(from_host(odd, Ints{1}, Ints{1}, BP_FLOAT64, null_backend()).get()->nbytes, 8u);
}

TEST(FromHost, MakesBoolsOfAnyBytes) {
  const uint8_t data[] = {0, 2, 255, 1};
  for (const Ints& strides : {Ints{}, Ints{2, 1}, Ints{1, 2}}) {
    const Tensor made = from_host(data, Ints{2, 2}, strides, BP_BOOL, null_backend());
    uint8_t found[4];
    to_host(made, found);
    EXPECT_EQ(found[0], 0);
    EXPECT_EQ(found[1] + found[2] + found[3], 3);
  }
}

TEST(ToHost, RefusesANullAddressUnlessThereAreNoElements) {
  EXPECT_REFUSED(to_host(scalar(1), nullptr), "to_host: the address to write to is null");
  to_host(tensor({}, {0}), nullptr);
}

TEST(FromDlpack, RefusesANullAddress) {
  EXPECT_REFUSED(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), "from_dlpack: the address");
  EXPECT_REFUSED(from_dlpack(static_cast<DLManagedTensorVersioned*>(nullptr)), "from_dlpack: the address");
}

TEST(Backward, TakesACotangentPerRootOrNone) {
  Tensor x = scalar(3);
  set_requires_grad(x, true);
  const Tensor roots[] = {multiply(x, x), multiply(x, x)}, ones[] = {scalar(1), scalar(1), scalar(1)};
  for (const size_t count : {size_t{1}, size_t{3}}) {
    const std::span<const Tensor> cotangents(ones, count);
    EXPECT_REFUSED(backward(roots, cotangents, {}), "backward: found ");
    EXPECT_REFUSED(gradients(roots, cotangents, {&x, 1}, {}), "gradients: found ");
  }
  EXPECT_FALSE(grad_of(x));
  backward(roots, {ones, 2}, {});
  EXPECT_EQ(values(grad_of(x)), std::vector<double>{12});
}

TEST(Backward, RefusesAnEmptyHookAndAnEmptyPullback) {
  Tensor x = scalar(3);
  set_requires_grad(x, true);
  EXPECT_REFUSED(add_hook(x, nullptr), "hook: the function is empty");
  EXPECT_REFUSED(Pullback()({}), "pullback: found an empty");
  EXPECT_REFUSED(Pullback().of_one(), "pullback: found an empty");
}

}  // namespace
}  // namespace backplane::core
