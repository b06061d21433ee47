#include "waiting.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <sstream>

namespace backplane::collectives {
namespace {

constexpr auto kBetweenJudgements = std::chrono::milliseconds(500);
constexpr auto kUntilSure = std::chrono::milliseconds(2500);  // in which silence shows that a rank is lost

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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

uint64_t process_space() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// ---- what a rank knows of others ------------------------------------------------------------------------------------

bool World::is_lost(int32_t rank) const {
  if (!all_) return false;
  const RankState &state = roll_.state(rank), &own = roll_.state(rank_);
  const int64_t process = state.process.load(std::memory_order_relaxed);
  return is_process_ && state.state.load(std::memory_order_acquire) != RankState::kUnknown && process > 0 &&
         state.process_space.load(std::memory_order_relaxed) == own.process_space.load(std::memory_order_relaxed) &&
         has_ended(process);
}

std::string World::lost_ranks() {
  std::string text;
  for (int32_t rank = 0; rank < size_; ++rank)
    if (rank != rank_ && is_lost(rank)) text += (text.empty() ? "rank " : ", rank ") + std::to_string(rank);
  return text;
}

bool World::inquire() {
  if (roll_.state(rank_).state.load(std::memory_order_acquire) == RankState::kRaised) return true;
  const std::string lost = lost_ranks();
  BP_CHECK(lost.empty(), DEVICE, lost, " was lost: its process has ended");
  if (!beats_) return false;
  beats_->suspect();
  for (const auto end = Clock::now() + kUntilSure; Clock::now() < end;) {
    check_failure();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

std::string World::last_call(const Group& group, int32_t place) const {
  const uint64_t calls = group.calls.load(std::memory_order_relaxed);
  if (!group.board || calls < 2) return "";
  const Slot& slot = group.board.slot(place, calls - 2);
  if (slot.count.load(std::memory_order_acquire) != calls - 1) return "";
  return "; its last call was " + described(slot.notice);
}

RankView World::own_view() {
  const RankState& state = roll_.state(rank_);
  RankView view;
  view.state = state.state.load(std::memory_order_acquire);
  if (!state.waiting.read(view.waiting)) view.waiting = Waiting();
  const std::unique_lock guard(groups_lock_, std::try_to_lock);  // its holder makes a group, and no call
  if (guard.owns_lock()) {
    known_calls_.clear();
    for (const auto& [name, group] : groups_)
      known_calls_.emplace_back(group->key, group->calls.load(std::memory_order_acquire) + 1);
  }
  view.calls = known_calls_;
  return view;
}

void World::judge() {
  const std::unique_lock guard(judge_lock_, std::try_to_lock);
  const Clock::time_point now = Clock::now();
  if (!guard.owns_lock() || now - judged_ < kBetweenJudgements) return;
  judged_ = now;
  std::vector<RankView> views(static_cast<size_t>(size_));
  for (int32_t rank = 0; rank < size_; ++rank)
    if (Waiting waiting; roll_.state(rank).waiting.read(waiting)) views[static_cast<size_t>(rank)].waiting = waiting;
  Edges edges(views);
  if (const std::string text = judge_.look(views, edges, now); !text.empty()) fail(BP_ERROR_DEVICE, text);
}

// ---- the first failure ----------------------------------------------------------------------------------------------

void World::raise_failure(const Notice* notice) const {
  const Failure& failure = roll_.failure();
  roll_.state(rank_).state.store(RankState::kRaised, std::memory_order_release);
  std::string text = failure.text;
  if (notice && text.starts_with(kLostRank))
    text = described(*notice) + " on rank " + std::to_string(rank_) + ": " + text;
  throw Error(failure.code.load(std::memory_order_relaxed), text);
}

void World::check_failure(const Notice* notice) const {
  if (all_ && has_failed()) [[unlikely]]
    raise_failure(notice);
}

std::string World::first_failure(bp_status code, const std::string& text) {
  if (!all_) return text;
  Failure& failure = roll_.failure();
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

// ---- a wait that lasts ----------------------------------------------------------------------------------------------

World::Longer::Longer(World& world, const Wait& wait)
    : world_(world), wait_(wait), number_(world.waits_.fetch_add(1, std::memory_order_relaxed) + 1) {
  std::thread::id first;
  const std::thread::id own = std::this_thread::get_id();
  if (!world.waiting_thread_.compare_exchange_strong(first, own) && first != own)
    world.has_waiting_threads_.store(true);
}

World::Longer::~Longer() {
  if (looks_ == 0 || world_.published_.load() != this) return;
  world_.roll_.state(world_.rank_).waiting.write(Waiting());
  world_.published_.store(nullptr);
}

void World::Longer::look() {
  const std::vector<int32_t> places = wait_.missing();
  const double seconds = seconds_since(start_);
  find_lost(places);
  std::vector<int32_t> missing;
  for (const int32_t place : places) missing.push_back(wait_.group.ranks[static_cast<size_t>(place)]);
  publish(missing, seconds);
  check_deadline(missing, seconds);
  if (!world_.beats_ && world_.all_) {
    warn(places, seconds);
    world_.judge();
  }
  // Between pieces of work the host asks whether the program was interrupted.
  if (wait_.host)
    plugin::check_status(wait_.host->parallel_for(
        0, 64, 1, [](void*, int64_t, int64_t, int32_t) -> bp_status { return BP_OK; }, nullptr));
}

void World::Longer::find_lost(const std::vector<int32_t>& places) {
  if (!world_.all_) return;
  for (const int32_t place : places) {
    const int32_t rank = wait_.group.ranks[static_cast<size_t>(place)];
    const bool left = world_.roll_.state(rank).state.load(std::memory_order_acquire) == RankState::kLeft;
    if (left || world_.is_lost(rank))
      world_.fail(BP_ERROR_DEVICE,
                  described(wait_.notice) + " on rank " + std::to_string(world_.rank_) + ": rank " +
                      std::to_string(rank) +
                      (left ? " has left: its program ended without this call" : " was lost: its process has ended") +
                      world_.last_call(wait_.group, place));
  }
}

void World::Longer::publish_once() {
  looks_ = UINT64_MAX / 2;
  publish({}, 0);
}

void World::Longer::publish(const std::vector<int32_t>& missing, double seconds) {
  ++looks_;
  const Longer* none = nullptr;
  if (!world_.all_ || (!world_.published_.compare_exchange_strong(none, this) && none != this)) return;
  Waiting waiting;
  waiting.number = number_;
  waiting.looks = looks_;
  waiting.group = wait_.group.key;
  waiting.call = wait_.group.calls.load(std::memory_order_relaxed);
  waiting.seconds = seconds;
  waiting.limit = world_.timeout + wait_.more;
  waiting.kind = wait_.kind;
  const bool is_all = &wait_.group == world_.all_;
  std::snprintf(waiting.text, sizeof waiting.text, "%s%s%.40s", described(wait_.notice).c_str(),
                is_all ? "" : " in group ", is_all ? "" : wait_.group.name.c_str());
  const auto fill = [&](const std::vector<int32_t>& ranks) {
    for (const int32_t rank : ranks)
      if (rank != world_.rank_ && waiting.n_missing < Waiting::kMostMissing)
        waiting.missing[waiting.n_missing++] = rank;
  };
  if (wait_.kind == Waiting::kMembers && is_all)
    waiting.n_missing = Waiting::kEverybody;
  else if (wait_.kind == Waiting::kMembers)
    fill(wait_.group.ranks);
  else if (wait_.kind != Waiting::kNothing && (!wait_.is_stuck || wait_.is_stuck()))
    fill(missing);
  if (world_.has_waiting_threads_.load()) waiting.n_missing = 0;
  world_.roll_.state(world_.rank_).waiting.write(waiting);
}

void World::Longer::check_deadline(const std::vector<int32_t>& missing, double seconds) {
  if (seconds <= world_.timeout + wait_.more) return;
  const std::vector<int32_t> late = missing.empty() && world_.beats_ ? world_.beats_->missing(number_) : missing;
  std::ostringstream text;
  text << described(wait_.notice) << " on rank " << world_.rank_ << ": "
       << (late.empty() ? "a rank" : named_ranks(late)) << (late.size() > 1 ? " have not " : " has not ") << wait_.verb
       << " within " << world_.timeout << " s";
  if (missing.size() == 1) {
    const auto place = std::find(wait_.group.ranks.begin(), wait_.group.ranks.end(), missing[0]);
    text << world_.last_call(wait_.group, static_cast<int32_t>(place - wait_.group.ranks.begin()));
  }
  text << ". If ranks may be that far apart, give bp.distributed.init(timeout=) or `with "
          "bp.distributed.timeout(seconds)` more"
       << hint_of(described(wait_.notice).c_str());
  world_.fail(BP_ERROR_DEVICE, text.str());
}

void World::Longer::warn(const std::vector<int32_t>& places, double seconds) {
  if (seconds < next_warning_ || wait_.kind == Waiting::kNothing || (wait_.is_stuck && !wait_.is_stuck())) return;
  next_warning_ *= 2;
  for (const int32_t place : places) {
    const int32_t late = wait_.group.ranks[static_cast<size_t>(place)];
    RankState& state = world_.roll_.state(late);
    Waiting other;
    if (!state.waiting.read(other) || other.number != 0) continue;  // it waits for another one
    // One rank says it for all that wait for the same one.
    const int64_t now = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now().time_since_epoch()).count();
    int64_t last = state.warned.load();
    if (static_cast<double>(now - last) < seconds * 500 || !state.warned.compare_exchange_strong(last, now)) return;
    Waiting own;
    own.seconds = seconds;
    own.limit = world_.timeout + wait_.more;
    std::snprintf(own.text, sizeof own.text, "%s", described(wait_.notice).c_str());
    return warn_of_late_rank(world_.rank_, own, late, world_.last_call(wait_.group, place));
  }
}

}  // namespace backplane::collectives
