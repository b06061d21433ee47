// Signs of life between machines. A thread of each rank sends rank 0 a short message ten times a second (less often
// among hundreds of ranks): what the rank waits for, and the first failure that it knows. Rank 0 answers with the first
// failure of all. So a rank that is silent differs from one that is late. Rank 0 sees which ranks wait for which.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "judge.hpp"
#include "provider.h"

namespace backplane::collectives {

inline constexpr const char* kLostRank = "rank ";  // which the text of a loss begins with

class Beats {
 public:
  struct Rank {
    int32_t number, size;
    std::function<RankView()> view;                                   // of itself
    std::function<const Failure*()> failure;                          // NULL: it knows of none
    std::function<void(int32_t code, const std::string& text)> fail;  // the first one counts
  };
  // All ranks make one at the same time.
  Beats(const bp_collective_provider& provider, void* connection, Rank rank);
  ~Beats();
  Beats(const Beats&) = delete;

  // A launcher ends this process: silence is a loss earlier than else.
  void suspect() { suspects_.store(true, std::memory_order_relaxed); }
  // Whom wait `number` of this rank waits for, as rank 0 reported last.
  std::vector<int32_t> missing(uint64_t number);
  // Every rank has raised the failure, or ended.
  bool all_know() const { return all_know_.load(std::memory_order_acquire); }
  // The rank leaves, or has failed. Rank 0 goes on until the others have left.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Beat;
  struct Answer;
  template <class T>
  struct Message;
  struct Member;
  Clock::duration silence() const;  // after which a rank is lost
  bool pause(Clock::duration how_long);
  void serve();
  void hear(int32_t rank, Member& member);
  void answer(int32_t rank, Member& member);
  void find_faults(Clock::time_point now);
  void warn();
  void report();
  bool exchange(Clock::time_point& heard, bool is_last);
  bool is_served(Clock::time_point now) const;

  const bp_collective_provider provider_;
  const Rank rank_;
  void* group_ = nullptr;
  // Of rank 0: the others; and what all of them do, and whom they wait for, by their number.
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<RankView> views_;
  std::vector<std::vector<int32_t>> waited_for_;
  std::vector<double> next_warning_;
  // Of other ranks. They stay while the provider moves them.
  std::unique_ptr<Message<Beat>> sent_;
  std::unique_ptr<Message<Answer>> received_;
  Judge judge_;
  std::atomic<bool> suspects_{false}, all_know_{false};
  std::mutex lock_;
  std::condition_variable wakes_;
  bool stops_ = false;
  Clock::time_point stopped_;
  uint64_t reported_wait_ = 0;
  std::vector<int32_t> reported_missing_;
  std::thread thread_;
};

}  // namespace backplane::collectives
