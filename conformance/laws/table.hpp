// A device's table as its laws call it: calls that throw with the step's name, streams that number their work, blocks.
//
// Streams and blocks are the kit's own; what a law makes, it gives back. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backplane/abi/device_extensions.h"
#include "backplane/error.hpp"
#include "backplane/op.hpp"
#include "shared_cases.hpp"
#include "subject.hpp"

namespace backplane::conformance {

using Bytes = std::vector<unsigned char>;
Bytes pattern(size_t size, unsigned seed);
// Throws with the first byte that differs.
void expect_bytes(const Bytes& found, const Bytes& expected, const char* what);

class Table {
 public:
  explicit Table(bp_device device);

  bp_device device() const { return device_; }
  bool synchronous() const { return (def_.flags & BP_BACKEND_SYNCHRONOUS) != 0; }
  bool addressable() const { return (def_.flags & BP_BACKEND_ADDRESSABLE) != 0; }
  const bp_backend_def& def() const { return def_; }
  int32_t ordinal() const { return device_.ordinal; }
  const bp_device_properties& properties() const { return properties_; }
  // Bytes rounded up to what the device copies at once (copy_granule).
  uint64_t whole(uint64_t size) const;

  // nullptr: not offered. Extensions of streams count as such only where there are streams.
  template <class Struct>
  const Struct* extension(const char* name) const {
    return static_cast<const Struct*>(extension_named(name));
  }
  // Throws for a status that is not BP_OK.
  void check(const char* step, bp_status found) const;
  template <class Slot, class... Args>
  bp_status status(Slot bp_backend_def::*slot, Args... args) const {
    shared_cases::step();
    return (def_.*slot)(def_.context, device_.ordinal, args...);
  }
  template <class Slot, class... Args>
  void call(const char* step, Slot bp_backend_def::*slot, Args... args) const {
    check(step, status(slot, args...));
  }
  // The same of an extension's slots.
  template <class Struct, class Slot, class... Args>
  bp_status status(const Struct& extension, Slot Struct::*slot, Args... args) const {
    shared_cases::step();
    return (extension.*slot)(def_.context, device_.ordinal, args...);
  }
  template <class Struct, class Slot, class... Args>
  void call(const char* step, const Struct& extension, Slot Struct::*slot, Args... args) const {
    check(step, status(extension, slot, args...));
  }
  bool counts_memory() const;
  uint64_t memory_in_use() const;

 private:
  const void* extension_named(const char* name) const;

  bp_device device_;
  const bp_backend_def& def_;
  bp_device_properties properties_;
};

// Throws if the backend makes none.
bp_stream* make_stream(const Table& table);

// It waits for its work before it ends. Declare it after the blocks that the work reads and writes: a law that
// throws leaves none of it queued on freed memory.
class Stream {
 public:
  explicit Stream(const Table& table);
  Stream(const Table& table, bp_stream* made) : table_(table), handle_(made) {}
  ~Stream();
  Stream(const Stream&) = delete;

  bp_stream* handle() const { return handle_; }
  uint64_t next() { return handle_ ? ++ticket_ : 0; }
  uint64_t flush();
  void wait();
  void wait_for(const Stream& other, uint64_t ticket);
  uint64_t completed() const;

 private:
  const Table& table_;
  bp_stream* handle_ = nullptr;
  uint64_t ticket_ = 0;
};

// Copies begin and end at whole granules of the device: see Table::whole.
class Block {
 public:
  using Free = std::function<bp_status(void*)>;
  Block(const Table& table, uint64_t size);
  Block(const Table& table, void* data, Free free) : table_(table), data_(data), free_(std::move(free)) {}
  ~Block() {
    if (data_) free_(data_);
  }
  Block(const Block&) = delete;

  void* data() const { return data_; }
  void put(Stream& on, const Bytes& bytes, uint64_t offset = 0);
  Bytes get(Stream& on, uint64_t offset, uint64_t size) const;
  void copy_from(Stream& on, const Block& from, uint64_t to_offset, uint64_t from_offset, uint64_t size);

 private:
  const Table& table_;
  void* data_ = nullptr;
  Free free_;
};

// Work that takes a while: copies of some megabytes, over and over.
class LongWork {
 public:
  static constexpr uint64_t kSize = 8 << 20;
  explicit LongWork(const Table& table) : x_(table, kSize), y_(table, kSize) {}
  void put_on(Stream& stream) {
    for (int i = 0; i < 8; ++i) y_.copy_from(stream, x_, 0, 0, kSize);
  }

 private:
  Block x_, y_;
};

// Thrown by a law if an op that it calls has no kernel. This is not a fault of the law's subject.
struct NoKernel : Error {
  explicit NoKernel(const Error& error) : Error(error) {}
};

// Throws NoKernel where the device has none.
Tensor run_op(const char* op, std::initializer_list<bp_value> args);

// A law of a device. It throws if it does not hold; empty: the device does not offer the law's subject.
struct Law {
  std::string row;    // of the report
  std::string check;  // in that row
  std::function<void()> holds;
  std::string needs{};  // what a device without the law lacks, for the report
};
using Laws = std::vector<Law>;
// `offered`: the extension that `holds` tries, or nullptr.
template <class Struct, class Holds>
void add_law(Laws& laws, const char* extension, const char* check, const Struct* offered, Holds holds) {
  laws.push_back({std::string("(device) ") + extension, check, {}, std::string("the extension ") + extension});
  if (offered) laws.back().holds = [=] { holds(*offered); };
}
// Tries each whose row the options choose; a law that throws has failed.
void run_laws(Laws laws, const Options& options, const Progress& progress, std::vector<Outcome>& outcomes);
void add_stream_laws(const Table& table, Laws& laws);  // streams, events, time, callbacks, peer
void add_memory_laws(const Table& table, Laws& laws);  // pinned, memory
void add_compiler_laws(const Table& table, bp_dtype_mask computes, Laws& laws);
void add_recording_laws(const Table& table, Laws& laws);  // features, capture, profiler; reset, the last of all

// Of mode async: through the host, whose bookkeeping they try together with the device's.
void add_memory_order_laws(const Table& table, Laws& laws);  // memory that is used again, by several streams
void add_waiting_laws(const Table& table, Laws& laws);       // what may go on while somebody waits
void add_work_laws(const Table& table, Laws& laws);          // errors that come late, executables, constants
void add_loss_laws(const Table& table, Laws& laws);          // resets; the last of all

}  // namespace backplane::conformance
