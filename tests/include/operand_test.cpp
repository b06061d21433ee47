// The dtype arguments of generated functions, and the error for a number that is not a dtype.
#include <gtest/gtest.h>

#include "backplane/ops.hpp"
#include "null_backend.hpp"

namespace backplane {
namespace {

// `sum(x, {1}, true)` would be sum's dtype int8, where keepdims is meant.
static_assert(std::is_convertible_v<bp_dtype, Dtype> && std::is_convertible_v<decltype(BP_FLOAT32), Dtype>);
static_assert(std::is_convertible_v<bp_dtype, std::optional<Dtype>>);
static_assert(!std::is_constructible_v<Dtype, bool> && !std::is_constructible_v<std::optional<Dtype>, bool>);
static_assert(!std::is_constructible_v<Dtype, int> && !std::is_constructible_v<Dtype, int64_t>);
static_assert(std::is_invocable_v<decltype(sum), Tensor, OptionalInts, bp_dtype, bool>);
static_assert(!std::is_invocable_v<decltype(sum), Tensor, OptionalInts, bool, bool>);
static_assert(!std::is_invocable_v<decltype(cumulative_sum), Tensor, int64_t, int, bool>);

TEST(Dtype, IsTakenFromAnEnumeratorAndFromATensor) {
  const Tensor x = testing::tensor({1, 2}, {2});
  EXPECT_EQ(zeros({3}, x.dtype(), testing::null_backend()).dtype(), BP_FLOAT64);
  EXPECT_EQ(zeros({3}, BP_FLOAT32, testing::null_backend()).dtype(), BP_FLOAT32);
}

TEST(Dtype, ANumberThatIsNoneIsRefusedByNumber) {
  const Tensor x = testing::tensor({1, 2}, {2});
  for (const bp_dtype wrong : {bp_dtype{77}, bp_dtype{200}, bp_dtype{BP_DTYPE_COUNT}, bp_dtype{BP_DTYPE_NONE}}) {
    const std::function<void()> calls[] = {[&] { zeros({3}, wrong, testing::null_backend()); },
                                           [&] { full({3}, 1, wrong, testing::null_backend()); },
                                           [&] { eye(3, {}, 0, wrong, testing::null_backend()); },
                                           [&] { arange(3, {}, 1, wrong, testing::null_backend()); },
                                           [&] { ones_like(x, wrong); },
                                           [&] { cast(x, wrong); },
                                           [&] { sum(x, {}, wrong); },
                                           [&] { cumulative_sum(x, 0, wrong); }};
    for (const std::function<void()>& call : calls) try {
        call();
        ADD_FAILURE() << "dtype " << wrong << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), BP_ERROR_DTYPE);
        EXPECT_NE(std::string(error.what()).find("the unknown dtype " + std::to_string(wrong)), std::string::npos)
            << error.what();
      }
  }
}

}  // namespace
}  // namespace backplane
