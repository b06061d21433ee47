// See shared_cases.hpp. Each thread with a case has a slot. The watching process may read a slot while its thread
// writes it: the texts then mix two cases, but they end, because nobody writes their last byte.
#include "shared_cases.hpp"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "backplane/op.hpp"

namespace backplane::conformance::shared_cases {
namespace {

struct Slot {
  std::atomic<bool> taken;
  std::atomic<bool> runs;
  std::atomic<uint64_t> steps;
  std::atomic<bp_dtype> dtype;
  std::atomic<size_t> sample;
  std::array<char, 192> op;
  std::array<char, 64> check;
};

struct Page {
  std::atomic<bool> over;
  std::atomic<uint64_t> steps;         // of all threads
  std::atomic<uint64_t> steps_of_any;  // of threads without a slot
  std::atomic<const Slot*> latest;     // both processes map the page at one address
  std::array<Slot, 512> slots;         // a thread beyond these is not watched
};
Page* page = nullptr;
constinit thread_local Slot* mine = nullptr;

template <size_t kSize>
void put(std::array<char, kSize>& to, const std::string& text) {
  std::strncpy(to.data(), text.c_str(), kSize - 1);
}

Slot* take_slot() {
  for (Slot& slot : page->slots)
    if (!slot.taken.exchange(true)) return &slot;
  return nullptr;
}

Outcome outcome_of(const Slot& slot) { return {slot.op.data(), slot.check.data(), slot.dtype, slot.sample}; }

}  // namespace

void share() {
  if (!page) {
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    BP_CHECK(memory != MAP_FAILED, MEMORY, "conformance: mmap failed: ", std::strerror(errno));
    page = static_cast<Page*>(memory);
  }
  new (page) Page{};
}

void set_over() {
  if (page) page->over = true;
}

void begin(const Outcome& outcome) {
  if (!page) return;
  if (!mine) mine = take_slot();
  if (!mine) return step();
  put(mine->op, outcome.op);
  put(mine->check, outcome.check);
  mine->dtype = outcome.dtype;
  mine->sample = outcome.sample;
  mine->runs = true;
  page->latest = mine;
  step();
}

void end(const std::optional<Outcome>& before) {
  if (!page || !mine) return;
  if (before) return begin(*before);
  mine->runs = false;
  step();
  mine->taken = false;
  mine = nullptr;
}

void step() {
  if (!page) return;
  ++page->steps;
  ++(mine ? mine->steps : page->steps_of_any);
}

bool is_over() { return page->over; }

std::string latest_text() {
  const Slot* slot = page->latest;
  return slot ? "in or after " + case_text(outcome_of(*slot)) : "before its first case";
}

std::pair<Outcome, double> Watch::look(double seconds) {
  const auto quiet_for = [&](Seen& seen, uint64_t steps) {
    seen.quiet = seen.steps == steps ? seen.quiet + seconds : 0;
    seen.steps = steps;
    return seen.quiet;
  };
  seen_.resize(page->slots.size());
  std::pair<Outcome, double> longest{{}, quiet_for(between_, page->steps)};
  bool any = false;
  for (size_t i = 0; i < seen_.size(); ++i) {
    const Slot& slot = page->slots[i];
    const double quiet = quiet_for(seen_[i], slot.steps + page->steps_of_any);
    if (!slot.runs || (any && quiet <= longest.second)) continue;
    longest = {outcome_of(slot), quiet};
    any = true;
  }
  return longest;
}

}  // namespace backplane::conformance::shared_cases
