// Laws of an asynchronous device's pool: who may have a block when, the best fit, and pieces that grow together again.
#include "memory/block_pool.hpp"

#include <gtest/gtest.h>

#include <random>

#include "memory/devices/stream.hpp"

namespace backplane::core::block_pool_test {
namespace {

bool is_complete(const StorageUse& use) { return use.stream->completed >= use.ticket; }

// A pool over addresses that nothing lies at.
class Pool {
 public:
  explicit Pool(bool in_parts) : pool(in_parts, 1, is_complete) {}
  char* get(uint64_t size, Stream& stream) {
    if (void* data = pool.take(size, &stream)) return static_cast<char*>(data);
    ++asked;
    const uint64_t whole = pool.segment_size(size, false);
    char* data = next;
    next += whole + (uint64_t{1} << 30);
    return static_cast<char*>(pool.adopt({data, whole}, size, &stream));
  }
  void give(char* data, std::initializer_list<StorageUse> reads = {}) {
    StorageUses uses;
    for (const StorageUse& use : reads) uses.note_read(use);
    pool.give(data, uses);
  }

  BlockPool pool;
  int asked = 0;

 private:
  char* next = reinterpret_cast<char*>(uint64_t{1} << 40);
};

TEST(BlockPool, AStreamHasItsBlockAgainAtOnceAndOthersWhenTheWorkHasEnded) {
  Pool p(false);
  Stream a, b;
  char* block = p.get(1000, a);
  p.give(block, {{&a, 7}});
  EXPECT_NE(p.get(1000, b), block);
  a.completed = 7;
  EXPECT_EQ(p.get(1000, b), block);
}

TEST(BlockPool, ABlockThatAnotherStreamReadsWaitsForThatStream) {
  Pool p(false);
  Stream a, b;
  char* block = p.get(1000, a);
  p.give(block, {{&a, 1000}, {&b, 5}});  // b has come less far, and is what counts
  a.completed = 1000;
  EXPECT_NE(p.get(1000, a), block);
  b.completed = 5;
  EXPECT_EQ(p.get(1000, a), block);
}

TEST(BlockPool, ATenantThatUsedNothingLeavesTheUsesOfTheOneBefore) {
  Pool p(false);
  Stream a, b;
  char* block = p.get(1000, a);
  p.give(block, {{&a, 7}});
  ASSERT_EQ(p.get(1000, a), block);
  p.give(block);
  EXPECT_NE(p.get(1000, b), block);
}

TEST(BlockPool, TheSmallestBlockThatFitsIsTaken) {
  Pool p(false);
  Stream a;
  char *large = p.get(4096, a), *small = p.get(2048, a), *least = p.get(512, a);
  for (char* block : {large, small, least}) p.give(block);
  EXPECT_EQ(p.get(2000, a), small);
  EXPECT_EQ(p.get(100, a), least);
  EXPECT_NE(p.get(100, a), large) << "most of it would be wasted";
}

TEST(BlockPool, PiecesOfASegmentGrowTogetherAgain) {
  Pool p(true);
  Stream a;
  char* first = p.get(600, a);
  char* second = p.get(600, a);
  char* third = p.get(600, a);
  EXPECT_EQ(p.asked, 1);
  EXPECT_EQ(second - first, 1024);
  EXPECT_EQ(third - second, 1024);
  p.give(first, {{&a, 1}});
  p.give(third, {{&a, 3}});
  EXPECT_TRUE(p.pool.drop_unused(0).empty()) << "a piece is taken";
  p.give(second, {{&a, 2}});
  EXPECT_TRUE(p.pool.drop_unused(0).empty()) << "work uses it";
  a.completed = 3;
  const auto dropped = p.pool.drop_unused(0);
  ASSERT_EQ(dropped.size(), 1u);
  EXPECT_EQ(dropped[0].data, first);
  EXPECT_EQ(p.pool.reserved(), 0u);
}

// No two taken blocks overlap, no block is given to a stream while another still uses it, and all memory is found
// again.
TEST(BlockPool, HoldsItsLawsOverRandomRequests) {
  for (const bool in_parts : {false, true}) {
    Pool p(in_parts);
    Stream streams[3];
    struct Taken {
      char* data;
      uint64_t size;
      std::vector<StorageUse> uses;
    };
    std::vector<Taken> taken;
    std::vector<Taken> past;  // what was given back
    std::mt19937 random(5);
    for (int step = 0; step < 4000; ++step) {
      Stream& stream = streams[random() % 3];
      if (random() % 5 == 0) stream.completed = stream.issued;
      if (taken.size() < 40 && random() % 2) {
        const uint64_t size = 1 + random() % (random() % 9 ? 5000 : 3000000);
        char* data = p.get(size, stream);
        for (const Taken& other : taken)
          ASSERT_TRUE(data + size <= other.data || other.data + other.size <= data) << step;
        for (const Taken& before : past) {
          if (before.data >= data + size || data >= before.data + before.size) continue;
          for (const StorageUse& use : before.uses) ASSERT_TRUE(use.stream == &stream || is_complete(use)) << step;
        }
        taken.push_back({data, size, {}});
      } else if (!taken.empty()) {
        const size_t at = random() % taken.size();
        Taken block = taken[at];
        taken.erase(taken.begin() + static_cast<ptrdiff_t>(at));
        StorageUses uses;
        for (int i = 0; i < 2; ++i) {
          Stream& user = streams[random() % 3];
          block.uses.push_back({&user, ++user.issued});
          uses.note_read(block.uses.back());
        }
        p.pool.give(block.data, uses);
        past.push_back(block);
      }
    }
    for (Taken& block : taken) p.give(block.data);
    for (Stream& stream : streams) stream.completed = stream.issued;
    p.pool.drop_unused(0);
    EXPECT_EQ(p.pool.in_use(), 0u);
    EXPECT_EQ(p.pool.reserved(), 0u) << in_parts;
  }
}

}  // namespace
}  // namespace backplane::core::block_pool_test
