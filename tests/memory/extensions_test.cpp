// Laws of every extension of a backend: it is taken whole or larger, refused with its fault, and where a
// backend has no streams, extensions about streams are not requested.
#include "memory/devices/extensions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backplane/error.hpp"

namespace backplane::core {
namespace {

using ::testing::HasSubstr;

// A struct in its own page, with all slots filled; no test calls them.
struct Offered {
  const char* name;
  size_t size;      // of version 1, as far as it must be there
  size_t smallest;  // its header and the slots that must be filled
  bool is_about_streams;
  const void* (*found)(const BackendExtensions&);
  std::vector<char> bytes = std::vector<char>(BP_MAX_STRUCT_SIZE + 64, char(0xee));

  void set_size(size_t bytes_of_it) {
    const auto size_word = static_cast<uint32_t>(bytes_of_it);
    std::memcpy(bytes.data(), &size_word, sizeof size_word);
  }
};
Offered* offered = nullptr;

#define OFFERED(name, last, required, streams)                                      \
  {                                                                                 \
#name, offsetof(bp_extension_##name, last) + 8, required, streams,              \
        [](const BackendExtensions& e) { return static_cast<const void*>(e.name); } \
  }

std::vector<Offered> all() {
  return {OFFERED(streams, handle, offsetof(bp_extension_streams, create) + 8, true),
          OFFERED(time, drop, sizeof(bp_extension_time), true),
          OFFERED(events, release, sizeof(bp_extension_events), true),
          OFFERED(callbacks, notify, sizeof(bp_extension_callbacks), true),
          OFFERED(pinned, copy_to_host, sizeof(bp_extension_pinned), true),
          OFFERED(peer, copy, sizeof(bp_extension_peer), true),
          OFFERED(features, property, sizeof(bp_extension_features), false),
          OFFERED(memory, give, offsetof(bp_extension_memory, deallocate) + 8, false),
          OFFERED(capture, destroy, sizeof(bp_extension_capture), true),
          OFFERED(reset, reset, sizeof(bp_extension_reset), false),
          OFFERED(profiler, end, sizeof(bp_extension_profiler), false),
          OFFERED(compiler, destroy, offsetof(bp_extension_compiler, destroy) + 8, false)};
}

// "": it is taken; else what the backend is refused with.
std::string refusal(Offered& one, uint32_t flags = 0) {
  offered = &one;
  bp_backend_def def{};
  def.header = BP_HEADER(bp_backend_def);
  def.flags = flags;
  def.extension = [](void*, const char* name, uint32_t version) -> const void* {
    return version == 1 && std::strcmp(name, offered->name) == 0 ? offered->bytes.data() : nullptr;
  };
  try {
    const BackendExtensions found = extensions_of(def);
    int offers = 0;
    each_extension(found, [&](const char* name, bool is_there) {
      offers += is_there;
      EXPECT_TRUE(!is_there || std::strcmp(name, one.name) == 0) << name;
    });
    return one.found(found) == one.bytes.data() ? "" : offers ? "something else is taken" : "not taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("its extension \"" + std::string(one.name) + "\""));
    return error.what();
  }
}

TEST(Extensions, OfTheirSizeOrALargerOneAreTaken) {
  for (Offered& one : all())
    for (const size_t size : {one.size, one.size + 64, size_t{BP_MAX_STRUCT_SIZE}}) {
      one.set_size(size);
      EXPECT_EQ(refusal(one), "") << one.name << " of " << size;
    }
}

TEST(Extensions, OfImpossibleSizesAreRefused) {
  for (Offered& one : all())
    for (const size_t size : {size_t{0}, one.size - 8, one.size + 4, size_t{BP_MAX_STRUCT_SIZE} + 8}) {
      one.set_size(size);
      EXPECT_THAT(refusal(one), HasSubstr("struct_size of " + std::to_string(size))) << one.name;
    }
}

TEST(Extensions, EverySlotThatMustBeFilledIs) {
  for (Offered& one : all())
    for (size_t slot = sizeof(bp_header); slot < one.smallest; slot += 8) {
      one.set_size(one.size);
      const std::vector<char> filled = one.bytes;
      std::memset(one.bytes.data() + slot, 0, 8);
      EXPECT_THAT(refusal(one), HasSubstr("must fill")) << one.name << ", the slot at " << slot;
      one.bytes = filled;
    }
}

TEST(Extensions, APoolHasBothOfItsSlotsOrNone) {
  for (Offered& one : all()) {
    if (std::strcmp(one.name, BP_EXTENSION_MEMORY) != 0) continue;
    one.set_size(one.size);
    std::memset(one.bytes.data() + offsetof(bp_extension_memory, give), 0, 8);
    EXPECT_THAT(refusal(one), HasSubstr("both or none of take and give"));
    std::memset(one.bytes.data() + offsetof(bp_extension_memory, take), 0, 8);
    EXPECT_EQ(refusal(one), "");
  }
}

TEST(Extensions, AboutStreamsAreNotAskedOfABackendWithoutThem) {
  for (Offered& one : all()) {
    one.set_size(one.size);
    EXPECT_EQ(refusal(one, BP_BACKEND_SYNCHRONOUS), one.is_about_streams ? "not taken" : "") << one.name;
  }
}

}  // namespace
}  // namespace backplane::core
