// The ranks of a program as one of them sees them: its connection, its groups, and the calls that it makes in them.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "backplane/plugin/context.hpp"
#include "beats.hpp"
#include "board.hpp"
#include "judge.hpp"
#include "provider.h"

namespace backplane::collectives {

class World;

struct Group {
  std::string name;
  uint64_t key = 0;                // a hash of the name, alike on all ranks
  std::vector<int32_t> ranks;      // of the world
  int32_t place = 0;               // of this rank in it
  void* handle = nullptr;          // the provider's
  Board board;                     // empty: the ranks share no memory
  void* devices = nullptr;         // the device provider's; NULL: there was no call on devices yet
  bp_device device{};              // this rank's in it
  std::atomic<uint64_t> calls{0};  // made so far
  int32_t size() const { return static_cast<int32_t>(ranks.size()); }
};

// A call that an op makes, in the terms of the provider, with what the other ranks compare.
struct Request {
  bp_collective_call call{};
  Notice notice;
};

// A call that has begun, with copies of its operand and result, until it is finished.
struct Pending {
  Request request;
  std::vector<char> in, out;
  std::function<void(void* to)> complete;  // gives the result
  int64_t number = 0;
  Group* group = nullptr;
  void* work = nullptr;  // the provider's
  bool done = false;
  bp_status status = BP_OK;
  std::string error;
};

class World {
 public:
  // `provider`: a file, or "threads". Then `rank`, `size` and `name` give the rank and the world of this
  // thread; else they are not read. `devices`: the file of a device provider, or empty.
  static std::shared_ptr<World> join(const std::string& provider, int32_t rank, int32_t size, const std::string& name,
                                     const std::string& devices);
  // The world of the thread, or else of the process. Throws without one.
  static World& current();
  static std::shared_ptr<World> find() noexcept;
  static void forget(const World& world);

  World(const bp_collective_provider& provider, void* connection, int32_t rank, int32_t size, bool is_process);
  ~World();
  World(const World&) = delete;

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }
  // "world", or ranks as "0,2"; made at its first use, by all of its ranks.
  Group& group(const std::string& name, const bp_host* host);
  // Returns once the call's results are there. Throws, on every rank, what went wrong on any.
  void run(const bp_host* host, Group& group, const Request& request);
  // The same in two steps: the first returns a number while the data moves, the second writes the result. `notice`:
  // what the second step is for.
  int64_t begin(const bp_host* host, Group& group, std::unique_ptr<Pending> pending);
  void end(const bp_host* host, int64_t number, const Notice& notice, void* out);

  // Takes the device provider such calls, on this backend? Otherwise `reason` says why not.
  bool takes_on_device(const bp_frame* frame, const bp_collective_call& call, std::string& reason) const;
  // Compares the call, and records it on the frame's stream.
  void run_on_device(const bp_frame* frame, Group& group, const Request& request);

  double timeout = 600;  // seconds that a rank waits for another
  bool has_failed() const { return roll_.failure().reported.load(std::memory_order_acquire) != 0; }
  // Why a launcher ends this process: throws where a rank is lost. True: this rank has raised the failure already.
  bool inquire();
  void leave();
  void abort();

