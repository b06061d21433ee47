// Laws of the extensions about memory: host memory that the device reads and writes, kinds of memory, a backend's pool.
#include <algorithm>
#include <set>
#include <utility>

#include "laws/table.hpp"

namespace backplane::conformance {
namespace {

// ---- pinned

class Pinned {
 public:
  Pinned(const Table& table, const bp_extension_pinned& pinned, uint64_t size)
      : table_(table), pinned_(pinned), size_(size) {
    table.check("pinned.allocate", pinned.allocate(table.def().context, size, &data_));
    BP_CHECK(data_, DATA, "pinned.allocate of ", size, " bytes gave BP_OK and NULL");
  }
  ~Pinned() {
    if (data_) pinned_.deallocate(table_.def().context, data_, size_);
  }
  void free() {
    table_.check("pinned.deallocate", pinned_.deallocate(table_.def().context, std::exchange(data_, nullptr), size_));
  }
  Pinned(const Pinned&) = delete;

  unsigned char* bytes() const { return static_cast<unsigned char*>(data_); }
  Bytes held() const { return {bytes(), bytes() + size_}; }
  void set(const Bytes& from) { std::copy(from.begin(), from.end(), bytes()); }
  void put(Stream& on, const Block& to, uint64_t offset, uint64_t from, uint64_t size) const {
    table_.call("pinned.copy_from_host", pinned_, &bp_extension_pinned::copy_from_host, on.handle(), on.next(),
                to.data(), offset, static_cast<const void*>(bytes() + from), size);
  }
  void get(Stream& on, const Block& from, uint64_t offset, uint64_t to, uint64_t size) const {
    table_.call("pinned.copy_to_host", pinned_, &bp_extension_pinned::copy_to_host, on.handle(), on.next(),
                static_cast<void*>(bytes() + to), from.data(), offset, size);
  }

