// Whether ranks wait for each other in a circle, in which every rank would wait for ever: one of them then calls
// something else than the others. A rank that computes is late, and no part of a circle.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "roll.hpp"

namespace backplane::collectives {

// A rank, as others know it.
struct RankView {
  uint32_t state = RankState::kUnknown;
  Waiting waiting;
  std::vector<std::pair<uint64_t, uint64_t>> calls;  // that it has begun, by the group's hash; of Waiting::kMembers
};

// "rank 1", "ranks 1, 2 and 3 more"
std::string named_ranks(const std::vector<int32_t>& ranks);

// The ranks that each rank waits for. Ranks in one call of a group wait for the same ones: these are found once.
class Edges {
 public:
  explicit Edges(const std::vector<RankView>& ranks) : ranks_(ranks) {}
  const std::vector<int32_t>& of(int32_t rank);

 private:
  const std::vector<RankView>& ranks_;
  std::map<std::pair<uint64_t, int64_t>, std::vector<int32_t>> known_;
  const std::vector<int32_t> none_;
};

inline constexpr double kFirstWarning = 5;  // seconds that a rank waits before it says so; then twice as long each time

// A line on the error stream. `more` says what the late rank did last, or "".
void warn_of_late_rank(int32_t rank, const Waiting& waiting, int32_t late, const std::string& more);

// What a user may have missed where `call` waits for a message, or "".
std::string hint_of(const char* call);

class Judge {
 public:
  using Clock = std::chrono::steady_clock;
  // `stable`: how long a circle has to last. What ranks know of each other is a little old.
  explicit Judge(Clock::duration stable) : stable_(stable) {}
  // An error's text, or "".
  std::string look(const std::vector<RankView>& ranks, Edges& edges, Clock::time_point now);

 private:
  struct Seen {
    int32_t rank;
    uint64_t number, looks;
  };
  const Clock::duration stable_;
  std::vector<Seen> circle_;  // as it was seen first
  Clock::time_point since_;
};

}  // namespace backplane::collectives
