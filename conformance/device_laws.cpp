// Laws of a device's table, tried on streams and blocks of the kit's own: memory, copies, order, tickets, waiting.
//
// What a backend does not offer has no law: a synchronous one has no streams.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "backplane/checked.hpp"
#include "backplane/device.hpp"
#include "subject.hpp"

namespace backplane::conformance {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes pattern(size_t size, unsigned seed) {
  Bytes made(size);
  for (size_t i = 0; i < size; ++i) made[i] = static_cast<unsigned char>(i * 31 + seed * 17 + (i >> 8));
  return made;
}

// Throws with the step's name what a call of the table returns.
class Table {
 public:
  explicit Table(bp_device device) : def_(backend_table(device)), ordinal_(device.ordinal) {}

  bool synchronous() const { return (def_.flags & BP_BACKEND_SYNCHRONOUS) != 0; }
  const bp_backend_def& def() const { return def_; }
  int32_t ordinal() const { return ordinal_; }

  template <class Slot, class... Args>
  bp_status status(Slot bp_backend_def::*slot, Args... args) const {
    return (def_.*slot)(def_.context, ordinal_, args...);
  }
  template <class Slot, class... Args>
  void call(const char* step, Slot bp_backend_def::*slot, Args... args) const {
    if (const bp_status found = status(slot, args...))
      detail::fail(found, step, " failed with status ", found, ": \"", last_error(), "\"");
  }

 private:
  const bp_backend_def& def_;
  int32_t ordinal_;
};

class Stream {
 public:
  explicit Stream(const Table& table) : table_(table) {
    if (!table.synchronous()) table.call("stream_create", &bp_backend_def::stream_create, &handle_);
  }
  ~Stream() {
    if (!handle_) return;
    table_.status(&bp_backend_def::wait, handle_, ticket_);
    table_.def().stream_destroy(table_.def().context, table_.ordinal(), handle_);
  }
  Stream(const Stream&) = delete;

  bp_stream* handle() const { return handle_; }
  uint64_t next() { return handle_ ? ++ticket_ : 0; }
  uint64_t flush() {
    if (handle_) table_.call("flush", &bp_backend_def::flush, handle_, ticket_);
    return ticket_;
  }
  void wait() {
    flush();
    if (handle_) table_.call("wait", &bp_backend_def::wait, handle_, ticket_);
  }
  uint64_t completed() const {
    uint64_t ticket = 0;
    table_.call("completed", &bp_backend_def::completed, handle_, &ticket);
    return ticket;
  }

 private:
  const Table& table_;
  bp_stream* handle_ = nullptr;
  uint64_t ticket_ = 0;
};

class Block {
 public:
  Block(const Table& table, uint64_t size) : table_(table), size_(size) {
    table.call("allocate", &bp_backend_def::allocate, size, &data_);
    BP_CHECK(data_, DEVICE, "allocate of ", size, " bytes gave BP_OK and NULL; expected memory, or BP_ERROR_MEMORY");
  }
  ~Block() {
    if (data_) table_.status(&bp_backend_def::deallocate, data_, size_);
  }
  Block(const Block&) = delete;

  void* data() const { return data_; }
  void put(Stream& on, const Bytes& bytes, uint64_t offset = 0) {
    table_.call("copy_from_host", &bp_backend_def::copy_from_host, on.handle(), on.next(), data_, offset,
                static_cast<const void*>(bytes.data()), uint64_t{bytes.size()});
  }
  Bytes get(Stream& on, uint64_t offset, uint64_t size) const {
    Bytes bytes(size);
    table_.call("copy_to_host", &bp_backend_def::copy_to_host, on.handle(), static_cast<void*>(bytes.data()), data_,
                offset, size);
    return bytes;
  }
  void copy_from(Stream& on, const Block& from, uint64_t to_offset, uint64_t from_offset, uint64_t size) {
    table_.call("copy", &bp_backend_def::copy, on.handle(), on.next(), data_, to_offset, from.data_, from_offset, size);
  }

