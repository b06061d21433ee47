// Laws of the other extensions: what a device is by name, work that is recorded and replayed, ranges, and a reset.
#include <cstring>
#include <set>

#include "backplane/device.hpp"
#include "backplane/stream.hpp"
#include "laws/table.hpp"

namespace backplane::conformance {
namespace {

constexpr uint32_t kMostNames = 1000;

// ---- features

void names_end_and_stay(const Table& table, const bp_extension_features& features) {
  std::set<std::string> words;
  for (uint32_t index = 0;; ++index) {
    const char *name = nullptr, *again = nullptr;
    table.call("features.feature", features, &bp_extension_features::feature, index, &name);
    table.call("features.feature", features, &bp_extension_features::feature, index, &again);
    if (!name) break;
    BP_CHECK(*name && again && std::strcmp(name, again) == 0, DATA, "features.feature: index ", index, " is \"", name,
             "\" and then \"", again ? again : "NULL", "\"; expected a word that stays");
    BP_CHECK(words.insert(name).second, DATA, "features.feature: \"", name, "\" comes twice");
    BP_CHECK(index < kMostNames, DATA, "features.feature: index ", index,
             " still has a name; expected NULL past the last");
  }
}

void properties_have_values(const Table& table, const bp_extension_features& features) {
  std::set<std::string> words;
  for (uint32_t index = 0;; ++index) {
    const char* name = nullptr;
    bp_value value{};
    table.call("features.property", features, &bp_extension_features::property, index, &name, &value);
    if (!name) break;
    BP_CHECK(*name && words.insert(name).second, DATA, "features.property: \"", name, "\" at index ", index,
             "; expected a name of its own");
    const bool known = value.tag == BP_TAG_BOOL || value.tag == BP_TAG_INT || value.tag == BP_TAG_FLOAT ||
                       (value.tag == BP_TAG_STRING && (value.u.s || value.count == 0));
    BP_CHECK(known, DATA, "features.property: \"", name, "\" has a value of tag ", value.tag,
             "; expected a bool, an int, a float or a string");
    BP_CHECK(index < kMostNames, DATA, "features.property: index ", index,
             " still has a name; expected NULL past the last");
  }
}

// ---- capture

class Recording {
 public:
  Recording(const Table& table, const bp_extension_capture& capture) : table_(table), capture_(capture) {}
  ~Recording() {
    if (made_) capture_.destroy(table_.def().context, table_.ordinal(), made_);
  }
  Recording(const Recording&) = delete;
  void end(const Stream& stream) {
    table_.call("capture.end", capture_, &bp_extension_capture::end, stream.handle(), &made_);
    BP_CHECK(made_, DATA, "capture.end gave BP_OK and no recording");
  }
  void replay(Stream& stream) const {
    table_.call("capture.replay", capture_, &bp_extension_capture::replay, made_, stream.handle(), stream.next());
  }

