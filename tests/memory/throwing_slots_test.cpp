// An exception that leaves a slot of a backend's table becomes an error of the call, with the slot's name; where
// nothing can be raised it is dropped. It never ends the process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "backplane/device.hpp"
#include "backplane/error.hpp"
#include "backplane/stream.hpp"
#include "memory/lazy_backend.hpp"

namespace backplane::testing::throwing_slots_test {
namespace {

std::string throws;  // the slot that does

void may_throw(const char* slot) {
  if (throws == slot) throw std::runtime_error("the driver is upset");
}

const bp_backend_def& kind() {
  static const bp_backend_def def = lazy_definition();
  return def;
}

bp_backend_def definition() {
  bp_backend_def d = kind();
  d.name = "upset";
  d.deallocate = [](void* context, int32_t ordinal, void* data, uint64_t size) -> bp_status {
    const bp_status status =
        kind().deallocate(context, ordinal, data, size);  // before it throws, so that the test does not leak
    may_throw("deallocate");
    return status;
  };
  d.stream_destroy = [](void* context, int32_t ordinal, bp_stream* s) {
    may_throw("stream_destroy");
    kind().stream_destroy(context, ordinal, s);
  };
  d.flush = [](void* context, int32_t ordinal, bp_stream* s, uint64_t ticket) -> bp_status {
    may_throw("flush");
    return kind().flush(context, ordinal, s, ticket);
  };
  d.completed = [](void* context, int32_t ordinal, bp_stream* s, uint64_t* ticket) -> bp_status {
    may_throw("completed");
    return kind().completed(context, ordinal, s, ticket);
  };
  d.wait = [](void* context, int32_t ordinal, bp_stream* s, uint64_t ticket) -> bp_status {
    may_throw("wait");
    return kind().wait(context, ordinal, s, ticket);
  };
  d.stream_wait = [](void* context, int32_t ordinal, bp_stream* s, bp_stream* other, uint64_t ticket) -> bp_status {
    may_throw("stream_wait");
    return kind().stream_wait(context, ordinal, s, other, ticket);
  };
  d.deferred_error = [](void* context, int32_t ordinal, bp_stream* s, bp_deferred_error* out) -> bp_status {
    may_throw("deferred_error");
    return kind().deferred_error(context, ordinal, s, out);
  };
  return d;
}

bp_device throwing() {
  static const bp_device id = [] {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "upset";
    record->index = 6;
    bp_backend_def backend = definition();
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
    bp_kernel_def kernel = kernel_row("bp::negative", "upset", twice);
    kernel.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
    EXPECT_EQ(core::host_table.register_kernel(record, &kernel), BP_OK) << core::host_table.get_error();
    return parse_device("upset");
  }();
  return id;
}

Tensor pair_of_numbers() {
  const double v[] = {1, 2};
  const int64_t size = 2;
  return from_host(v, Shape(&size, 1), {}, BP_FLOAT64, throwing());
}

// The message of what `call` raises, or "".
template <class Call>
std::string error_of(const char* slot, Call call) {
  throws = slot;
  std::string message;
  try {
    call();
  } catch (const Error& error) {
    message = error.what();
  }
  throws.clear();
  return message;
}

TEST(ThrowingSlots, AreErrorsOfTheCall) {
  using ::testing::HasSubstr;
  for (const char* slot : {"flush", "wait", "deferred_error"}) {
    const Tensor x = pair_of_numbers();
    EXPECT_THAT(error_of(slot, [&] { values(doubled(x)); }), HasSubstr("the driver is upset")) << slot;
  }
  const Tensor x = pair_of_numbers();
  const Stream other(throwing());
  EXPECT_THAT(error_of("stream_wait",
                       [&] {
                         const StreamScope scope(other);
                         doubled(x);
                       }),
              HasSubstr("stream_wait threw an exception: the driver is upset"));
}

TEST(ThrowingSlots, EndNothingWhereNothingIsRaised) {
  for (const char* slot : {"completed", "deallocate", "flush", "wait", "deferred_error"}) {
    EXPECT_EQ(error_of(slot, [] { Tensor x = pair_of_numbers(); }), "") << slot;
    EXPECT_EQ(error_of("deallocate", [] { empty_cache(throwing()); }), "") << slot;
  }
  EXPECT_EQ(values(doubled(pair_of_numbers())), (std::vector<double>{2, 4}));
}

}  // namespace
}  // namespace backplane::testing::throwing_slots_test
