// Laws of the extensions about streams: streams of a priority and those of others, time, callbacks, peers.
//
// An order is tested behind work that takes a while, and behind a callback that sleeps: work that runs too early is
// seen.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <set>
#include <thread>

#include "backplane/device.hpp"
#include "laws/table.hpp"

namespace backplane::conformance {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPause = std::chrono::milliseconds(30);
constexpr auto kHeld = std::chrono::milliseconds(300);

// ---- streams

std::unique_ptr<Stream> with_priority(const Table& table, const bp_extension_streams& streams, int32_t priority) {
  bp_stream* made = nullptr;
  table.call("streams.create", streams, &bp_extension_streams::create, priority, &made);
  BP_CHECK(made, DATA, "streams.create of priority ", priority, " gave BP_OK and no stream");
  return std::make_unique<Stream>(table, made);
}

void priorities_have_streams(const Table& table, const bp_extension_streams& streams) {
  int32_t least = 1, greatest = -1;
  table.call("streams.priorities", streams, &bp_extension_streams::priorities, &least, &greatest);
  BP_CHECK(least <= 0 && greatest >= 0, DATA, "streams.priorities: found ", least, " to ", greatest,
           ", expected a range that holds 0, the priority of stream_create");
  const Bytes bytes = pattern(4096, 3);
  for (const int32_t priority : std::set<int32_t>{least, 0, greatest}) {
    Block x(table, bytes.size()), y(table, bytes.size());
    const auto stream = with_priority(table, streams, priority);
    x.put(*stream, bytes);
    y.copy_from(*stream, x, 0, 0, bytes.size());
    expect_bytes(y.get(*stream, 0, bytes.size()), bytes, "copies on a stream of a priority");
    stream->flush();
  }
}

// Work that another handle of the same stream put there comes first, without a wait between the two.
void foreign_streams_are_in_order(const Table& table, const bp_extension_streams& streams) {
  LongWork work(table);
  Block x(table, 4096);
  Stream theirs(table);
  void* handle = nullptr;
  table.call("streams.handle", streams, &bp_extension_streams::handle, theirs.handle(), &handle);
  BP_CHECK(handle, DATA, "streams.handle gave BP_OK and NULL");
  bp_stream* made = nullptr;
  table.call("streams.import_handle", streams, &bp_extension_streams::import_handle, handle, &made);
  BP_CHECK(made, DATA, "streams.import_handle gave BP_OK and no stream");
  Stream ours(table, made);
  for (unsigned round = 1; round < 5; ++round) {
    Stream &first = round % 2 ? theirs : ours, &second = round % 2 ? ours : theirs;
    x.put(first, Bytes(4096, 0));
    work.put_on(first);
    x.put(first, pattern(4096, round));
    first.flush();
    expect_bytes(x.get(second, 0, 4096), pattern(4096, round),
                 "work of a stream, read through the stream that import_handle made of its handle");
    second.wait();
    first.wait();
  }
}

// ---- time

class Stamp {
 public:
  Stamp(const Table& table, const bp_extension_time& time, Stream& stream) : table_(table), time_(time) {
    table.call("time.stamp", time, &bp_extension_time::stamp, stream.handle(), stream.next(), &stamp_);
  }
  ~Stamp() {
    if (stamp_) time_.drop(table_.def().context, table_.ordinal(), stamp_);
  }
  Stamp(const Stamp&) = delete;
  uint64_t read() const {
    uint64_t nanoseconds = 0;
    table_.call("time.read", time_, &bp_extension_time::read, stamp_, &nanoseconds);
    return nanoseconds;
  }

 private:
  const Table& table_;
  const bp_extension_time& time_;
  bp_time_stamp* stamp_ = nullptr;
};

void BP_CALL sleep_a_while(void*) { std::this_thread::sleep_for(kPause); }

// `callbacks` may be nullptr; with them the stream sleeps between the stamps.
void stamps_are_of_the_device(const Table& table, const bp_extension_time& time,
                              const bp_extension_callbacks* callbacks) {
  LongWork work(table);
  Stream first(table), second(table);
  const auto begun = Clock::now();
  const Stamp a(table, time, first);
  work.put_on(first);
  if (callbacks)
    table.call("callbacks.notify", *callbacks, &bp_extension_callbacks::notify, first.handle(), first.next(),
               &sleep_a_while, static_cast<void*>(nullptr));
  const Stamp b(table, time, first);
  second.wait_for(first, first.flush());
  const Stamp c(table, time, second);
  second.wait();
  first.wait();
  const auto host = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun).count();
  const uint64_t at_a = a.read(), at_b = b.read(), at_c = c.read();
  BP_CHECK(at_a <= at_b, DATA, "time: two stamps of a stream read ", at_a, " and then ", at_b, " ns");
  BP_CHECK(at_b <= at_c, DATA, "time: a stamp behind stream_wait reads ", at_c, " ns, the one waited for ", at_b);
  const auto between = static_cast<int64_t>(at_b - at_a);
  // Clocks of two makers agree to some per cent.
  BP_CHECK(between <= host + host / 4 + 1'000'000, DATA, "time: ", between,
           " ns lie between two stamps, where the host saw ", host,
           " ns from before the first to after the second; expected nanoseconds");
  const auto least = std::chrono::nanoseconds(kPause).count() * 3 / 4;
  BP_CHECK(!callbacks || between >= least, DATA, "time: ", between,
           " ns lie between two stamps with a callback between them that slept ",
           std::chrono::nanoseconds(kPause).count(), " ns; expected when the device came there");
}