 private:
  const Table& table_;
  const bp_extension_pinned& pinned_;
  uint64_t size_;
  void* data_ = nullptr;
};

void pinned_memory_is_copied_in_order(const Table& table, const bp_extension_pinned& pinned) {
  const uint64_t unit = table.whole(512), size = 16 * unit;
  LongWork work(table);
  Block x(table, size), y(table, size);
  Pinned source(table, pinned, size), result(table, pinned, size);
  Stream stream(table);
  for (unsigned round = 1; round < 4; ++round) {
    const Bytes bytes = pattern(size, round);
    source.set(bytes);
    result.set(Bytes(size, 0xee));
    x.put(stream, Bytes(size, 0));
    work.put_on(stream);
    source.put(stream, x, 2 * unit, unit, 3 * unit);
    y.copy_from(stream, x, 0, 0, size);
    result.get(stream, y, unit, 5 * unit, 4 * unit);
    stream.wait();
    Bytes expected(size, 0);
    std::copy_n(bytes.data() + unit, 3 * unit, expected.data() + 2 * unit);
    expect_bytes(y.get(stream, 0, size), expected, "pinned.copy_from_host to an offset, behind other work");
    Bytes seen(size, 0xee);
    std::copy_n(expected.data() + unit, 4 * unit, seen.data() + 5 * unit);
    expect_bytes(result.held(), seen, "pinned.copy_to_host from an offset, behind other work");
  }
  source.free();
  result.free();
}

// ---- memory of a kind

std::vector<std::string> kinds_of(const Table& table, const bp_extension_memory& memory) {
  std::vector<std::string> kinds;
  for (uint32_t index = 0; index < 64; ++index) {
    const char* name = nullptr;
    table.call("memory.kind", memory, &bp_extension_memory::kind, index, &name);
    if (!name) break;
    kinds.emplace_back(name);
  }
  BP_CHECK(!kinds.empty(), DATA, "memory.kind: found no kind, expected the usual one at index 0");
  BP_CHECK(kinds.size() < 64, DATA, "memory.kind: index 63 still has a name; expected NULL past the last kind");
  return kinds;
}

std::unique_ptr<Block> of_kind(const Table& table, const bp_extension_memory& memory, const std::string& kind,
                               uint64_t size, uint64_t alignment) {
  void* data = nullptr;
  table.call("memory.allocate", memory, &bp_extension_memory::allocate, kind.c_str(), size, alignment, &data);
  BP_CHECK(data, DATA, "memory.allocate of kind \"", kind, "\" gave BP_OK and NULL");
  BP_CHECK(!table.addressable() || reinterpret_cast<uintptr_t>(data) % alignment == 0, DATA,
           "memory.allocate of kind \"", kind, "\": the block begins at ", data, ", expected a multiple of ",
           alignment);
  return std::make_unique<Block>(table, data, [&table, &memory, kind, size](void* block) {
    return table.status(memory, &bp_extension_memory::deallocate, kind.c_str(), block, size);
  });
}

void kinds_serve_copies(const Table& table, const bp_extension_memory& memory) {
  const std::vector<std::string> kinds = kinds_of(table, memory);
  BP_CHECK(std::set<std::string>(kinds.begin(), kinds.end()).size() == kinds.size(), DATA,
           "memory.kind: a name comes twice");
  const uint64_t size = table.whole(1000);
  for (const std::string& kind : kinds) {
    std::vector<std::unique_ptr<Block>> blocks;
    for (const uint64_t alignment : {64, 256, 4096, 65536, 256})
      blocks.push_back(of_kind(table, memory, kind, size, alignment));
    Block usual(table, size);
    Stream stream(table);
    for (unsigned i = 0; i < blocks.size(); ++i) blocks[i]->put(stream, pattern(size, i));
    for (unsigned i = 0; i < blocks.size(); ++i) {
      usual.copy_from(stream, *blocks[i], 0, 0, size);
      blocks[i]->copy_from(stream, usual, 0, 0, size);
      expect_bytes(blocks[i]->get(stream, 0, size), pattern(size, i), "a block of memory.allocate");
    }
    stream.wait();
  }
}

// More than any kind that is scarce has: what does not come back is missed, or counted.
void memory_of_kinds_comes_back(const Table& table, const bp_extension_memory& memory) {
  for (const std::string& kind : kinds_of(table, memory)) {
    const uint64_t before = table.counts_memory() ? table.memory_in_use() : 0;
    for (int i = 0; i < 4096; ++i) of_kind(table, memory, kind, 4096, 64);
    const uint64_t after = table.counts_memory() ? table.memory_in_use() : 0;
    BP_CHECK(after == before, DATA, "memory.deallocate: ", after, " bytes are in use after all of kind \"", kind,
             "\" was freed, ", before, " before");
  }
}

// ---- a backend's pool

// A block is given while work still reads it. A block that is taken for another stream must not be that memory yet.
void given_blocks_are_read_first(const Table& table, const bp_extension_memory& memory) {
  constexpr uint64_t kSize = 1 << 20;
  const auto take = [&](const Stream& stream) {
    void* data = nullptr;
    table.call("memory.take", memory, &bp_extension_memory::take, stream.handle(), kSize, &data);
    BP_CHECK(data, DATA, "memory.take gave BP_OK and NULL");
    return data;
  };
  const auto give = [&](void* data, Stream& stream) {
    bp_stream* const streams[] = {stream.handle()};
    const uint64_t tickets[] = {stream.flush()};
    table.call("memory.give", memory, &bp_extension_memory::give, data, kSize, &streams[0], &tickets[0], int32_t{1});
  };
  LongWork work(table);
  Block kept(table, kSize);
  Stream first(table), second(table);
  for (unsigned round = 1; round < 4; ++round) {
    const Bytes bytes = pattern(kSize, round);
    {
      Block given(table, take(first), [&](void* data) { return give(data, first), BP_OK; });
      given.put(first, bytes);
      work.put_on(first);
      kept.copy_from(first, given, 0, 0, kSize);
    }
    for (int i = 0; i < 4; ++i) {
      Block other(table, take(second), [&](void* data) { return give(data, second), BP_OK; });
      other.put(second, Bytes(kSize, 0));
    }
    second.wait();
    expect_bytes(kept.get(first, 0, kSize), bytes, "what a stream read of a block that was given (memory.give)");
    first.wait();
  }
}

}  // namespace

void add_memory_laws(const Table& table, Laws& laws) {
  const auto* pinned = table.extension<bp_extension_pinned>(BP_EXTENSION_PINNED);
  const auto* memory = table.extension<bp_extension_memory>(BP_EXTENSION_MEMORY);
  const bool pool = memory && memory->take && memory->give && !table.synchronous();
  add_law(laws, BP_EXTENSION_PINNED, "copies", pinned,
          [&table](auto& e) { pinned_memory_is_copied_in_order(table, e); });
  add_law(laws, BP_EXTENSION_MEMORY, "kinds", memory, [&table](auto& e) { kinds_serve_copies(table, e); });
  add_law(laws, BP_EXTENSION_MEMORY, "deallocate", memory, [&table](auto& e) { memory_of_kinds_comes_back(table, e); });
  add_law(laws, BP_EXTENSION_MEMORY, "pool", pool ? memory : nullptr,
          [&table](auto& e) { given_blocks_are_read_first(table, e); });
}

}  // namespace backplane::conformance
