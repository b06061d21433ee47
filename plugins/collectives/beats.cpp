#include "beats.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace backplane::collectives {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;

constexpr auto kBetweenBeats = milliseconds(100);
constexpr auto kPerRank = std::chrono::microseconds(250);  // between them, where that is more
constexpr auto kBetweenLooks = milliseconds(10);
constexpr auto kBetweenJudgements = milliseconds(250);
constexpr auto kStable = milliseconds(2500);      // of a circle of ranks; messages take their time
constexpr auto kSuspicious = milliseconds(1200);  // of silence, once a launcher ends the ranks
constexpr auto kFarewell = milliseconds(1000);    // of a rank after a failure
constexpr double kSilence = 4;                    // seconds
constexpr size_t kMostGroups = 32, kMostReported = 16;

double silence_of_program() {
  const char* text = std::getenv("BACKPLANE_COLLECTIVES_LOST_AFTER");
  const double seconds = text ? std::atof(text) : 0;
  return seconds > 0 ? seconds : kSilence;
}

std::string seconds_of(std::chrono::steady_clock::duration time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", duration<double>(time).count());
  return text;
}

}  // namespace

struct Beats::Beat {
  uint32_t state, is_last, n_calls, has_failed;
  int32_t code;
  Waiting waiting;
  uint64_t groups[kMostGroups], calls[kMostGroups];
  char text[Failure::kMostText];
};

struct Beats::Answer {
  uint32_t has_failed, all_know;
  int32_t code, n_missing;
  uint64_t wait;
  int32_t missing[kMostReported];
  char text[Failure::kMostText];
};

// A message that is on its way, or none.
template <class T>
struct Beats::Message {
  T content{};
  void* work = nullptr;
  bool is_open = false;

  void start(const bp_collective_provider& provider, void* group, uint32_t kind, int32_t peer) {
    bp_collective_call call{};
    call.header = BP_HEADER(bp_collective_call);
    call.kind = kind;
    call.dtype = BP_UINT8;
    call.peer = peer;
    call.count = sizeof content;
    if (kind == BP_COLLECTIVE_SEND)
      call.in = &content;
    else
      call.out = &content;
    is_open = provider.start(group, &call, &work) == BP_OK;
  }
  // Has it arrived? One that failed never does: its sender is lost after a while.
  bool test(const bp_collective_provider& provider, void* group) {
    if (!is_open) return false;
    int32_t done = work == nullptr;
    if (!done && provider.test(group, work, &done) != BP_OK) return is_open = false;
    is_open = done == 0;
    return done != 0;
  }
};

struct Beats::Member {
  Message<Beat> beat;
  Message<Answer> answer;
  Clock::time_point heard = Clock::now();
  bool has_left = false;  // nothing more comes from it
};

Beats::Beats(const bp_collective_provider& provider, void* connection, Rank rank)
    : provider_(provider), rank_(std::move(rank)), judge_(kStable) {
  std::vector<int32_t> all(static_cast<size_t>(rank_.size));
  for (int32_t i = 0; i < rank_.size; ++i) all[static_cast<size_t>(i)] = i;
  if (provider_.make_group(connection, all.data(), rank_.size, &group_) != BP_OK) return;  // the rank is silent
  thread_ = std::thread([this] { rank_.number == 0 ? serve() : report(); });
}

Beats::~Beats() { stop(); }

Beats::Clock::duration Beats::silence() const {
  static const double seconds = silence_of_program();
  if (suspects_.load(std::memory_order_relaxed)) return kSuspicious;
  return std::chrono::duration_cast<Clock::duration>(duration<double>(seconds));
}

