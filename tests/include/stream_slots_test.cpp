// The slots that StreamSlots fills: an error of recorded work keeps its ticket, its message and its code.
#include "backplane/plugin/stream_slots.hpp"

#include <gtest/gtest.h>

#include <deque>

namespace backplane::plugin {
namespace {

bp_status said = BP_OK;

struct FakeDevice {
  bool current = false;
};

// As a CUDA context, without which the driver refuses all calls.
struct FakeScope {
  explicit FakeScope(FakeDevice& made_current) : device(made_current) { device.current = true; }
  ~FakeScope() { device.current = false; }
  FakeDevice& device;
};

struct FakeBackend {
  FakeBackend() {
    host_.set_error = [](bp_status code, const char*) { said = code; };
  }
  const bp_host* host() const { return &host_; }
  FakeDevice& device(int32_t) { return device_; }

 private:
  bp_host host_{};
  FakeDevice device_;
};

class FakeStream {
 public:
  explicit FakeStream(FakeDevice& device) : device_(device) { look(); }
  ~FakeStream() { look(); }
  void flush(uint64_t) { look(); }
  uint64_t completed() {
    look();
    return 9;
  }
  bp_status wait(uint64_t) {
    look();
    return errors_.empty() ? bp_status{BP_OK} : errors_.front().code;
  }
  void wait_behind(FakeStream&, uint64_t) { look(); }
  bool take_error(DeferredError& out) {
    look();
    if (errors_.empty()) return false;
    out = errors_.front();
    errors_.pop_front();
    return true;
  }

 private:
  void look() const { EXPECT_TRUE(device_.current); }

  FakeDevice& device_;
  std::deque<DeferredError> errors_{{3, "an index is out of range"}, {5, "the device is gone", BP_ERROR_DEVICE_LOST}};
};

TEST(StreamSlots, ErrorsKeepTheirCodes) {
  FakeBackend backend;
  bp_backend_def def{};
  StreamSlots<FakeBackend, FakeStream, FakeScope>::fill(def);
  bp_stream* stream = nullptr;
  ASSERT_EQ(def.stream_create(&backend, 0, &stream), BP_OK);
  for (const auto& [ticket, code] : {std::pair<uint64_t, bp_status>{3, BP_ERROR_DATA}, {5, BP_ERROR_DEVICE_LOST}}) {
    EXPECT_EQ(def.wait(&backend, 0, stream, ticket), code);
    EXPECT_EQ(said, code);
    bp_deferred_error error{};
    ASSERT_EQ(def.deferred_error(&backend, 0, stream, &error), BP_OK);
    EXPECT_EQ(error.ticket, ticket);
    EXPECT_EQ(error.code, code);
  }
  bp_deferred_error none{};
  ASSERT_EQ(def.deferred_error(&backend, 0, stream, &none), BP_OK);
  EXPECT_EQ(none.code, BP_OK);
  EXPECT_EQ(def.wait(&backend, 0, stream, 9), BP_OK);
  def.stream_destroy(&backend, 0, stream);
}

TEST(StreamSlots, EachSlotStandsInItsScope) {
  FakeBackend backend;
  bp_backend_def def{};
  StreamSlots<FakeBackend, FakeStream, FakeScope>::fill(def);
  bp_stream *stream = nullptr, *other = nullptr;
  ASSERT_EQ(def.stream_create(&backend, 0, &stream), BP_OK);
  ASSERT_EQ(def.stream_create(&backend, 0, &other), BP_OK);
  uint64_t ticket = 0;
  int32_t done = 0;
  bp_deferred_error error{};
  EXPECT_EQ(def.flush(&backend, 0, stream, 1), BP_OK);
  EXPECT_EQ(def.completed(&backend, 0, stream, &ticket), BP_OK);
  EXPECT_EQ(def.stream_wait(&backend, 0, stream, other, 1), BP_OK);
  EXPECT_EQ(def.wait_for(&backend, 0, stream, 1, 0, &done), BP_ERROR_DATA);
  EXPECT_EQ(def.deferred_error(&backend, 0, stream, &error), BP_OK);
  def.stream_destroy(&backend, 0, stream);
  def.stream_destroy(&backend, 0, other);
}

}  // namespace
}  // namespace backplane::plugin
