// Laws of a device's memory: a missing slot of a backend is refused by name, a failed allocation reports the requested
// size and leaves everything usable, and sizes whose product overflows are such failures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "null_backend.hpp"

namespace backplane::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Failure {
  bp_status code = BP_OK;
  std::string text;
};
Failure failure_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

TEST(Memory, WhatABackendDoesNotOfferIsRefusedByName) {
  const bp_device device = null_backend();
  const std::pair<const char*, std::function<void()>> doors[] = {
      {"memory_stats", [&] { memory_stats(device); }},
      {"reset_peak_memory_stats", [&] { reset_peak_memory_stats(device); }},
      {"empty_cache", [&] { empty_cache(device); }},
      {"set_memory_limit", [&] { set_memory_limit(device, 1); }}};
  for (const auto& [name, door] : doors) {
    const Failure failure = failure_of(door);
    EXPECT_EQ(failure.code, BP_ERROR_NOT_IMPLEMENTED) << name;
    EXPECT_THAT(failure.text,
                AllOf(HasSubstr(std::string(name) + ": device null does not offer it"), HasSubstr("\"null\"")));
  }
}

TEST(Memory, AFailedAllocationSaysWhatWasAskedForAndHowToFixIt) {
  const int64_t before = live_blocks();
  const int64_t shape[] = {int64_t{1} << 40};
  const Failure failure = failure_of([&] { empty(shape, BP_FLOAT64, null_backend()); });
  EXPECT_EQ(failure.code, BP_ERROR_MEMORY);
  EXPECT_THAT(failure.text, AllOf(HasSubstr("device null"), HasSubstr("8796093022208 bytes (8.0 TiB)"),
                                  HasSubstr("Fix: free tensors"), Not(HasSubstr("set_memory_limit"))));
  EXPECT_EQ(live_blocks(), before);
  EXPECT_EQ(values(add(tensor({1}, {1}), tensor({2}, {1}))), std::vector<double>{3});
}

TEST(Memory, TheOpIsNamed) {
  const Tensor one = tensor({1}, {1});
  const int64_t shape[] = {int64_t{1} << 40};
  const Tensor wide = op("broadcast_to", {value(one), value(Shape(shape))});
  EXPECT_THAT(failure_of([&] { add(wide, wide); }).text, AllOf(HasSubstr("bp::add"), HasSubstr("8796093022208 bytes")));
}

TEST(Memory, ASizeThatOverflowsIsAFailedAllocation) {
  const std::vector<std::vector<int64_t>> shapes = {
      {int64_t{1} << 60}, {int64_t{1} << 61}, {int64_t{1} << 62}, {int64_t{1} << 31, int64_t{1} << 31, 2}};
  for (const auto& shape : shapes)
    EXPECT_EQ(failure_of([&] { empty(shape, BP_FLOAT64, null_backend()); }).code, BP_ERROR_MEMORY) << shape[0];
  const std::vector<int64_t> none = {int64_t{1} << 55, 0}, beyond = {int64_t{1} << 62, int64_t{1} << 62, 0};
  EXPECT_EQ(empty(none, BP_FLOAT64, null_backend()).get()->nbytes, 0u);
  EXPECT_EQ(failure_of([&] { empty(beyond, BP_FLOAT64, null_backend()); }).code, BP_ERROR_MEMORY);
  const std::vector<int64_t> ranked = {2, 2, 2, 2, 2, 2, int64_t{1} << 55};
  EXPECT_EQ(failure_of([&] { empty(ranked, BP_FLOAT64, null_backend()); }).code, BP_ERROR_MEMORY);
}

}  // namespace
}  // namespace backplane::testing