// ---- callbacks

struct Heard {
  std::atomic<int> begun{0}, calls{0};
  std::atomic<bool> others_thread{false};
  std::thread::id host = std::this_thread::get_id();
  static void BP_CALL hear(void* argument) {
    Heard& heard = *static_cast<Heard*>(argument);
    heard.others_thread = std::this_thread::get_id() != heard.host;
    ++heard.begun;
    std::this_thread::sleep_for(kPause);
    ++heard.calls;
  }
};

void completions_come_between(const Table& table, const bp_extension_callbacks& callbacks) {
  Heard heard;
  LongWork work(table);
  for (int round = 1; round <= 3; ++round) {
    Stream stream(table);
    work.put_on(stream);
    const uint64_t before = stream.flush();
    const int begun = heard.begun;
    table.call("callbacks.notify", callbacks, &bp_extension_callbacks::notify, stream.handle(), stream.next(),
               &Heard::hear, static_cast<void*>(&heard));
    stream.flush();
    for (const auto start = Clock::now(); heard.begun == begun; std::this_thread::yield())
      BP_CHECK(Clock::now() - start < std::chrono::seconds(20), DATA,
               "callbacks: the function was not called in twenty seconds after flush");
    const uint64_t completed = stream.completed();
    stream.wait();
    while (heard.calls < round) std::this_thread::yield();  // it points into this frame
    BP_CHECK(heard.others_thread, DATA, "callbacks: the function ran on the host's thread, inside notify");
    BP_CHECK(completed >= before, DATA, "callbacks: the function ran when ticket ", completed,
             " was complete; expected it after ", before, ", the work before it");
    BP_CHECK(heard.calls == round, DATA, "callbacks: ", heard.calls - round + 1,
             " calls of a function that was given once");
  }
}

// A function that ends only when it is released, or when a check that must wait for it ran too early: so a
// machine that does not run this thread for a while cannot hide a fault.
struct Held {
  std::atomic<bool> go{false}, let_go{false}, over{false};
  static void BP_CALL hold(void* argument) {
    Held& held = *static_cast<Held*>(argument);
    for (const auto start = Clock::now(); !held.go && Clock::now() - start < kHeld;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    held.let_go = held.go.load();
    held.over = true;
  }
  // True: who calls came here while the function was held. It points into the caller's frame.
  bool release() {
    go = true;
    while (!over) std::this_thread::yield();
    return let_go;
  }
};

void tickets_of_completions_come_after(const Table& table, const bp_extension_callbacks& callbacks) {
  Held held;
  Stream stream(table);
  table.call("callbacks.notify", callbacks, &bp_extension_callbacks::notify, stream.handle(), stream.next(),
             &Held::hold, static_cast<void*>(&held));
  stream.wait();
  BP_CHECK(!held.release(), DATA, "callbacks: the ticket was complete before the function was over");
}

void completions_end_before_their_stream(const Table& table, const bp_extension_callbacks& callbacks) {
  Held held;
  bp_stream* made = nullptr;
  table.call("stream_create", &bp_backend_def::stream_create, &made);
  table.call("callbacks.notify", callbacks, &bp_extension_callbacks::notify, made, uint64_t{1}, &Held::hold,
             static_cast<void*>(&held));
  table.call("flush", &bp_backend_def::flush, made, uint64_t{1});
  table.def().stream_destroy(table.def().context, table.ordinal(), made);
  BP_CHECK(!held.release(), DATA, "callbacks: stream_destroy returned before the function was over");
}

// ---- peers

struct Peer {
  bp_device device;
  std::string backend;
};

// Devices on which both backends agree; one that fails to answer does not.
std::vector<Peer> peers_of(const Table& table, const bp_extension_peer& peer) {
  std::vector<Peer> found;
  for (const DeviceInfo& info : devices()) {
    if (info.device.backend == table.device().backend && info.device.ordinal == table.ordinal()) continue;
    const Table other(info.device);
    const auto* back = other.extension<bp_extension_peer>(BP_EXTENSION_PEER);
    if (!back) continue;
    int32_t here = 0, there = 0;
    table.status(peer, &bp_extension_peer::agrees, other.def().name, info.device.ordinal, &here);
    other.status(*back, &bp_extension_peer::agrees, table.def().name, table.ordinal(), &there);
    if (here && there) found.push_back({info.device, other.def().name});
  }
  return found;
}

// ---- events of the vendor's

void events_order_streams(const Table& table, const bp_extension_events& events) {
  constexpr uint64_t kSize = 1 << 20;
  LongWork work(table);
  Block source(table, kSize), target(table, kSize);
  Stream from(table), to(table);
  for (unsigned round = 1; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round);
    work.put_on(from);
    source.put(from, bytes);
    void* event = nullptr;
    table.call("events.record", events, &bp_extension_events::record, from.handle(), from.next(), &event);
    BP_CHECK(event, DATA, "events.record: gave BP_OK and NULL; expected an event");
    from.flush();
    table.call("events.wait", events, &bp_extension_events::wait, to.handle(), to.next(), event);
    events.release(table.def().context, table.device().ordinal, event);
    target.copy_from(to, source, 0, 0, kSize);
    expect_bytes(target.get(to, 0, kSize), bytes, "a copy behind an event of another stream");
    to.wait();
    from.wait();
  }
}

