// Calls of a backend's table that name one stream: one at a time, for any number of threads. `wait` is left out:
// it may run beside others, because it blocks.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <thread>

#include "backplane/stream.hpp"
#include "host_backend.hpp"
#include "memory/devices/device.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"

namespace backplane::testing::stream_calls_test {
namespace {

// Who is inside the table. The call that `held` names stays there until another one comes, or for a while.
struct Watch {
  std::mutex mutex;
  std::condition_variable changed;
  std::string held;
  int inside = 0;
  bool holding = false, met = false;

  void enter(const char* call) {
    std::unique_lock lock(mutex);
    if (++inside > 1) met = true;
    changed.notify_all();
    if (!holding && held == call) {
      holding = true;
      changed.notify_all();
      changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return met; });
    }
  }
  void leave() {
    std::lock_guard lock(mutex);
    --inside;
  }
  void wait_until_held() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return holding; });
  }
} watch;

struct Inside {
  explicit Inside(const char* call) { watch.enter(call); }
  ~Inside() { watch.leave(); }
};

char* at(void* data, uint64_t offset) { return static_cast<char*>(data) + offset; }

// Work is done at once; the backend is asynchronous all the same, so that the host keeps its streams.
bp_backend_def definition() {
  bp_backend_def d = host_backend("watched");
  d.flags = 0;
  d.copy_from_host = [](void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t offset, const void* src,
                        uint64_t size) -> bp_status {
    const Inside inside("copy_from_host");
    std::memcpy(at(dst, offset), src, size);
    return BP_OK;
  };
  d.copy_to_host = [](void*, int32_t, bp_stream*, void* dst, void* src, uint64_t offset, uint64_t size) -> bp_status {
    const Inside inside("copy_to_host");
    std::memcpy(dst, at(src, offset), size);
    return BP_OK;
  };
  d.copy = [](void*, int32_t, bp_stream*, uint64_t, void* dst, uint64_t dst_offset, void* src, uint64_t src_offset,
              uint64_t size) -> bp_status {
    const Inside inside("copy");
    std::memmove(at(dst, dst_offset), at(src, src_offset), size);
    return BP_OK;
  };
  d.stream_create = [](void*, int32_t, bp_stream** s) -> bp_status {
    *s = reinterpret_cast<bp_stream*>(new char);
    return BP_OK;
  };
  d.stream_destroy = [](void*, int32_t, bp_stream* s) { delete reinterpret_cast<char*>(s); };
  d.flush = [](void*, int32_t, bp_stream*, uint64_t) -> bp_status {
    const Inside inside("flush");
    return BP_OK;
  };
  d.completed = [](void*, int32_t, bp_stream*, uint64_t* ticket) -> bp_status {
    const Inside inside("completed");
    *ticket = 0;
    return BP_OK;
  };
  d.wait = [](void*, int32_t, bp_stream*, uint64_t) -> bp_status { return BP_OK; };
  d.stream_wait = [](void*, int32_t, bp_stream*, bp_stream*, uint64_t) -> bp_status { return BP_OK; };
  d.deferred_error = [](void*, int32_t, bp_stream*, bp_deferred_error* out) -> bp_status {
    const Inside inside("deferred_error");
    out->code = BP_OK;
    return BP_OK;
  };
  return d;
}

bp_status negative(const bp_frame*, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const Inside inside("kernel");
  std::memcpy(outs[0].u.t->dl.data, args[0].u.t->dl.data, args[0].u.t->nbytes);
  return BP_OK;
}

bp_device watched_backend() {
  static const bp_device id = [] {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "watched";
    record->index = 2;
    const bp_backend_def backend = definition();
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
    const bp_kernel_def kernel = kernel_row("bp::negative", "watched", negative);
    EXPECT_EQ(core::host_table.register_kernel(record, &kernel), BP_OK) << core::host_table.get_error();
    return parse_device("watched");
  }();
  return id;
}

Tensor new_tensor() {
  const double elements[] = {1, 2, 3};
  const int64_t shape[] = {3};
  return from_host(elements, shape, {}, BP_FLOAT64, watched_backend());
}

const std::map<std::string, std::function<void(Tensor&)>> kCalls = {
    {"copy_from_host", [](Tensor&) { new_tensor(); }},
    {"copy_to_host", [](Tensor& x) { values(x); }},
    {"flush", [](Tensor&) { values(new_tensor()); }},
    {"kernel", [](Tensor& x) { op("negative", {value(x)}); }},
};

TEST(StreamCalls, OneAtATimeFromAnyThread) {
  Tensor x = new_tensor(), y = new_tensor();
  for (const auto& [held, call] : kCalls)
    for (const auto& [other, beside] : kCalls) {
      {
        std::lock_guard lock(watch.mutex);
        watch.held = held;
        watch.holding = watch.met = false;
      }
      std::thread holder([&, call = call] { call(x); });
      watch.wait_until_held();
      beside(y);
      holder.join();
      EXPECT_FALSE(watch.met) << other << " came while " << held << " was inside";
    }
}

TEST(StreamCalls, AStreamThatIsNullIsRefused) {
  watched_backend();
  auto* record = new bp_plugin_record;
  record->name = "streamless";
  record->index = 5;
  bp_backend_def backend = definition();
  backend.name = "streamless";
  backend.stream_create = [](void*, int32_t, bp_stream** s) -> bp_status { return *s = nullptr, BP_OK; };
  ASSERT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
  const double numbers[] = {1};
  const int64_t shape[] = {1};
  try {
    from_host(numbers, shape, {}, BP_FLOAT64, parse_device("streamless"));
    FAIL() << "no stream was taken for one";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "device streamless: stream_create gave BP_OK and NULL; expected a stream");
  }
}

}  // namespace
}  // namespace backplane::testing::stream_calls_test