 private:
  const Table& table_;
  const bp_extension_capture& capture_;
  bp_recording* made_ = nullptr;
};

void begin(const Table& table, const bp_extension_capture& capture, const Stream& stream) {
  table.call("capture.begin", capture, &bp_extension_capture::begin, stream.handle());
}

// x -> y -> z, so that the order inside of it shows.
void recordings_run_at_each_replay(const Table& table, const bp_extension_capture& capture) {
  constexpr uint64_t kSize = 4096;
  Block x(table, kSize), y(table, kSize), z(table, kSize);
  Stream stream(table);
  for (Block* block : {&x, &y, &z}) block->put(stream, Bytes(kSize, 7));
  stream.wait();
  Recording recording(table, capture);
  {
    Stream own(table);
    begin(table, capture, own);
    y.copy_from(own, x, 0, 0, kSize);
    z.copy_from(own, y, 0, 0, kSize);
    recording.end(own);
  }
  for (unsigned round = 1; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round);
    const Bytes before = round == 1 ? Bytes(kSize, 7) : pattern(kSize, round - 1);
    x.put(stream, bytes);
    expect_bytes(z.get(stream, 0, kSize), before, "work that was captured and not replayed yet");
    recording.replay(stream);
    expect_bytes(z.get(stream, 0, kSize), bytes, "what a replay writes");
  }
  stream.wait();
}

void a_capture_is_given_up(const Table& table, const bp_extension_capture& capture) {
  constexpr uint64_t kSize = 4096;
  Block x(table, kSize), y(table, kSize);
  Stream stream(table);
  x.put(stream, pattern(kSize, 1));
  y.put(stream, Bytes(kSize, 7));
  stream.wait();
  {
    Stream own(table);
    begin(table, capture, own);
    y.copy_from(own, x, 0, 0, kSize);
    table.call("capture.end", capture, &bp_extension_capture::end, own.handle(), static_cast<bp_recording**>(nullptr));
  }
  expect_bytes(y.get(stream, 0, kSize), Bytes(kSize, 7), "work of a capture that was given up (capture.end with NULL)");
  y.copy_from(stream, x, 0, 0, kSize);
  expect_bytes(y.get(stream, 0, kSize), pattern(kSize, 1), "a copy after a capture that was given up");
}

// ---- profiler

// Marks are not work of the host: its tickets do not change, and neither do its results.
void ranges_change_nothing(const Table& table, const bp_extension_profiler& profiler) {
  constexpr uint64_t kSize = 4096;
  const auto begin_range = [&](const Stream& stream, const char* name) {
    profiler.begin(table.def().context, table.ordinal(), stream.handle(), name);
  };
  const auto end_range = [&](const Stream& stream) {
    profiler.end(table.def().context, table.ordinal(), stream.handle());
  };
  Block x(table, kSize), y(table, kSize);
  Stream stream(table);
  for (unsigned round = 1; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round);
    const std::string name = "range " + std::string(200, 'x') + " of round " + std::to_string(round);
    begin_range(stream, name.c_str());
    x.put(stream, bytes);
    for (int depth = 0; depth < 40; ++depth) begin_range(stream, "inner");
    y.copy_from(stream, x, 0, 0, kSize);
    for (int depth = 0; depth < 40; ++depth) end_range(stream);
    end_range(stream);
    expect_bytes(y.get(stream, 0, kSize), bytes, "work inside ranges of the profiler");
    if (table.synchronous()) continue;
    const uint64_t last = stream.flush();
    stream.wait();
    BP_CHECK(stream.completed() == last, DATA, "profiler: ticket ", stream.completed(),
             " is complete after ranges; expected ", last, ", the host's last");
  }
}

// ---- waits that end

constexpr uint64_t kLongWait = 60'000'000'000;  // nanoseconds

void waits_end_in_time(const Table& table) {
  LongWork work(table);
  Stream stream(table);
  work.put_on(stream);
  const uint64_t ticket = stream.flush();
  for (const uint64_t timeout : {uint64_t{0}, uint64_t{1000}, kLongWait}) {
    int32_t done = -1;
    table.call("wait_for", &bp_backend_def::wait_for, stream.handle(), ticket, timeout, &done);
    BP_CHECK(done == 0 || done == 1, DATA, "wait_for: done is ", done, "; expected 0 or 1");
    BP_CHECK(done == 0 || stream.completed() >= ticket, DATA, "wait_for: says that ticket ", ticket,
             " is complete, and `completed` says ", stream.completed());
    BP_CHECK(done == 1 || timeout != kLongWait, DATA, "wait_for: work of milliseconds did not end within a minute");
  }
}