 private:
  const Table& table_;
  uint64_t size_;
  void* data_ = nullptr;
};

void expect(const Bytes& found, const Bytes& expected, const char* what) {
  const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (a != found.end())
    detail::fail(BP_ERROR_DATA, what, ": byte ", a - found.begin(), " is ", int{*a}, ", expected ", int{*b});
}

void blocks_are_apart(const Table& table) {
  Stream stream(table);
  std::vector<std::unique_ptr<Block>> blocks;
  const uint64_t sizes[] = {1, 3, 64, 100, 4096, 1 << 20};
  for (const uint64_t size : sizes) blocks.push_back(std::make_unique<Block>(table, size));
  for (unsigned i = 0; i < blocks.size(); ++i) blocks[i]->put(stream, pattern(sizes[i], i));
  for (unsigned i = 0; i < blocks.size(); ++i)
    expect(blocks[i]->get(stream, 0, sizes[i]), pattern(sizes[i], i), "a block beside others");
}

void copies_keep_offsets(const Table& table) {
  constexpr uint64_t kSize = 4096, kUnit = 256;
  Stream stream(table);
  Block x(table, kSize), y(table, kSize);
  const Bytes bytes = pattern(kSize, 1);
  Bytes expected(kSize, 0);
  x.put(stream, bytes);
  y.put(stream, expected);
  y.put(stream, pattern(kUnit, 9), 3 * kUnit);
  const Bytes part = pattern(kUnit, 9);
  std::copy(part.begin(), part.end(), expected.begin() + 3 * kUnit);
  expect(y.get(stream, 0, kSize), expected, "copy_from_host to an offset");
  expect(x.get(stream, 2 * kUnit, kUnit), {bytes.begin() + 2 * kUnit, bytes.begin() + 3 * kUnit},
         "copy_to_host from an offset");
  if (!table.def().copy) return;
  y.copy_from(stream, x, kUnit, 4 * kUnit, kUnit);
  std::copy_n(bytes.begin() + 4 * kUnit, kUnit, expected.begin() + kUnit);
  expect(y.get(stream, 0, kSize), expected, "copy from an offset to another");
}

void sources_are_read_at_once(const Table& table) {
  constexpr uint64_t kSize = 4 << 20;
  Stream stream(table);
  Block x(table, kSize);
  Bytes source = pattern(kSize, 5);
  const Bytes expected = source;
  x.put(stream, source);
  std::fill(source.begin(), source.end(), static_cast<unsigned char>(0xee));
  expect(x.get(stream, 0, kSize), expected, "copy_from_host whose source changed after it returned");
}

void tickets_complete(const Table& table) {
  if (table.synchronous()) return;
  Stream stream(table);
  Block x(table, 1 << 16), y(table, 1 << 16);
  uint64_t last = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 10; ++i) x.copy_from(stream, y, 0, 0, 1 << 16);
    const uint64_t flushed = stream.flush();
    const auto start = std::chrono::steady_clock::now();
    for (int reached = 0; reached < 8; std::this_thread::yield()) {  // it stays there when it is asked again
      const uint64_t now = stream.completed();
      BP_CHECK(now >= last, DATA, "completed fell from ", last, " to ", now);
      BP_CHECK(now <= flushed, DATA, "completed is ", now, " where ", flushed, " was the last ticket");
      BP_CHECK(now >= flushed || std::chrono::steady_clock::now() - start < std::chrono::seconds(10), DATA,
               "completed stays at ", now, " ten seconds after flush(", flushed, ")");
      last = now;
      reached += now >= flushed;
    }
  }
}

// Much work on one stream, the end of which another one reads: too early without the wait.
void streams_wait(const Table& table) {
  if (table.synchronous()) return;
  constexpr uint64_t kSize = 8 << 20;
  Stream first(table), second(table);
  Block x(table, kSize), y(table, kSize), z(table, kSize);
  const Bytes zeros(kSize, 0);
  for (unsigned round = 0; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round + 1);
    z.put(first, zeros);
    first.wait();
    y.put(first, zeros);
    x.put(first, bytes);
    for (int i = 0; i < 8; ++i) y.copy_from(first, z, 0, 0, kSize);
    y.copy_from(first, x, 0, 0, kSize);
    const uint64_t ticket = first.flush();
    table.call("stream_wait", &bp_backend_def::stream_wait, second.handle(), first.handle(), ticket);
    z.copy_from(second, y, 0, 0, kSize);
    expect(z.get(second, 0, kSize), bytes, "what a stream read that had waited for another (stream_wait)");
    first.wait();
    second.wait();
  }
}

