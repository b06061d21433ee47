// How ranks meet before data moves, and the errors if a rank does not come.
#include <algorithm>
#include <cstdio>
#include <optional>
#include <thread>

#include "backplane/plugin/dtype.hpp"
#include "interpreter.hpp"
#include "results.hpp"
#include "waiting.hpp"

namespace backplane::collectives {
namespace {

constexpr uint64_t kLittle = 64 << 10;  // bytes that travel in less time than Python's lock takes
constexpr double kSlowest = 1e7;        // bytes per second that data moves at least

// Alike on all machines.
uint64_t hash_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
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

}  // namespace

std::unique_ptr<Group> World::make_group(const std::string& name, std::vector<int32_t> ranks, const bp_host* host) {
  auto group = std::make_unique<Group>();
  group->name = name;
  group->ranks = std::move(ranks);
  const auto own = std::find(group->ranks.begin(), group->ranks.end(), rank_);
  BP_CHECK(own != group->ranks.end(), VALUE, "group: rank ", rank_, " is not among the ranks ", name);
  group->place = static_cast<int32_t>(own - group->ranks.begin());
  group->key = hash_of(name);
  Notice notice;
  notice.ndim = -1;
  std::snprintf(notice.op, sizeof notice.op, "group %.16s", name.c_str());
  if (shares_) meet_makers(host, *group, notice);
  const bool is_all = all_ == nullptr;
  const uint64_t before = is_all ? Roll::bytes(size_) : 0;
  void* memory = nullptr;
  {
    const Wait wait{host, *group, notice, [] { return std::vector<int32_t>(); }, "joined", 0, Waiting::kMembers};
    Longer longer(*this, wait);
    std::optional<Watched> watched;
    if (!is_all && !shares_) {
      longer.publish_once();
      watched.emplace(*this, *group, notice);
    }
    const WithoutInterpreter unlocked;
    check(provider_.make_group(connection_, group->ranks.data(), group->size(), &group->handle), "group");
    check(provider_.share(group->handle, before + Board::bytes(group->size()), &memory), "group");
  }
  if (is_all) {
    shares_ = memory != nullptr;
    own_roll_.resize(shares_ ? 0 : before + kLine);
    roll_ = Roll(shares_ ? memory : own_roll_.data());
  }
  if (memory) group->board = Board(at_line(memory) + before, group->size());
  if (shares_ && !is_all) {
    std::snprintf(notice.op, sizeof notice.op, "new group");
    meet(host, *group, notice);  // all of them have seen that this rank wanted it
    roll_.state(rank_).wanted_group.store(0, std::memory_order_release);
  }
  return group;
}

// All of them make it now: the provider waits without a deadline.
void World::meet_makers(const bp_host* host, Group& group, const Notice& notice) {
  const uint64_t wanted = group.key | 1;
  roll_.state(rank_).wanted_group.store(wanted, std::memory_order_release);
  const auto missing = [&] {
    std::vector<int32_t> places;
    for (int32_t i = 0; i < group.size(); ++i)
      if (roll_.state(group.ranks[static_cast<size_t>(i)]).wanted_group.load(std::memory_order_acquire) != wanted)
        places.push_back(i);
    return places;
  };
  wait_for({host, group, notice, missing, "joined the group"}, [&] { return missing().empty(); });
}

void World::meet(const bp_host* host, Group& group, const Notice& notice, std::span<const char> operand) {
  if (group.size() == 1) return;
  if (!group.board) return meet_by_messages(host, group, notice);
  const uint64_t number = group.calls.load(std::memory_order_relaxed);
  group.calls.store(number + 1, std::memory_order_relaxed);
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
  group.calls.fetch_add(1);
  std::vector<Notice> all(group.ranks.size());
  bp_collective_call call{};
  call.header = BP_HEADER(bp_collective_call);
  call.kind = BP_COLLECTIVE_ALL_GATHER;
  call.dtype = BP_UINT8;
  call.count = sizeof notice;
  call.in = &notice;
  call.out = all.data();
  exchange(host, group, notice, call, Waiting::kMembers);
  for (size_t i = 0; i < all.size(); ++i)
    if (!notice.agrees(all[i]))
      fail(BP_ERROR_DEVICE, "the ranks of group " + group.name + " disagree in call " +
                                std::to_string(group.calls.load()) + ": rank " + std::to_string(rank_) + " calls " +
                                described(notice) + "; rank " + std::to_string(group.ranks[i]) + " calls " +
                                described(all[i]));
}

// A call of the provider that this file makes by itself.
void World::exchange(const bp_host* host, Group& group, const Notice& notice, const bp_collective_call& call,
                     uint32_t kind) {
  void* work = nullptr;
  check_for_all(provider_.start(group.handle, &call, &work), notice);
  int32_t done = work == nullptr;
  wait_for({host, group, notice, [] { return std::vector<int32_t>(); }, "arrived", 0, kind}, [&] {
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
  Wait wait{host, group, request.notice, others, "taken part in moving the data", seconds, Waiting::kNothing};
  // Ranks that did not compare the message may be held up by each other.
  const bool sends = request.call.kind == BP_COLLECTIVE_SEND;
  if (is_between_two(request.call) && !group.board.has_pairs()) {
    wait.kind = sends ? Waiting::kReceiver : Waiting::kSender;
  } else if (sends) {
    const Pair& pair = group.board.pair(group.place, request.call.peer);
    wait.kind = Waiting::kRanks;
    wait.is_stuck = [&pair, number = pair.sent.load(std::memory_order_relaxed)] {
      return pair.read.load(std::memory_order_acquire) < number;
    };
  }
  wait_for(wait, has_moved);
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
    operands[static_cast<size_t>(i)] = group.board.slot(i, group.calls.load(std::memory_order_relaxed) - 1).operand;
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
