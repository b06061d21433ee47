// How ranks meet before data moves, and the errors if a rank does not come.
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <sstream>
#include <thread>

#include "backplane/plugin/dtype.hpp"
#include "interpreter.hpp"
#include "results.hpp"
#include "world.hpp"

namespace backplane::collectives {
namespace {

constexpr int kWithoutPause = 512;  // looks of a wait before it gives Python's lock and the processor away
constexpr auto kSpin = std::chrono::microseconds(30);  // where each rank has a processor, and is a process
constexpr uint64_t kLittle = 64 << 10;                 // bytes that travel in less time than Python's lock takes
constexpr auto kBetweenLooks = std::chrono::milliseconds(20);
constexpr auto kAwake = std::chrono::milliseconds(2);
constexpr auto kBusy = std::chrono::microseconds(100);  // a yield that takes longer met other programs
constexpr double kSlowest = 1e7;                        // bytes per second that data moves at least
constexpr auto kPause = std::chrono::microseconds(50);

// Has it ended? A process that its parent did not wait for exists as a zombie.
bool has_ended(int64_t process) {
  if (kill(static_cast<pid_t>(process), 0) != 0) return errno == ESRCH;
  char path[64], text[512];
  std::snprintf(path, sizeof path, "/proc/%lld/stat", static_cast<long long>(process));
  std::FILE* file = std::fopen(path, "r");
  if (!file) return false;
  const size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = 0;
  const char* name_end = std::strrchr(text, ')');
  return name_end && name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X');
}

bool is_between_two(const bp_collective_call& call) {
  return call.kind == BP_COLLECTIVE_SEND || call.kind == BP_COLLECTIVE_RECV;
}

// What this rank gives.
uint64_t operand_bytes(const bp_collective_call& call, int32_t size) {
  const uint64_t block = call.count * static_cast<uint64_t>(plugin::kItemSize[call.dtype]);
  const bool divides = call.kind == BP_COLLECTIVE_REDUCE_SCATTER || call.kind == BP_COLLECTIVE_ALL_TO_ALL ||
                       call.kind == BP_COLLECTIVE_SCATTER;
  return divides ? block * static_cast<uint64_t>(size) : block;
}

std::string ranks_of(const Group& group, const std::vector<int32_t>& places) {
  std::ostringstream text;
  text << (places.size() == 1 ? "rank " : "ranks ");
  for (size_t i = 0; i < places.size(); ++i) text << (i ? ", " : "") << group.ranks[static_cast<size_t>(places[i])];
  return text.str();
}

}  // namespace

bool World::is_lost(int32_t rank) const {
  if (!all_ || !all_->board) return false;
  const RankState& state = all_->board.state(rank);
  const int64_t process = state.process.load(std::memory_order_relaxed);
  return is_process_ && state.state.load(std::memory_order_acquire) != RankState::kUnknown && process > 0 &&
         has_ended(process);
}

std::string World::lost_ranks() {
  std::string text;
  for (int32_t rank = 0; rank < size_; ++rank)
    if (rank != rank_ && is_lost(rank)) text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return text;
}

std::string World::last_call(const Group& group, int32_t place) const {
  if (!group.board || group.calls < 2) return "";
  const Slot& slot = group.board.slot(place, group.calls - 2);
  if (slot.count.load(std::memory_order_acquire) != group.calls - 1) return "";
  return "; its last call was " + described(slot.notice);
}

void World::raise_failure() const {
  const Failure& failure = all_->board.failure();
  all_->board.state(rank_).state.store(RankState::kRaised, std::memory_order_release);
  throw Error(failure.code.load(std::memory_order_relaxed), failure.text);
}

void World::check_failure() const {
  if (all_ && all_->board && all_->board.failure().reported.load(std::memory_order_acquire)) [[unlikely]]
    raise_failure();
}

std::string World::first_failure(bp_status code, const std::string& text) {
  if (!all_ || !all_->board) return text;
  Failure& failure = all_->board.failure();
  if (failure.taken.exchange(1) == 0) {
    failure.code.store(code, std::memory_order_relaxed);
    std::snprintf(failure.text, sizeof failure.text, "%s", text.c_str());
    failure.reported.store(1, std::memory_order_release);
  }
  // The rank that took it may have been lost in the middle.
  const auto end = Clock::now() + std::chrono::milliseconds(100);
  while (!failure.reported.load(std::memory_order_acquire))
    if (Clock::now() > end) return text;
  return failure.text;
}

void World::fail(bp_status code, const std::string& text) {
  const std::string first = first_failure(code, text);
  check_failure();
  throw Error(code, first);
}

void World::look_around(const Wait& wait, Clock::time_point start) {
  const std::vector<int32_t> missing = wait.missing();
  const std::string what = described(wait.notice) + " on rank " + std::to_string(rank_) + ": ";
  for (const int32_t place : missing) {
    const int32_t rank = wait.group.ranks[static_cast<size_t>(place)];
    const bool left =
        all_ && all_->board && all_->board.state(rank).state.load(std::memory_order_acquire) == RankState::kLeft;
    if (left || is_lost(rank))
      fail(BP_ERROR_DEVICE,
           what + "rank " + std::to_string(rank) +
               (left ? " has left: its program ended without this call" : " was lost: its process has ended") +
               last_call(wait.group, place));
  }
  if (std::chrono::duration<double>(Clock::now() - start).count() > timeout + wait.more) {
    std::ostringstream text;
    text << what << (missing.empty() ? "a rank" : ranks_of(wait.group, missing))
         << (missing.size() > 1 ? " have not " : " has not ") << wait.verb << " within " << timeout << " s";
    if (missing.size() == 1) text << last_call(wait.group, missing[0]);
    text << ". If ranks may be that far apart, give bp.distributed.init(timeout=) or `with "
            "bp.distributed.timeout(seconds)` more";
    fail(BP_ERROR_DEVICE, text.str());
  }
  // Between pieces of work the host asks whether the program was interrupted.
  if (wait.host)
    plugin::check_status(wait.host->parallel_for(
        0, 64, 1, [](void*, int64_t, int64_t, int32_t) -> bp_status { return BP_OK; }, nullptr));
}

template <class Ready>
void World::wait_for(const Wait& wait, Ready ready) {
  for (int i = 0; i < kWithoutPause; ++i)
    if (ready()) return;
  if (spins_)
    for (const Clock::time_point end = Clock::now() + kSpin; Clock::now() < end;)
      for (int i = 0; i < 64; ++i)
        if (ready()) return;
  const WithoutInterpreter unlocked;
  const Clock::time_point start = Clock::now();
  Clock::time_point awake_until = start + kAwake;
  for (Clock::time_point looked = start; !ready();) {
    check_failure();
    const Clock::time_point now = Clock::now();
    if (now - looked >= kBetweenLooks) {
      look_around(wait, start);
      looked = now;
    }
    // On a busy machine a yield costs the turns of all others, and a short sleep little more than itself. Ranks that
    // have a processor each do not give it away at once: both would wait for their turns at every call.
    if (now >= awake_until) {
      std::this_thread::sleep_for(kPause);
    } else if (!spins_) {
      std::this_thread::yield();
      if (Clock::now() - now > kBusy) awake_until = now;
    }
  }
}

std::unique_ptr<Group> World::make_group(const std::string& name, std::vector<int32_t> ranks, const bp_host* host) {
  auto group = std::make_unique<Group>();
  group->name = name;
  group->ranks = std::move(ranks);
  const auto own = std::find(group->ranks.begin(), group->ranks.end(), rank_);
  BP_CHECK(own != group->ranks.end(), VALUE, "group: rank ", rank_, " is not among the ranks ", name);
  group->place = static_cast<int32_t>(own - group->ranks.begin());
  // All of them make it now: the provider waits without a deadline.
  const Board board = all_ ? all_->board : Board();
  const uint64_t wanted = std::hash<std::string>()(name) | 1;
  if (board) {
    Notice notice;
    notice.ndim = -1;
    std::snprintf(notice.op, sizeof notice.op, "group %.16s", name.c_str());
    board.state(rank_).wanted_group.store(wanted, std::memory_order_release);
    const auto missing = [&] {
      std::vector<int32_t> places;
      for (int32_t i = 0; i < group->size(); ++i)
        if (board.state(group->ranks[static_cast<size_t>(i)]).wanted_group.load(std::memory_order_acquire) != wanted)
          places.push_back(i);
      return places;
    };
    wait_for({host, *group, notice, missing, "joined the group"}, [&] { return missing().empty(); });
  }
  check(provider_.make_group(connection_, group->ranks.data(), group->size(), &group->handle), "group");
  void* memory = nullptr;
  check(provider_.share(group->handle, Board::bytes(group->size()), &memory), "group");
  group->board = Board(memory, group->size());
  if (board) {
    Notice notice;
    notice.ndim = -1;
    std::snprintf(notice.op, sizeof notice.op, "new group");
    meet(host, *group, notice);  // all of them have seen that this rank wanted it
    board.state(rank_).wanted_group.store(0, std::memory_order_release);
  }
  return group;
}

void World::meet(const bp_host* host, Group& group, const Notice& notice, std::span<const char> operand) {
  if (group.size() == 1) return;
  if (!group.board) return meet_by_messages(host, group, notice);
  const uint64_t number = group.calls++;
  const uint64_t digest = notice.digest();
  Slot& own = group.board.slot(group.place, number);
  std::copy(operand.begin(), operand.end(), own.operand);  // of none, too, which has no address
  own.digest = digest;
  own.notice = notice;
  own.count.store(number + 1, std::memory_order_release);
  const auto is_there = [&](int32_t place) {
    return group.board.slot(place, number).count.load(std::memory_order_acquire) == number + 1;
  };
  const auto missing = [&] {
    std::vector<int32_t> places;
    for (int32_t i = 0; i < group.size(); ++i)
      if (!is_there(i)) places.push_back(i);
    return places;
  };
  int32_t next = 0;
  wait_for({host, group, notice, missing, "arrived"}, [&] {
    while (next < group.size() && is_there(next)) ++next;
    return next == group.size();
  });
  for (int32_t i = 0; i < group.size(); ++i) {
    const Slot& slot = group.board.slot(i, number);
    if (slot.digest == digest) [[likely]]
      continue;
    const Notice& other = slot.notice;
    const int32_t rank = group.ranks[static_cast<size_t>(i)];
    const auto own_text = "rank " + std::to_string(rank_) + " calls " + described(notice);
    const auto other_text = "rank " + std::to_string(rank) + " calls " + described(other);
    fail(BP_ERROR_DEVICE, "the ranks of group " + group.name + " disagree in call " + std::to_string(number + 1) +
                              ": " + (rank < rank_ ? other_text + "; " + own_text : own_text + "; " + other_text));
  }
}

void World::meet_by_messages(const bp_host* host, Group& group, const Notice& notice) {
  ++group.calls;
  std::vector<Notice> all(group.ranks.size());
  bp_collective_call call{};
  call.header = BP_HEADER(bp_collective_call);
  call.kind = BP_COLLECTIVE_ALL_GATHER;
  call.dtype = BP_UINT8;
  call.count = sizeof notice;
  call.in = &notice;
  call.out = all.data();
  exchange(host, group, notice, call);
  for (size_t i = 0; i < all.size(); ++i)
    if (!notice.agrees(all[i]))
      fail(BP_ERROR_DEVICE, "the ranks of group " + group.name + " disagree in call " + std::to_string(group.calls) +
                                ": rank " + std::to_string(rank_) + " calls " + described(notice) + "; rank " +
                                std::to_string(group.ranks[i]) + " calls " + described(all[i]));
}

// A call of the provider that this file makes by itself.
void World::exchange(const bp_host* host, Group& group, const Notice& notice, const bp_collective_call& call) {
  void* work = nullptr;
  check_for_all(provider_.start(group.handle, &call, &work), notice);
  int32_t done = work == nullptr;
  wait_for({host, group, notice, [] { return std::vector<int32_t>(); }, "arrived"}, [&] {
    if (!done) check_for_all(provider_.test(group.handle, work, &done), notice);
    return done != 0;
  });
}

void World::announce(const bp_host* host, Group& group, const Notice& notice) {
  if (!group.board.has_pairs()) return;
  Pair& pair = group.board.pair(group.place, notice.peer);
  const uint64_t number = pair.sent.load(std::memory_order_relaxed);
  const auto room = [&] { return number - pair.read.load(std::memory_order_acquire) < Pair::kPlaces; };
  wait_for({host, group, notice, [&] { return std::vector<int32_t>{notice.peer}; }, "received what was sent before"},
           room);
  pair.notices[number % Pair::kPlaces] = notice;
  pair.sent.store(number + 1, std::memory_order_release);
}

void World::expect(const bp_host* host, Group& group, const Notice& notice) {
  if (!group.board.has_pairs()) return;
  Pair& pair = group.board.pair(notice.peer, group.place);
  const uint64_t number = pair.read.load(std::memory_order_relaxed);
  wait_for({host, group, notice, [&] { return std::vector<int32_t>{notice.peer}; }, "sent it"},
           [&] { return pair.sent.load(std::memory_order_acquire) > number; });
  const Notice& sent = pair.notices[number % Pair::kPlaces];
  if (sent.dtype != notice.dtype || sent.ndim != notice.ndim || sent.elements != notice.elements ||
      std::memcmp(sent.shape, notice.shape, sizeof sent.shape) != 0)
    fail(BP_ERROR_DEVICE, "rank " + std::to_string(rank_) + " calls " + described(notice) + ", but rank " +
                              std::to_string(group.ranks[static_cast<size_t>(notice.peer)]) + " calls " +
                              described(sent));
  pair.read.store(number + 1, std::memory_order_release);
}

void World::wait_until_moved(const bp_host* host, Group& group, const Request& request,
                             std::function<bool()> has_moved) {
  const auto others = [&] {
    std::vector<int32_t> places;
    for (int32_t i = 0; i < group.size(); ++i) {
      const bool concerned = !is_between_two(request.call) || i == request.call.peer;
      if (concerned && i != group.place) places.push_back(i);
    }
    return places;
  };
  // A large tensor takes its time, too.
  const double seconds = static_cast<double>(request.notice.elements) * 8 * group.size() / kSlowest;
  wait_for({host, group, request.notice, others, "taken part in moving the data", seconds}, has_moved);
}

void World::check_for_all(bp_status status, const Notice& notice) {
  if (status != BP_OK)
    fail(status,
         described(notice) + " on rank " + std::to_string(rank_) + ": " + provider_.name + ": " + provider_.error());
}

void World::check_ready(const Notice& notice) const {
  check_failure();
  BP_CHECK(!left_, DEVICE, notice.op, ": this process has left the others (bp.distributed.finalize)");
}

// Before data moves, the ranks compare their calls.
void World::check_call(const bp_host* host, Group& group, const Request& request) {
  check_ready(request.notice);
  if (request.call.kind == BP_COLLECTIVE_SEND)
    announce(host, group, request.notice);
  else if (request.call.kind == BP_COLLECTIVE_RECV)
    expect(host, group, request.notice);
  else
    meet(host, group, request.notice);
}

// `may_wait`: for all of the call, where no rank is missing.
void World::start(Group& group, const Request& request, bool may_wait, void** work) {
  bp_collective_call call = request.call;
  if (may_wait && !is_between_two(call)) call.flags = BP_COLLECTIVE_ALL_THERE;
  const Watched watched(*this, group, request.notice);
  check_for_all(provider_.start(group.handle, &call, work), request.notice);
}

// Small operands travel with the notices.
bool World::run_on_board(const bp_host* host, Group& group, const Request& request) {
  const bp_collective_call& call = request.call;
  const uint64_t bytes = operand_bytes(call, group.size());
  if (!group.board || group.size() == 1 || call.count == 0 || is_between_two(call) || !call.in ||
      bytes > Slot::kMostBytes)
    return false;
  check_ready(request.notice);
  meet(host, group, request.notice, {static_cast<const char*>(call.in), bytes});
  std::vector<const void*> operands(group.ranks.size());
  for (int32_t i = 0; i < group.size(); ++i)
    operands[static_cast<size_t>(i)] = group.board.slot(i, group.calls - 1).operand;
  check_for_all(compute_result(call, static_cast<size_t>(group.place), operands), request.notice);
  return true;
}

void World::run(const bp_host* host, Group& group, const Request& request) {
  settle_order(host, group);
  if (run_on_board(host, group, request)) return;
  check_call(host, group, request);
  if (request.call.count == 0) return;
  void* work = nullptr;
  {
    std::optional<WithoutInterpreter> unlocked;
    if (request.notice.elements > kLittle) unlocked.emplace();
    start(group, request, true, &work);
  }
  if (!work) return;
  int32_t done = 0;
  wait_until_moved(host, group, request, [&] {
    check_for_all(provider_.test(group.handle, work, &done), request.notice);
    return done != 0;
  });
}

}  // namespace backplane::collectives
