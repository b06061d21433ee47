// Laws of a device's table, tried on streams and blocks of the kit's own: memory, copies, order, tickets, waiting.
//
// What a backend does not offer has no law: a synchronous one has no streams.
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "call.hpp"
#include "laws/async_laws.hpp"
#include "laws/table.hpp"
#include "running.hpp"
#include "subject.hpp"
#include "trial.hpp"

namespace backplane::conformance {
namespace {

// A ticket with work, then one without, under which nothing more comes either. Of what does not end, nothing is given
// back: that would wait for it.
void tickets_end(const Table& table) {
  const uint64_t size = table.whole(64);
  const Bytes bytes = pattern(size, 1);
  bp_stream* const stream = make_stream(table);
  auto block = std::make_unique<Block>(table, size);
  table.call("copy_from_host", &bp_backend_def::copy_from_host, stream, uint64_t{1}, block->data(), uint64_t{0},
             static_cast<const void*>(bytes.data()), size);
  for (const uint64_t ticket : {uint64_t{1}, uint64_t{2}}) {
    table.call("flush", &bp_backend_def::flush, stream, ticket);
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t now = 0; now < ticket; std::this_thread::yield()) {
      table.call("completed", &bp_backend_def::completed, stream, &now);
      if (now >= ticket || std::chrono::steady_clock::now() - start < std::chrono::seconds(10)) continue;
      block.release();
      detail::fail(BP_ERROR_DEVICE, "completed stays at ", now, " ten seconds after flush(", ticket,
                   ticket == 1 ? "); flush submits what is recorded, so that it ends without further calls"
                               : "), a ticket without work; flush ends that too, without further calls",
                   ". Nothing else was tried");
    }
  }
  table.def().stream_destroy(table.def().context, table.ordinal(), stream);
}

void blocks_are_apart(const Table& table) {
  std::vector<std::unique_ptr<Block>> blocks;
  Stream stream(table);
  std::vector<uint64_t> sizes{1, 3, 64, 100, 4096, 1 << 20};
  for (uint64_t& size : sizes) size = table.whole(size);
  for (const uint64_t size : sizes) blocks.push_back(std::make_unique<Block>(table, size));
  for (unsigned i = 0; i < blocks.size(); ++i) blocks[i]->put(stream, pattern(sizes[i], i));
  for (unsigned i = 0; i < blocks.size(); ++i)
    expect_bytes(blocks[i]->get(stream, 0, sizes[i]), pattern(sizes[i], i), "a block beside others");
}

void copies_keep_offsets(const Table& table) {
  const uint64_t unit = table.whole(256), size = 16 * unit;
  const auto at = [unit](const Bytes& bytes, uint64_t n) { return bytes.begin() + static_cast<ptrdiff_t>(n * unit); };
  Block x(table, size), y(table, size);
  Stream stream(table);
  const Bytes bytes = pattern(size, 1);
  Bytes expected(size, 0);
  x.put(stream, bytes);
  y.put(stream, expected);
  const Bytes part = pattern(unit, 9);
  y.put(stream, part, 3 * unit);
  std::copy(part.begin(), part.end(), expected.begin() + static_cast<ptrdiff_t>(3 * unit));
  expect_bytes(y.get(stream, 0, size), expected, "copy_from_host to an offset");
  expect_bytes(x.get(stream, 2 * unit, unit), {at(bytes, 2), at(bytes, 3)}, "copy_to_host from an offset");
  if (!table.def().copy) return;
  y.copy_from(stream, x, unit, 4 * unit, unit);
  std::copy(at(bytes, 4), at(bytes, 5), expected.begin() + static_cast<ptrdiff_t>(unit));
  expect_bytes(y.get(stream, 0, size), expected, "copy from an offset to another");
}

void sources_are_read_at_once(const Table& table) {
  constexpr uint64_t kSize = 4 << 20;
  Block x(table, kSize);
  Stream stream(table);
  Bytes source = pattern(kSize, 5);
  const Bytes expected = source;
  x.put(stream, source);
  std::fill(source.begin(), source.end(), static_cast<unsigned char>(0xee));
  expect_bytes(x.get(stream, 0, kSize), expected, "copy_from_host whose source changed after it returned");
}

void tickets_complete(const Table& table) {
  Block x(table, 1 << 16), y(table, 1 << 16);
  Stream stream(table);
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

// Completed work of a stream stays completed while the stream waits for another.
void waits_take_no_tickets(const Table& table) {
  LongWork work(table);
  Block x(table, 4096);
  Stream stream(table), other(table);
  for (unsigned round = 1; round < 5; ++round) {
    x.put(stream, pattern(4096, round));
    stream.wait();
    const uint64_t before = stream.completed();
    work.put_on(other);
    stream.wait_for(other, other.flush());
    const uint64_t after = stream.completed();
    BP_CHECK(after >= before, DATA, "completed fell from ", before, " to ", after, " behind stream_wait");
    x.put(stream, pattern(4096, round));
    stream.wait();
    other.wait();
  }
}

// Much work on one stream, whose result another stream reads as soon as `completed` says that it has ended.
void completed_work_has_ended(const Table& table) {
  constexpr uint64_t kSize = 8 << 20;
  Block x(table, kSize), y(table, kSize), z(table, kSize);
  Stream first(table), second(table);
  const Bytes zeros(kSize, 0);
  z.put(first, zeros);
  for (unsigned round = 0; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round + 1);
    x.put(first, bytes);
    y.put(first, zeros);
    first.wait();
    for (int i = 0; i < 8; ++i) y.copy_from(first, z, 0, 0, kSize);
    y.copy_from(first, x, 0, 0, kSize);
    const uint64_t ticket = first.flush();
    const auto start = std::chrono::steady_clock::now();
    for (uint64_t now = 0; now < ticket; std::this_thread::yield()) {
      now = first.completed();
      BP_CHECK(now >= ticket || std::chrono::steady_clock::now() - start < std::chrono::seconds(10), DATA,
               "completed stays at ", now, " ten seconds after flush(", ticket, ")");
    }
    expect_bytes(y.get(second, 0, kSize), bytes, "what another stream read after `completed` had reached the ticket");
  }
}

// Much work on one stream, whose result another stream reads: without the wait, it would read too early.
void streams_wait(const Table& table) {
  constexpr uint64_t kSize = 8 << 20;
  Block x(table, kSize), y(table, kSize), z(table, kSize);
  Stream first(table), second(table);
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
    second.wait_for(first, ticket);
    z.copy_from(second, y, 0, 0, kSize);
    expect_bytes(z.get(second, 0, kSize), bytes, "what a stream read that had waited for another (stream_wait)");
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

void freed_memory_comes_back(const Table& table) {
  constexpr uint64_t kOfUnknown = uint64_t{4} << 30;  // that a device which does not say how much it has gets to free
  const uint64_t stated = table.properties().total_memory, total = stated ? stated : kOfUnknown;
  const uint64_t before = table.counts_memory() ? table.memory_in_use() : 0;
  // More than there is, in parts: what does not come back is missed. A limit of the process may allow smaller ones
  // only.
  uint64_t part = std::max<uint64_t>(total / 8, 4096);
  while (part > kSmallPart && !is_there(table, part)) part /= 2;
  for (uint64_t taken = 0; taken <= total + total / 2; taken += part) Block block(table, part);
  if (const uint64_t after = table.counts_memory() ? table.memory_in_use() : 0; after != before)
    detail::fail(BP_ERROR_DATA, "memory_stats: ", after, " bytes are in use after all was freed, ", before, " before");
}

// The largest block that the device gives, below `refused` bytes, to within a MiB.
uint64_t largest_block(const Table& table, uint64_t refused) {
  uint64_t given = kSmallPart;
  while (refused - given > kSmallPart) {
    const uint64_t middle = given + (refused - given) / 2;
    (is_there(table, middle) ? given : refused) = middle;
  }
  return given;
}

// Offsets of 32 bits wrap there, and signed ones at half of that.
constexpr uint64_t kBeyond = uint64_t{1} << 32;

uint64_t size_to_try(const Table& table) {
  const bp_device_properties& properties = table.properties();
  const uint64_t unit = table.whole(256);
  uint64_t size = kBeyond + kSmallPart;
  if (properties.total_memory) size = std::min(size, properties.total_memory / 4);
  if (properties.largest_block) size = std::min(size, properties.largest_block / unit * unit);
  return std::max(size, kSmallPart);
}

void large_blocks_keep_offsets(const Table& table) {
  const uint64_t unit = table.whole(256);
  uint64_t size = size_to_try(table);
  std::optional<Block> made;
  try {
    made.emplace(table, size);
  } catch (const Error& error) {
    if (error.code() != BP_ERROR_MEMORY) throw;
    made.emplace(table, size = largest_block(table, size));
  }
  Block& block = *made;
  Stream stream(table);
  std::vector<uint64_t> places{0};
  for (const uint64_t at : {kBeyond / 2, kBeyond, size - unit})
    if (at + unit <= size && at > places.back()) places.push_back(at);
  const std::string what = "a block of " + std::to_string(size) + " bytes, at offset ";
  for (unsigned i = 0; i < places.size(); ++i) block.put(stream, pattern(unit, i), places[i]);
  for (unsigned i = 0; i < places.size(); ++i)
    expect_bytes(block.get(stream, places[i], unit), pattern(unit, i), (what + std::to_string(places[i])).c_str());
  if (!table.def().copy) return;
  Block small(table, unit);
  for (unsigned i = 0; i < places.size(); ++i) {
    small.copy_from(stream, block, 0, places[i], unit);
    expect_bytes(small.get(stream, 0, unit), pattern(unit, i),
                 ("copy from " + what + std::to_string(places[i])).c_str());
  }
}

// An API may let kernels reach less of a block than it allocates.
void kernels_reach_the_end(const Table& table) {
  constexpr int64_t kCount = 64;
  uint64_t size = size_to_try(table);
  if (!is_there(table, size)) size = largest_block(table, size);
  const auto length = static_cast<int64_t>(size / sizeof(float));
  const Tensor whole = empty(std::span(&length, 1), BP_FLOAT32, table.device());
  const Tensor end = sliced(whole, 0, length - kCount, length, 1);
  const std::string where = " the last " + std::to_string(kCount) + " numbers of a block of " + std::to_string(size) +
                            " bytes (largest_block: as much as kernels reach)";
  run_op_into("bp::add", {value(floats(std::vector<float>(kCount, 3), table.device())), value(1.0)}, end);
  expect_all(end, 4, ("a kernel that wrote" + where).c_str());
  expect_all(run_op("bp::add", {value(end), value(1.0)}), 5, ("a kernel that read" + where).c_str());
}

void properties_are_sound(const bp_device_properties& found) {
  BP_CHECK(found.name[0], DATA, "properties: the name is empty");
  BP_CHECK((found.alignment & (found.alignment - 1)) == 0, DATA, "properties: alignment ", found.alignment,
           " is not a power of two");
}

}  // namespace

bool work_ends(const Subject& subject, std::vector<Outcome>& outcomes) {
  const Table table(subject.device);
  if (table.synchronous()) return true;
  Outcome outcome;
  outcome.op = kDeviceLaws;
  outcome.check = kFirstWork;
  outcome.verdict = Verdict::kFail;
  const Running running(outcome);
  try {
    tickets_end(table);
    return true;
  } catch (const Error& error) {
    outcome.text = error.what();
  }
  outcomes.push_back(std::move(outcome));
  return false;
}

bool wants_device_laws(const Options& options) { return options.op == "*" || options.op.starts_with('('); }

void run_device_laws(const Subject& subject, const Options& options, const Progress& progress,
                     std::vector<Outcome>& outcomes) {
  const Table table(subject.device);
  Laws laws{{kDeviceLaws, "properties", [&] { properties_are_sound(table.properties()); }},
            {kDeviceLaws, "blocks", [&] { blocks_are_apart(table); }},
            {kDeviceLaws, "offsets", [&] { copies_keep_offsets(table); }},
            {kDeviceLaws, "copy_from_host", [&] { sources_are_read_at_once(table); }},
            {kDeviceLaws, "out of memory", [&] { too_much_memory_is_refused(table); }},
            {kDeviceLaws, "large blocks", [&] { large_blocks_keep_offsets(table); }},
            {kDeviceLaws, "kernels in large blocks", [&] { kernels_reach_the_end(table); }},
            {kDeviceLaws, "deallocate", [&] { freed_memory_comes_back(table); }}};
  if (!table.synchronous()) {
    laws.push_back({kDeviceLaws, "tickets", [&] { tickets_complete(table); }});
    laws.push_back({kDeviceLaws, "ended work", [&] { completed_work_has_ended(table); }});
    laws.push_back({kDeviceLaws, "tickets of waits", [&] { waits_take_no_tickets(table); }});
    laws.push_back({kDeviceLaws, "stream_wait", [&] { streams_wait(table); }});
  }
  add_stream_laws(table, laws);
  add_memory_laws(table, laws);
  add_compiler_laws(table, subject.computes, laws);
  add_recording_laws(table, laws);
  run_laws(std::move(laws), options, progress, outcomes);
}

void run_laws(Laws laws, const Options& options, const Progress& progress, std::vector<Outcome>& outcomes) {
  const std::string example = laws.back().row;
  if (options.op != "*" && options.op != kDeviceLaws)
    std::erase_if(laws, [&](const auto& law) { return fnmatch(options.op.c_str(), law.row.c_str(), 0) != 0; });
  BP_CHECK(!laws.empty(), VALUE, "conformance: no row of laws matches \"", options.op,
           "\"; '(device)*' matches all of them, '", example, "' one");
  const auto is_done = [&, tried = outcomes.size()](const Law& law) {  // by the run that this one resumes
    return std::any_of(outcomes.begin(), outcomes.begin() + static_cast<ptrdiff_t>(tried),
                       [&](const Outcome& one) { return one.op == law.row && one.check == law.check; });
  };
  std::erase_if(laws, is_done);
  size_t done = 0;
  for (const auto& [row, check, holds, needs] : laws) {
    progress(done++, laws.size(), row + " " + check);
    Outcome outcome;
    outcome.op = row;
    outcome.check = check;
    if (!holds) {
      outcome.verdict = Verdict::kNotOffered;
      outcome.text = "needs " + needs;
    }
    const Running running(outcome);
    try {
      if (holds) holds();
    } catch (const NoKernel& error) {
      judge_failure(options, error.code(), error.what(), outcome);
    } catch (const Error& error) {
      outcome.verdict = Verdict::kFail;
      outcome.text = error.what();
    }
    outcomes.push_back(std::move(outcome));
  }
}

}  // namespace backplane::conformance
