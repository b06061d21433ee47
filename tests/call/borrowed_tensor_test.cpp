// Tensors over lent memory: one handle serves many calls, unless somebody keeps it.
#include "backplane/borrowed_tensor.hpp"

#include <gtest/gtest.h>

#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::null_backend;
using testing::values;

TEST(BorrowedTensor, ServesMemoryAfterMemory) {
  null_backend();  // whose memory is the host\'s
  double a[] = {1, 2, 3, 4, 5, 6};
  float b[] = {7, 8};
  BorrowedTensor lent;
  const bp_tensor* handle = lent.point(a, Ints{2, 3}, {}, BP_FLOAT64, Lent::kChanged).get();
  EXPECT_TRUE(lent.point(a, Ints{2, 3}, {}, BP_FLOAT64, Lent::kChanged).is_contiguous());
  const Tensor& strided = lent.point(a + 5, Ints{3}, Ints{-2}, BP_FLOAT64, Lent::kRead);
  EXPECT_EQ(strided.get(), handle);
  EXPECT_FALSE(strided.is_contiguous());
  EXPECT_EQ(values(strided), (std::vector<double>{6, 4, 2}));
  const Tensor& narrow = lent.point(b, Ints{2}, {}, BP_FLOAT32, Lent::kChanged);
  EXPECT_EQ(narrow.get(), handle);
  EXPECT_EQ(narrow.dtype(), BP_FLOAT32);
  EXPECT_EQ(narrow.get()->nbytes, sizeof b);
  EXPECT_EQ(values(lent.point(a, {}, {}, BP_FLOAT64, Lent::kChanged)), std::vector<double>{1});
  EXPECT_EQ(lent.point(nullptr, Ints{0, 3}, {}, BP_FLOAT64, Lent::kChanged).get()->nbytes, 0u);
}

TEST(BorrowedTensor, LeavesAKeptTensorAsItIs) {
  null_backend();  // whose memory is the host\'s
  double a[] = {1, 2}, b[] = {3, 4};
  BorrowedTensor lent;
  const Tensor kept = lent.point(a, Ints{2}, {}, BP_FLOAT64, Lent::kChanged);
  EXPECT_TRUE(lent.is_kept());
  const Tensor& next = lent.point(b, Ints{2}, {}, BP_FLOAT64, Lent::kChanged);
  EXPECT_NE(next.get(), kept.get());
  EXPECT_FALSE(lent.is_kept());
  EXPECT_EQ(values(kept), (std::vector<double>{1, 2}));
  EXPECT_EQ(values(next), (std::vector<double>{3, 4}));
}

TEST(BorrowedTensor, RefusesWhatWrapHostRefuses) {
  null_backend();  // whose memory is the host\'s
  double a[] = {1, 2};
  char bools[] = {0, 1, 2};
  BorrowedTensor lent;
  for (int again = 0; again < 2; ++again) {
    EXPECT_THROW(lent.point(a, Ints{2}, Ints{1, 1}, BP_FLOAT64, Lent::kChanged), Error);
    EXPECT_THROW(lent.point(a, Ints{-2}, {}, BP_FLOAT64, Lent::kChanged), Error);
    EXPECT_THROW(lent.point(reinterpret_cast<char*>(a) + 1, Ints{1}, {}, BP_FLOAT64, Lent::kChanged), Error);
    EXPECT_THROW(lent.point(nullptr, Ints{1}, {}, BP_FLOAT64, Lent::kChanged), Error);
    EXPECT_THROW(lent.point(bools, Ints{3}, {}, BP_BOOL, Lent::kChanged), Error);
    EXPECT_THROW(lent.point(a, Ints{2}, {}, BP_DTYPE_COUNT, Lent::kChanged), Error);
    EXPECT_NO_THROW(lent.point(bools, Ints{3}, {}, BP_BOOL, Lent::kOverwritten));
    EXPECT_EQ(lent.point(bools, Ints{3}, {}, BP_BOOL, Lent::kOverwritten).dtype(), BP_BOOL);
    EXPECT_EQ(values(lent.point(a, Ints{2}, {}, BP_FLOAT64, Lent::kChanged)), (std::vector<double>{1, 2}));
  }
  BorrowedTensor fresh;
  EXPECT_EQ(fresh.point(bools, Ints{3}, {}, BP_BOOL, Lent::kOverwritten).dtype(), BP_BOOL);
}

}  // namespace
}  // namespace backplane::core