 private:
  using Clock = std::chrono::steady_clock;
  struct Wait {
    const bp_host* host;
    Group& group;
    const Notice& notice;
    std::function<std::vector<int32_t>()> missing;  // places whose ranks are waited for
    const char* verb;                               // what they have not: "arrived"
    double more = 0;                                // seconds beside the timeout
    uint32_t kind = Waiting::kRanks;                // what the missing ranks mean for others
    std::function<bool()> is_stuck = nullptr;       // of kRanks: do they hold this rank up now? Left out: always
  };
  class Longer;
  void check(bp_status status, const char* what) const;
  void check_for_all(bp_status status, const Notice& notice);
  // Calls ready() until it is true; throws at the deadline, after a failure elsewhere, and where a rank is lost.
  template <class Ready>
  void wait_for(const Wait& wait, Ready ready);
  void judge();
  RankView own_view();
  // The ranks that are known to be lost; empty: none.
  std::string lost_ranks();
  // `operand`: of at most Slot::kMostBytes, for the others to read.
  void meet(const bp_host* host, Group& group, const Notice& notice, std::span<const char> operand = {});
  void meet_by_messages(const bp_host* host, Group& group, const Notice& notice);
  void exchange(const bp_host* host, Group& group, const Notice& notice, const bp_collective_call& call,
                uint32_t kind = Waiting::kNothing);
  void open_devices(const bp_frame* frame, Group& group, const Notice& notice);
  void check_devices();
  void close_devices();
  void announce(const bp_host* host, Group& group, const Notice& notice);
  void expect(const bp_host* host, Group& group, const Notice& notice);
  void check_ready(const Notice& notice) const;
  void check_call(const bp_host* host, Group& group, const Request& request);
  void start(Group& group, const Request& request, bool may_wait, void** work);
  bool run_on_board(const bp_host* host, Group& group, const Request& request);
  // Calls has_moved() until it is true.
  void wait_until_moved(const bp_host* host, Group& group, const Request& request, std::function<bool()> has_moved);
  bool test_pending(Pending& pending);
  void wait_for_pending(const bp_host* host, Pending& pending);
  void settle_order(const bp_host* host, Group& group);
  void move_on();
  void stop_moving();
  void meet_makers(const bp_host* host, Group& group, const Notice& notice);
  std::unique_ptr<Group> make_group(const std::string& name, std::vector<int32_t> ranks, const bp_host* host);
  bool is_lost(int32_t rank) const;
  std::string last_call(const Group& group, int32_t place) const;
  // The first failure of any rank becomes everybody's: its text.
  std::string first_failure(bp_status code, const std::string& text);
  // Says it, and ends the process.
  [[noreturn]] void end_by_failure(const std::string& text);
  [[noreturn]] void fail(bp_status code, const std::string& text);
  // `notice`: what this rank is in, for a loss that no call found.
  [[noreturn]] void raise_failure(const Notice* notice) const;
  void check_failure(const Notice* notice = nullptr) const;

  const bp_collective_provider provider_;
  void* const connection_;
  const int32_t rank_, size_;
  const bool is_process_;
  const bool spins_;                         // each rank has a processor
  bp_collective_device_provider devices_{};  // without functions: there is none
  std::atomic<bool> uses_devices_{false};
  bool shares_ = false;         // memory, with all ranks
  std::vector<char> own_roll_;  // where they do not
  Roll roll_;
  std::unique_ptr<Beats> beats_;  // between machines
  std::mutex judge_lock_;
  Judge judge_;
  Clock::time_point judged_;
  std::vector<std::pair<uint64_t, uint64_t>> known_calls_;  // of the groups
  // Waits that last. One at a time is published. Ranks with several threads that wait are never in a circle:
  // another thread may go on.
  std::atomic<uint64_t> waits_{0};
  std::atomic<const Longer*> published_{nullptr};
  std::atomic<std::thread::id> waiting_thread_;
  std::atomic<bool> has_waiting_threads_{false};
  Group* all_ = nullptr;
  std::map<std::string, std::unique_ptr<Group>, std::less<>> groups_;
  std::mutex groups_lock_;
  bool left_ = false;

  // The call that is within the provider, which may wait there for the others; a thread looks after it.
  struct Watched {
    Watched(World& world, const Group& group, const Notice& notice);
    ~Watched();
    World& world;
  };
  void watch();
  std::atomic<uint64_t> watched_{0};  // odd within such a call
  std::atomic<const Group*> watched_group_{nullptr};
  std::atomic<const Notice*> watched_notice_{nullptr};
  std::mutex end_lock_;
  std::condition_variable end_;
  bool ends_ = false;
  std::thread watcher_;

  std::mutex pending_lock_;
  std::vector<std::shared_ptr<Pending>> pending_;  // in the order in which they began
  std::condition_variable has_pending_;
  int64_t begun_ = 0;
  bool stops_moving_ = false;
  std::thread mover_;
};

// Of this process: two numbers of processes mean the same in one space.
uint64_t process_space();
// The provider whose ranks are threads of this process.
const bp_collective_provider& thread_provider();
// Sets the world and the rank that the calling thread joins next.
void place_thread(const std::string& world, int32_t rank, int32_t size);

}  // namespace backplane::collectives