void strangers_are_no_peers(const Table& table, const bp_extension_peer& peer) {
  int32_t yes = 0;
  const bp_status status = table.status(peer, &bp_extension_peer::agrees, "no_such_backend", int32_t{0}, &yes);
  BP_CHECK(status != BP_OK || yes == 0, DATA, "peer.agrees: yes to the device 0 of \"no_such_backend\"; expected no");
}

void peers_copy_in_order(const Table& table, const bp_extension_peer& peer, const Peer& other) {
  const Table there(other.device);
  const uint64_t unit = std::max(table.whole(256), there.whole(256)), size = 16 * unit;
  LongWork work(there);
  Block source(there, size), target(table, size);
  Stream from(there), to(table);
  for (unsigned round = 1; round < 4; ++round) {
    Bytes expected(size, 0);
    const Bytes bytes = pattern(size, round);
    std::copy_n(bytes.data() + 2 * unit, unit, expected.data() + unit);
    source.put(from, Bytes(size, 1));
    target.put(to, Bytes(size, 0));
    work.put_on(from);
    source.put(from, bytes);
    const uint64_t ticket = from.flush();
    table.call("peer.stream_wait", peer, &bp_extension_peer::stream_wait, to.handle(), other.backend.c_str(),
               other.device.ordinal, from.handle(), ticket);
    table.call("peer.copy", peer, &bp_extension_peer::copy, to.handle(), to.next(), target.data(), unit,
               other.backend.c_str(), other.device.ordinal, source.data(), 2 * unit, unit);
    expect_bytes(target.get(to, 0, size), expected, "peer.copy behind peer.stream_wait");
    to.wait();
    from.wait();
  }
}

}  // namespace

void add_stream_laws(const Table& table, Laws& laws) {
  const auto* streams = table.extension<bp_extension_streams>(BP_EXTENSION_STREAMS);
  const auto* time = table.extension<bp_extension_time>(BP_EXTENSION_TIME);
  const auto* events = table.extension<bp_extension_events>(BP_EXTENSION_EVENTS);
  const auto* callbacks = table.extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS);
  const auto* peer = table.extension<bp_extension_peer>(BP_EXTENSION_PEER);
  add_law(laws, BP_EXTENSION_STREAMS, "priorities", streams, [&table](auto& e) { priorities_have_streams(table, e); });
  const bool foreign = streams && streams->import_handle && streams->handle;
  add_law(laws, BP_EXTENSION_STREAMS, "streams of others", foreign ? streams : nullptr,
          [&table](auto& e) { foreign_streams_are_in_order(table, e); });
  add_law(laws, BP_EXTENSION_EVENTS, "order", events, [&table](auto& e) { events_order_streams(table, e); });
  add_law(laws, BP_EXTENSION_CALLBACKS, "order", callbacks, [&table](auto& e) { completions_come_between(table, e); });
  add_law(laws, BP_EXTENSION_CALLBACKS, "ticket", callbacks,
          [&table](auto& e) { tickets_of_completions_come_after(table, e); });
  add_law(laws, BP_EXTENSION_CALLBACKS, "end", callbacks,
          [&table](auto& e) { completions_end_before_their_stream(table, e); });
  // Behind those of callbacks, which it uses.
  add_law(laws, BP_EXTENSION_TIME, "stamps", time,
          [&table, callbacks](auto& e) { stamps_are_of_the_device(table, e, callbacks); });
  add_law(laws, BP_EXTENSION_PEER, "strangers", peer, [&table](auto& e) { strangers_are_no_peers(table, e); });
  const std::vector<Peer> peers = peer ? peers_of(table, *peer) : std::vector<Peer>();
  add_law(laws, BP_EXTENSION_PEER, "copies", peers.empty() ? nullptr : peer, [&table, peers](auto& e) {
    for (const Peer& one : peers) peers_copy_in_order(table, e, one);
  });
}

}  // namespace backplane::conformance
