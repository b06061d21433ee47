#include "judge.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace backplane::collectives {
namespace {

constexpr uint64_t kFreshLooks = 2;
constexpr size_t kMostNamed = 8;

bool has_begun(const RankView& view, uint64_t group, uint64_t call) {
  for (const auto& [hash, calls] : view.calls)
    if (hash == group) return calls > call;
  return false;
}

bool waits_in(const RankView& view, const Waiting& what) {
  return view.waiting.number != 0 && view.waiting.kind == Waiting::kMembers && view.waiting.group == what.group &&
         view.waiting.call == what.call;
}

// Data is on its way between a sender and its receiver.
bool is_answered(const RankView& other, uint32_t kind, int32_t rank) {
  return other.waiting.number != 0 && other.waiting.kind == kind && other.waiting.n_missing == 1 &&
         other.waiting.missing[0] == rank;
}

std::vector<int32_t> missing_ranks(const std::vector<RankView>& ranks, int32_t rank) {
  const Waiting& waiting = ranks[static_cast<size_t>(rank)].waiting;
  std::vector<int32_t> missing;
  if (waiting.number == 0) return missing;
  const auto add = [&](int32_t other) {
    const auto place = static_cast<size_t>(other);
    if (other < 0 || place >= ranks.size() || other == rank) return;
    const RankView& view = ranks[place];
    if (waiting.kind == Waiting::kMembers && (has_begun(view, waiting.group, waiting.call) || waits_in(view, waiting)))
      return;
    if (waiting.kind == Waiting::kReceiver && is_answered(view, Waiting::kSender, rank)) return;
    if (waiting.kind == Waiting::kSender && is_answered(view, Waiting::kReceiver, rank)) return;
    missing.push_back(other);
  };
  if (waiting.n_missing == Waiting::kEverybody) {
    for (int32_t other = 0; other < static_cast<int32_t>(ranks.size()); ++other) add(other);
  } else {
    for (int32_t i = 0; i < std::min(waiting.n_missing, Waiting::kMostMissing); ++i) add(waiting.missing[i]);
  }
  return missing;
}

// The first circle, by depth-first search; empty: there is none.
std::vector<int32_t> circle_of(const std::vector<RankView>& ranks, Edges& edges) {
  enum : uint8_t { kNew, kOpen, kClosed };
  std::vector<uint8_t> colour(ranks.size(), kNew);
  std::vector<std::pair<int32_t, size_t>> path;  // with the edge that comes next
  for (int32_t start = 0; start < static_cast<int32_t>(ranks.size()); ++start) {
    if (colour[static_cast<size_t>(start)] != kNew) continue;
    path.assign(1, {start, 0});
    colour[static_cast<size_t>(start)] = kOpen;
    while (!path.empty()) {
      auto& [rank, next] = path.back();
      const std::vector<int32_t>& others = edges.of(rank);
      if (next == others.size()) {
        colour[static_cast<size_t>(rank)] = kClosed;
        path.pop_back();
        continue;
      }
      const int32_t other = others[next++];
      uint8_t& seen = colour[static_cast<size_t>(other)];
      if (seen == kOpen) {
        std::vector<int32_t> circle;
        auto at = std::find_if(path.begin(), path.end(), [&](const auto& step) { return step.first == other; });
        for (; at != path.end(); ++at) circle.push_back(at->first);
        return circle;
      }
      if (seen == kNew) {
        seen = kOpen;
        path.emplace_back(other, 0);
      }
    }
  }
  return {};
}

}  // namespace

const std::vector<int32_t>& Edges::of(int32_t rank) {
  const Waiting& waiting = ranks_[static_cast<size_t>(rank)].waiting;
  if (waiting.number == 0) return none_;
  const auto key = waiting.kind == Waiting::kMembers && waiting.n_missing == Waiting::kEverybody
                       ? std::pair(waiting.group, static_cast<int64_t>(waiting.call))
                       : std::pair(uint64_t{0}, int64_t{-1} - rank);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, missing_ranks(ranks_, rank)).first->second;
}

std::string named_ranks(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) text += (i ? ", " : "") + std::to_string(ranks[i]);
  if (ranks.size() > kMostNamed) text += " and " + std::to_string(ranks.size() - kMostNamed) + " more";
  return text;
}

void warn_of_late_rank(int32_t rank, const Waiting& waiting, int32_t late, const std::string& more) {
  std::fprintf(stderr,
               "backplane: rank %d has waited %.0f s for rank %d in %s; rank %d is running%s. The limit is %.0f s "
               "(bp.distributed.init(timeout=))\n",
               rank, waiting.seconds, late, waiting.text, late, more.c_str(), waiting.limit);
  std::fflush(stderr);
}

std::string hint_of(const char* call) {
  if (std::strncmp(call, "recv ", 5) != 0) return "";
  return ". A recv at the line of a send waits for its gradient: the rank that received the tensor has to "
         "differentiate `like`, too";
}

std::string Judge::look(const std::vector<RankView>& ranks, Edges& edges, Clock::time_point now) {
  std::vector<Seen> found;
  for (const int32_t rank : circle_of(ranks, edges)) {
    const Waiting& waiting = ranks[static_cast<size_t>(rank)].waiting;
    found.push_back({rank, waiting.number, waiting.looks});
  }
  const bool is_known =
      std::equal(found.begin(), found.end(), circle_.begin(), circle_.end(),
                 [](const Seen& a, const Seen& b) { return a.rank == b.rank && a.number == b.number; });
  if (!is_known) {
    circle_ = std::move(found);
    since_ = now;
    return "";
  }
  if (found.empty() || now - since_ < stable_) return "";
  // Each of them has looked since: none waits for what has come meanwhile.
  for (size_t i = 0; i < found.size(); ++i)
    if (found[i].looks < circle_[i].looks + kFreshLooks) return "";
  std::string text = "the ranks wait for each other: ";
  for (size_t i = 0; i < found.size(); ++i) {
    const int32_t rank = found[i].rank, next = found[(i + 1) % found.size()].rank;
    text += (i ? "; " : "") + ("rank " + std::to_string(rank)) + " calls " +
            ranks[static_cast<size_t>(rank)].waiting.text + " and waits for rank " + std::to_string(next);
  }
  text += ". Fix: make all ranks of a group call the same, in the same order";
  for (const Seen& one : found)
    if (const std::string hint = hint_of(ranks[static_cast<size_t>(one.rank)].waiting.text); !hint.empty())
      return text + hint;
  return text;
}

}  // namespace backplane::collectives