// An aborted device stays aborted until the reset. Its blocks and its stream end with the reset.
void an_abort_ends_waits(const Table& table) {
  bp_stream* stream = make_stream(table);
  void *x = nullptr, *y = nullptr;
  constexpr uint64_t kSize = LongWork::kSize;
  table.call("allocate", &bp_backend_def::allocate, kSize, &x);
  table.call("allocate", &bp_backend_def::allocate, kSize, &y);
  uint64_t ticket = 0;
  for (int i = 0; i < 8; ++i)
    table.call("copy", &bp_backend_def::copy, stream, ++ticket, y, uint64_t{0}, x, uint64_t{0}, kSize);
  table.call("flush", &bp_backend_def::flush, stream, ticket);
  table.call("abort", &bp_backend_def::abort);
  const bp_status later =
      table.status(&bp_backend_def::copy, stream, ticket + 1, y, uint64_t{0}, x, uint64_t{0}, kSize);
  table.status(&bp_backend_def::flush, stream, ticket + 1);
  const bp_status waited = table.status(&bp_backend_def::wait, stream, ticket + 1);
  reset_device(table.device());
  BP_CHECK(later == BP_ERROR_DEVICE_LOST || waited == BP_ERROR_DEVICE_LOST, DATA,
           "abort: a copy after it gives status ", later, ", and the wait for it ", waited,
           "; expected BP_ERROR_DEVICE_LOST of one of them");
}

// ---- reset

// By the host's own reset, which gives its streams and pools up first.
void a_reset_device_is_as_new(const Table& table, const bp_extension_reset&) {
  constexpr uint64_t kSize = 1 << 20;
  synchronize(table.device());
  const auto in_use = [&] { return table.counts_memory() ? table.memory_in_use() : 0; };
  {
    const std::vector<float> ones(kSize / sizeof(float), 1.0f);
    const int64_t shape[] = {static_cast<int64_t>(ones.size())};
    const Tensor held = from_host(ones.data(), shape, {}, BP_FLOAT32, table.device());
    reset_device(table.device());
  }
  BP_CHECK(in_use() == 0, DATA, "reset: ", in_use(), " bytes are in use after it; expected none");
  Block x(table, kSize), y(table, kSize);
  Stream stream(table);
  x.put(stream, pattern(kSize, 1));
  y.copy_from(stream, x, 0, 0, kSize);
  expect_bytes(y.get(stream, 0, kSize), pattern(kSize, 1), "a copy on a device that was reset");
  stream.wait();
}

}  // namespace

void add_recording_laws(const Table& table, Laws& laws) {
  const auto* features = table.extension<bp_extension_features>(BP_EXTENSION_FEATURES);
  const auto* capture = table.extension<bp_extension_capture>(BP_EXTENSION_CAPTURE);
  const auto* profiler = table.extension<bp_extension_profiler>(BP_EXTENSION_PROFILER);
  const auto* reset = table.extension<bp_extension_reset>(BP_EXTENSION_RESET);
  add_law(laws, BP_EXTENSION_FEATURES, "features", features, [&table](auto& e) { names_end_and_stay(table, e); });
  add_law(laws, BP_EXTENSION_FEATURES, "properties", features, [&table](auto& e) { properties_have_values(table, e); });
  add_law(laws, BP_EXTENSION_CAPTURE, "replay", capture,
          [&table](auto& e) { recordings_run_at_each_replay(table, e); });
  add_law(laws, BP_EXTENSION_CAPTURE, "given up", capture, [&table](auto& e) { a_capture_is_given_up(table, e); });
  add_law(laws, BP_EXTENSION_PROFILER, "ranges", profiler, [&table](auto& e) { ranges_change_nothing(table, e); });
  const bp_backend_def& def = table.def();
  const bool timed = !table.synchronous() && BP_HAS(&def, bp_backend_def, wait_for) && def.wait_for;
  const bool aborts = !table.synchronous() && BP_HAS(&def, bp_backend_def, abort) && def.abort && reset;
  laws.push_back({"(device) streams", "timed waits", {}, "wait_for"});
  if (timed) laws.back().holds = [&table] { waits_end_in_time(table); };
  laws.push_back({"(device) reset", "abort", {}, "abort, and the extension reset"});
  if (aborts) laws.back().holds = [&table] { an_abort_ends_waits(table); };
  add_law(laws, BP_EXTENSION_RESET, "reset", reset, [&table](auto& e) { a_reset_device_is_as_new(table, e); });
}

}  // namespace backplane::conformance