void too_much_memory_is_refused(const Table& table) {
  void* data = nullptr;
  bp_value none{};
  call_packed(find_op("bp::add"), &none, 1, &none, 1);  // leaves a message that is not the table's
  const std::string before = last_error();
  const bp_status status = table.status(&bp_backend_def::allocate, uint64_t{1} << 60, &data);
  BP_CHECK(status != BP_OK, DATA, "allocate of 2^60 bytes gave BP_OK");
  BP_CHECK(status == BP_ERROR_MEMORY, DATA, "allocate of 2^60 bytes: found status ", status,
           ", expected BP_ERROR_MEMORY (", BP_ERROR_MEMORY, ")");
  BP_CHECK(*last_error() && before != last_error(), DATA, "allocate of 2^60 bytes failed without a message: set_error");
  Block after(table, 64);
}

constexpr uint64_t kSmallPart = uint64_t{1} << 20;

bool is_there(const Table& table, uint64_t size) {
  void* data = nullptr;
  if (table.status(&bp_backend_def::allocate, size, &data) != BP_OK) return false;
  return table.status(&bp_backend_def::deallocate, data, size) == BP_OK;
}

void freed_memory_comes_back(const Table& table, uint64_t total) {
  const bp_backend_def& def = table.def();
  const auto in_use = [&] {
    bp_memory_stats stats{};
    stats.header = BP_HEADER(bp_memory_stats);
    table.call("memory_stats", &bp_backend_def::memory_stats, &stats);
    return stats.in_use;
  };
  const bool counts = BP_HAS(&def, bp_backend_def, memory_stats) && def.memory_stats;
  const uint64_t before = counts ? in_use() : 0;
  // More than there is, in parts: what does not come back is missed. A limit of the process may allow smaller ones
  // only.
  uint64_t part = std::max<uint64_t>(total / 8, 4096);
  while (part > kSmallPart && !is_there(table, part)) part /= 2;
  for (uint64_t taken = 0; taken <= total + total / 2; taken += part) Block block(table, part);
  if (const uint64_t after = counts ? in_use() : 0; after != before)
    detail::fail(BP_ERROR_DATA, "memory_stats: ", after, " bytes are in use after all was freed, ", before, " before");
}

void properties_are_sound(const DeviceInfo& info) {
  const bp_device_properties& found = info.properties;
  BP_CHECK(found.name[0], DATA, "properties: the name is empty");
  BP_CHECK((found.alignment & (found.alignment - 1)) == 0, DATA, "properties: alignment ", found.alignment,
           " is no power of two");
  BP_CHECK(found.total_memory > 0, DATA, "properties: total_memory is 0");
}

}  // namespace

void run_device_laws(const Subject& subject, std::vector<Outcome>& outcomes) {
  const Table table(subject.device);
  const std::vector<DeviceInfo> all = devices();
  const auto info = std::find_if(all.begin(), all.end(), [&](const DeviceInfo& one) {
    return one.device.backend == subject.device.backend && one.device.ordinal == subject.device.ordinal;
  });
  const std::pair<const char*, std::function<void()>> laws[] = {
      {"properties", [&] { properties_are_sound(*info); }},
      {"blocks", [&] { blocks_are_apart(table); }},
      {"offsets", [&] { copies_keep_offsets(table); }},
      {"copy_from_host", [&] { sources_are_read_at_once(table); }},
      {"tickets", [&] { tickets_complete(table); }},
      {"stream_wait", [&] { streams_wait(table); }},
      {"out of memory", [&] { too_much_memory_is_refused(table); }},
      {"deallocate", [&] { freed_memory_comes_back(table, info->properties.total_memory); }}};
  for (const auto& [name, law] : laws) {
    Outcome outcome;
    outcome.op = kDeviceLaws;
    outcome.check = name;
    try {
      law();
    } catch (const Error& error) {
      outcome.verdict = Verdict::kFail;
      outcome.text = error.what();
    }
    outcomes.push_back(std::move(outcome));
  }
}

}  // namespace backplane::conformance
