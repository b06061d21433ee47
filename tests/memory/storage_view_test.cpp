// Views over a storage by dtype, sizes, strides and offset: they show and change its elements, and never leave it.
#include "backplane/storage_view.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "backplane/device.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

std::vector<float> elements_of(const Tensor& tensor) {
  int64_t count = 1;
  for (int64_t size : tensor.shape()) count *= size;
  std::vector<float> found(static_cast<size_t>(count));
  to_host(tensor, found.data());
  return found;
}

Tensor six_floats() {
  const float data[] = {0, 1, 2, 3, 4, 5};
  const int64_t shape[] = {6};
  return from_host(data, shape, {}, BP_FLOAT32, null_backend());
}

TEST(StorageView, ShowsElementsByStridesAndOffset) {
  const Tensor base = six_floats();
  const int64_t shape[] = {2, 2}, strides[] = {1, 2}, repeated[] = {0, 1};
  EXPECT_EQ(elements_of(view_storage(base, BP_FLOAT32, shape, strides, 4)), (std::vector<float>{1, 3, 2, 4}));
  EXPECT_EQ(elements_of(view_storage(base, BP_FLOAT32, shape, repeated, 0)), (std::vector<float>{0, 1, 0, 1}));
  EXPECT_EQ(storage_bytes(base), 24u);
}

TEST(StorageView, CountsTheOffsetFromTheStorage) {
  const int64_t shape[] = {2}, one[] = {1};
  const Tensor part = view_storage(six_floats(), BP_FLOAT32, shape, one, 12);
  EXPECT_EQ(elements_of(view_storage(part, BP_FLOAT32, shape, one, 0)), (std::vector<float>{0, 1}));
}

TEST(StorageView, RefusesWhatLiesOutside) {
  const Tensor base = six_floats();
  const int64_t shape[] = {3}, none[] = {0}, one[] = {1}, three[] = {3}, back[] = {-1}, huge[] = {INT64_MAX};
  EXPECT_THROW(view_storage(base, BP_FLOAT32, shape, three, 0), Error);
  EXPECT_THROW(view_storage(base, BP_FLOAT32, shape, one, 16), Error);
  EXPECT_THROW(view_storage(base, BP_FLOAT32, shape, one, 2), Error);
  EXPECT_THROW(view_storage(base, BP_FLOAT32, shape, back, 8), Error);
  EXPECT_THROW(view_storage(base, BP_FLOAT64, huge, huge, 0), Error);
  EXPECT_THROW(view_storage(base, BP_FLOAT32, shape, {}, 0), Error);
  EXPECT_EQ(elements_of(view_storage(base, BP_FLOAT32, none, one, 400)).size(), 0u);
}

}  // namespace
}  // namespace backplane::testing
