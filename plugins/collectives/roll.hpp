// What the ranks of a program know of each other: who is there, what each of them waits for, and the first failure.
// On one machine it lies in memory that they share. Between machines each rank has its own, and beats.hpp carries news.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

namespace backplane::collectives {

inline constexpr uintptr_t kLine = 64;  // of the cache

// Ranks map memory at page boundaries, so that all of them skip the same bytes.
inline char* at_line(void* memory) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + kLine - 1) / kLine * kLine);
}

// What a rank waits for.
struct Waiting {
  static constexpr int32_t kMostMissing = 48;
  static constexpr int32_t kEverybody = -1;
  enum : uint32_t {
    kNothing,  // or for data that is on its way
    kRanks,    // until the missing ranks make a call
    kMembers,  // until those of the missing ranks that are not there yet make it: who knows all calls finds them
    kReceiver,
    kSender
  };
  uint64_t number = 0;  // of this wait among the rank's; 0: it does not wait
  uint64_t looks = 0;   // that the rank has taken since it waits
  uint64_t group = 0;   // a hash of its name
  uint64_t call = 0;    // its number in the group
  double seconds = 0;   // waited so far
  double limit = 0;     // of them
  uint32_t kind = kNothing;
  int32_t n_missing = 0;  // or kEverybody
  int32_t missing[kMostMissing] = {};
  char text[256] = {};  // the call and its line
};

// A value that one thread writes and others read, who see all of one writing or nothing. Also where the writer ends
// in the middle.
template <class T>
class Published {
 public:
  void write(const T& value) {
    std::array<uint64_t, kWords> words{};
    std::memcpy(words.data(), &value, sizeof value);
    const uint64_t before = version_.load(std::memory_order_relaxed);
    version_.store(before | 1, std::memory_order_release);
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], std::memory_order_release);
    version_.store((before | 1) + 1, std::memory_order_release);
  }
  // False: it was being written.
  bool read(T& value) const {
    std::array<uint64_t, kWords> words{};
    const uint64_t before = version_.load(std::memory_order_acquire);
    for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(std::memory_order_acquire);
    if (before % 2 == 1 || version_.load(std::memory_order_acquire) != before) return false;
    std::memcpy(static_cast<void*>(&value), words.data(), sizeof value);
    return true;
  }

 private:
  static constexpr size_t kWords = (sizeof(T) + 7) / 8;
  std::atomic<uint64_t> version_;
  std::array<std::atomic<uint64_t>, kWords> words_;
};

struct RankState {
  enum : uint32_t { kUnknown, kThere, kLeft, kRaised };
  std::atomic<int64_t> process;
  std::atomic<uint64_t> process_space;  // two numbers of processes mean the same in one space
  std::atomic<uint32_t> state;
  std::atomic<uint64_t> wanted_group;  // the group that it waits to make
  std::atomic<int64_t> warned;         // milliseconds of the steady clock at the last warning about it
  Published<Waiting> waiting;
};

struct Failure {
  static constexpr size_t kMostText = 1536;
  std::atomic<uint32_t> taken, reported;
  std::atomic<int32_t> code;
  char text[kMostText];
};

// Of n ranks, in memory of zeros.
class Roll {
 public:
  Roll() = default;
  explicit Roll(void* memory) : base_(at_line(memory)) {}
  // A multiple of a line, which the first line of the memory may add to.
  static uint64_t bytes(int32_t n) { return kAtStates + sizeof(AlignedState) * static_cast<uint64_t>(n); }

  Failure& failure() const { return *reinterpret_cast<Failure*>(base_); }
  RankState& state(int32_t rank) const { return reinterpret_cast<AlignedState*>(base_ + kAtStates)[rank]; }

 private:
  struct alignas(kLine) AlignedState : RankState {};
  static constexpr uint64_t kAtStates = (sizeof(Failure) + kLine - 1) / kLine * kLine;
  char* base_ = nullptr;
};

}  // namespace backplane::collectives
