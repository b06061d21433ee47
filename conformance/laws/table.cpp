// See table.hpp.
#include "laws/table.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/checked.hpp"
#include "backplane/device.hpp"

namespace backplane::conformance {

Bytes pattern(size_t size, unsigned seed) {
  Bytes made(size);
  for (size_t i = 0; i < size; ++i) made[i] = static_cast<unsigned char>(i * 31 + seed * 17 + (i >> 8));
  return made;
}

void expect_bytes(const Bytes& found, const Bytes& expected, const char* what) {
  const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (a != found.end())
    detail::fail(BP_ERROR_DATA, what, ": byte ", a - found.begin(), " is ", int{*a}, ", expected ", int{*b});
}

namespace {

bp_device_properties properties_of(bp_device device) {
  for (const DeviceInfo& one : devices())
    if (one.device.backend == device.backend && one.device.ordinal == device.ordinal) return one.properties;
  return {};
}

}  // namespace

Table::Table(bp_device device) : device_(device), def_(backend_table(device)), properties_(properties_of(device)) {}

uint64_t Table::whole(uint64_t size) const {
  const uint64_t granule = std::max<uint64_t>(properties_.copy_granule, 1);
  return (size + granule - 1) / granule * granule;
}

void Table::check(const char* step, bp_status found) const {
  if (found != BP_OK) detail::fail(found, step, " failed with status ", found, ": \"", last_error(), "\"");
}

const void* Table::extension_named(const char* name) const {
  static constexpr const char* kOfStreams[] = {BP_EXTENSION_STREAMS, BP_EXTENSION_TIME, BP_EXTENSION_CALLBACKS,
                                               BP_EXTENSION_PINNED,  BP_EXTENSION_PEER, BP_EXTENSION_CAPTURE,
                                               BP_EXTENSION_EVENTS};
  if (!BP_HAS(&def_, bp_backend_def, extension) || !def_.extension) return nullptr;
  if (synchronous())
    for (const char* one : kOfStreams)
      if (std::strcmp(one, name) == 0) return nullptr;
  return def_.extension(def_.context, name, 1);
}

bp_stream* make_stream(const Table& table) {
  bp_stream* made = nullptr;
  table.call("stream_create", &bp_backend_def::stream_create, &made);
  BP_CHECK(made, DEVICE, "stream_create gave BP_OK and NULL; expected a stream");
  return made;
}

bool Table::counts_memory() const { return BP_HAS(&def_, bp_backend_def, memory_stats) && def_.memory_stats; }

uint64_t Table::memory_in_use() const {
  bp_memory_stats stats{};
  stats.header = BP_HEADER(bp_memory_stats);
  call("memory_stats", &bp_backend_def::memory_stats, &stats);
  return stats.in_use;
}

Stream::Stream(const Table& table) : table_(table) {
  if (!table.synchronous()) handle_ = make_stream(table);
}

Stream::~Stream() {
  if (!handle_) return;
  table_.status(&bp_backend_def::flush, handle_, ticket_);
  table_.status(&bp_backend_def::wait, handle_, ticket_);
  table_.def().stream_destroy(table_.def().context, table_.ordinal(), handle_);
}

uint64_t Stream::flush() {
  if (handle_) table_.call("flush", &bp_backend_def::flush, handle_, ticket_);
  return ticket_;
}

void Stream::wait() {
  flush();
  if (handle_) table_.call("wait", &bp_backend_def::wait, handle_, ticket_);
}

void Stream::wait_for(const Stream& other, uint64_t ticket) {
  table_.call("stream_wait", &bp_backend_def::stream_wait, handle_, other.handle_, ticket);
}

uint64_t Stream::completed() const {
  uint64_t ticket = 0;
  table_.call("completed", &bp_backend_def::completed, handle_, &ticket);
  return ticket;
}

Block::Block(const Table& table, uint64_t least) : table_(table) {
  const uint64_t size = table.whole(least);
  table.call("allocate", &bp_backend_def::allocate, size, &data_);
  BP_CHECK(data_, DEVICE, "allocate of ", size, " bytes gave BP_OK and NULL; expected memory, or BP_ERROR_MEMORY");
  free_ = [&table, size](void* data) { return table.status(&bp_backend_def::deallocate, data, size); };
}

void Block::put(Stream& on, const Bytes& bytes, uint64_t offset) {
  table_.call("copy_from_host", &bp_backend_def::copy_from_host, on.handle(), on.next(), data_, offset,
              static_cast<const void*>(bytes.data()), uint64_t{bytes.size()});
}

Bytes Block::get(Stream& on, uint64_t offset, uint64_t size) const {
  Bytes bytes(size);
  table_.call("copy_to_host", &bp_backend_def::copy_to_host, on.handle(), static_cast<void*>(bytes.data()), data_,
              offset, size);
  return bytes;
}

void Block::copy_from(Stream& on, const Block& from, uint64_t to_offset, uint64_t from_offset, uint64_t size) {
  table_.call("copy", &bp_backend_def::copy, on.handle(), on.next(), data_, to_offset, from.data_, from_offset, size);
}

Tensor run_op(const char* op, std::initializer_list<bp_value> args) {
  shared_cases::step();
  try {
    return call(find_op(op), args);
  } catch (const Error& error) {
    if (error.code() == BP_ERROR_NOT_IMPLEMENTED) throw NoKernel(error);
    throw;
  }
}

}  // namespace backplane::conformance