void Beats::stop() {
  {
    const std::lock_guard guard(lock_);
    stops_ = true;
    stopped_ = Clock::now();
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

// Has the rank stopped?
bool Beats::pause(Clock::duration how_long) {
  std::unique_lock lock(lock_);
  return wakes_.wait_for(lock, how_long, [&] { return stops_; });
}

std::vector<int32_t> Beats::missing(uint64_t number) {
  const std::lock_guard guard(lock_);
  return reported_wait_ == number ? reported_missing_ : std::vector<int32_t>();
}

// ---- ranks other than 0 ---------------------------------------------------------------------------------------------

void Beats::report() {
  sent_ = std::make_unique<Message<Beat>>();
  received_ = std::make_unique<Message<Answer>>();
  Clock::time_point heard = Clock::now();
  const auto between = std::max<Clock::duration>(kBetweenBeats, rank_.size * kPerRank);
  while (true) {
    const bool is_last = pause(between);
    if (!exchange(heard, is_last) || is_last) return;
  }
}

// False: rank 0 is silent.
bool Beats::exchange(Clock::time_point& heard, bool is_last) {
  Beat& beat = sent_->content;
  const RankView view = rank_.view();
  beat.state = view.state;
  beat.is_last = is_last;
  beat.waiting = view.waiting;
  beat.n_calls = static_cast<uint32_t>(std::min(view.calls.size(), kMostGroups));
  for (size_t i = 0; i < beat.n_calls; ++i) std::tie(beat.groups[i], beat.calls[i]) = view.calls[i];
  const Failure* failure = rank_.failure();
  beat.has_failed = failure != nullptr;
  if (failure) {
    beat.code = failure->code.load(std::memory_order_relaxed);
    std::snprintf(beat.text, sizeof beat.text, "%s", failure->text);
  }
  sent_->start(provider_, group_, BP_COLLECTIVE_SEND, 0);
  received_->start(provider_, group_, BP_COLLECTIVE_RECV, 0);
  for (bool is_sent = false, has_come = false; !is_sent || !has_come;) {
    is_sent = is_sent || sent_->test(provider_, group_);
    has_come = has_come || received_->test(provider_, group_);
    const Clock::time_point now = Clock::now();
    if (has_come) heard = now;
    if (now - heard > (is_last && failure ? kFarewell : silence())) {
      if (!is_last)
        rank_.fail(BP_ERROR_DEVICE, std::string(kLostRank) + "0 was lost: it has given no sign of life for " +
                                        seconds_of(now - heard) + " s");
      return false;
    }
    if (!is_sent || !has_come) std::this_thread::sleep_for(kBetweenLooks);
  }
  const Answer& answer = received_->content;
  if (answer.has_failed) rank_.fail(answer.code, answer.text);
  all_know_.store(answer.all_know != 0, std::memory_order_release);
  const std::lock_guard guard(lock_);
  reported_wait_ = answer.wait;
  reported_missing_.assign(answer.missing, answer.missing + answer.n_missing);
  return true;
}

// ---- rank 0 ---------------------------------------------------------------------------------------------------------

void Beats::serve() {
  const auto n = static_cast<size_t>(rank_.size);
  views_.resize(n);
  waited_for_.resize(n);
  next_warning_.assign(n, kFirstWarning);
  for (int32_t i = 1; i < rank_.size; ++i) {
    members_.push_back(std::make_unique<Member>());
    members_.back()->beat.start(provider_, group_, BP_COLLECTIVE_RECV, i);
  }
  Clock::time_point judged = Clock::now();
  while (true) {
    for (int32_t i = 1; i < rank_.size; ++i) hear(i, *members_[static_cast<size_t>(i - 1)]);
    const Clock::time_point now = Clock::now();
    if (now - judged >= kBetweenJudgements) {
      find_faults(now);
      judged = now;
    }
    if (pause(kBetweenLooks)) {
      if (is_served(now)) return;
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

// The others have left, or after a failure had their time.
bool Beats::is_served(Clock::time_point now) const {
  if (rank_.failure() && now - stopped_ > kFarewell) return true;
  return std::all_of(members_.begin(), members_.end(),
                     [](const auto& member) { return member->has_left && !member->answer.is_open; });
}

void Beats::hear(int32_t rank, Member& member) {
  if (member.answer.is_open) member.answer.test(provider_, group_);
  if (member.answer.is_open || !member.beat.test(provider_, group_)) return;
  const Beat& beat = member.beat.content;
  member.heard = Clock::now();
  RankView& view = views_[static_cast<size_t>(rank)];
  view.state = beat.state;
  view.waiting = beat.waiting;
  view.calls.clear();
  for (size_t i = 0; i < std::min<size_t>(beat.n_calls, kMostGroups); ++i)
    view.calls.emplace_back(beat.groups[i], beat.calls[i]);
  if (beat.has_failed) rank_.fail(beat.code, std::string(beat.text, strnlen(beat.text, sizeof beat.text)));
  member.has_left = beat.is_last != 0;
  answer(rank, member);
  if (!member.has_left) member.beat.start(provider_, group_, BP_COLLECTIVE_RECV, rank);
}

void Beats::answer(int32_t rank, Member& member) {
  Answer& answer = member.answer.content;
  const Failure* failure = rank_.failure();
  answer.has_failed = failure != nullptr;
  if (failure) {
    answer.code = failure->code.load(std::memory_order_relaxed);
    std::snprintf(answer.text, sizeof answer.text, "%s", failure->text);
  }
  answer.all_know = all_know();
  answer.wait = views_[static_cast<size_t>(rank)].waiting.number;
  const std::vector<int32_t>& missing = waited_for_[static_cast<size_t>(rank)];
  answer.n_missing = static_cast<int32_t>(missing.size());
  std::copy(missing.begin(), missing.end(), answer.missing);
  member.answer.start(provider_, group_, BP_COLLECTIVE_SEND, rank);
}

void Beats::find_faults(Clock::time_point now) {
  views_[0] = rank_.view();
  const auto is_done = [](const RankView& view) {
    return view.state == RankState::kLeft || view.state == RankState::kRaised;
  };
  bool all = is_done(views_[0]);
  for (size_t i = 1; i < views_.size(); ++i) all = all && (members_[i - 1]->has_left || is_done(views_[i]));
  all_know_.store(all, std::memory_order_release);
  if (rank_.failure()) return;
  for (size_t i = 1; i < views_.size(); ++i) {
    const Member& member = *members_[i - 1];
    if (!member.has_left && now - member.heard > silence())
      return rank_.fail(BP_ERROR_DEVICE, kLostRank + std::to_string(i) +
                                             " was lost: it has given no sign of life for " +
                                             seconds_of(now - member.heard) + " s" +
                                             (views_[i].waiting.number ? "; it was in " : "") + views_[i].waiting.text);
  }
  Edges edges(views_);
  for (size_t rank = 0; rank < views_.size(); ++rank) {
    const std::vector<int32_t>& others = edges.of(static_cast<int32_t>(rank));
    waited_for_[rank].assign(others.begin(),
                             others.begin() + static_cast<int64_t>(std::min(others.size(), kMostReported)));
    for (const int32_t other : waited_for_[rank])
      if (views_[static_cast<size_t>(other)].state == RankState::kLeft)
        return rank_.fail(BP_ERROR_DEVICE, std::string(views_[rank].waiting.text) + " on rank " + std::to_string(rank) +
                                               ": rank " + std::to_string(other) +
                                               " has left: its program ended without this call");
  }
  {
    const std::lock_guard guard(lock_);
    reported_wait_ = views_[0].waiting.number;
    reported_missing_ = waited_for_[0];
  }
  if (const std::string text = judge_.look(views_, edges, now); !text.empty()) return rank_.fail(BP_ERROR_DEVICE, text);
  warn();
}

// One line about each rank that others wait for.
void Beats::warn() {
  std::vector<int32_t> longest(views_.size(), -1);
  for (size_t rank = 0; rank < views_.size(); ++rank)
    for (const int32_t other : waited_for_[rank]) {
      int32_t& first = longest[static_cast<size_t>(other)];
      if (first < 0 || views_[rank].waiting.seconds > views_[static_cast<size_t>(first)].waiting.seconds)
        first = static_cast<int32_t>(rank);
    }
  for (size_t late = 0; late < views_.size(); ++late) {
    if (longest[late] < 0) {
      next_warning_[late] = kFirstWarning;
      continue;
    }
    const Waiting& waiting = views_[static_cast<size_t>(longest[late])].waiting;
    if (waiting.seconds < next_warning_[late]) continue;
    next_warning_[late] = 2 * waiting.seconds;
    if (views_[late].waiting.number == 0)  // else another rank is late, and that one gets a line
      warn_of_late_rank(longest[late], waiting, static_cast<int32_t>(late), "");
  }
}

}  // namespace backplane::collectives
