// Radix sort of keys of 32 bits, alone or above a position of 32 bits, on the host's threads where there are many.
//
// It takes about the same time for any values, and keeps the order of equal keys. Digits that all keys share cost no
// pass, so that keys of 8 or 16 bits take one or two.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "backplane/plugin.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {

template <class Item>
class RadixSort {
 public:
  RadixSort(const bp_frame* frame, int64_t n)
      : frame_(frame), n_(n), parts_(std::clamp<int64_t>(n / kPart, 1, frame->host->worker_count())), places_(parts_) {}

  // Sorts n < 2^32 items read(i) by the upper half of items of 64 bits, by the whole of items of 32, and calls
  // write(place, item) for each. `a` and `b` are working memory of n items each.
  template <class Read, class Write>
  void operator()(Item* a, Item* b, const Read& read, const Write& write) {
    const uint32_t differing = take(a, read);
    int last = kDigits - 1;
    while (last >= 0 && digit(differing, last) == 0) --last;
    if (last < 0) return for_parts([&](int64_t, int64_t i) { write(i, a[i]); });
    for (int pass = 0; pass <= last; ++pass) {
      if (digit(differing, pass) == 0) continue;
      find_places(a, pass);
      if (pass < last)
        distribute(a, pass, [b](int64_t place, Item item) { b[place] = item; });
      else
        distribute(a, pass, write);
      std::swap(a, b);
    }
  }

 private:
  static constexpr int64_t kPart = 32768;  // the least that is worth a thread
  // More places than 2,048 would leave the first-level cache, fewer take a pass more.
  static constexpr int kDigitBits = 11, kDigits = 3;
  using Places = std::array<uint32_t, 1 << kDigitBits>;

  static uint32_t key(Item item) { return static_cast<uint32_t>(item >> (8 * (sizeof(Item) - 4))); }
  static uint32_t digit(uint32_t key, int pass) { return (key >> (pass * kDigitBits)) & ((1u << kDigitBits) - 1); }

  // fn(part, index) for all, each part in order.
  template <class Fn>
  void for_parts(const Fn& fn) const {
    const auto range = [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part)
        for (int64_t i = n_ * part / parts_, stop = n_ * (part + 1) / parts_; i < stop; ++i) fn(part, i);
    };
    if (parts_ == 1) return range(0, 1);
    plugin::parallel_for(frame_, 0, parts_, 1, range);
  }
  // The bits in which keys differ.
  template <class Read>
  uint32_t take(Item* a, const Read& read) const {
    const uint32_t first = key(read(0));
    std::atomic<uint32_t> differing{0};
    const auto range = [&](int64_t begin, int64_t end) {
      uint32_t own = 0;
      for (int64_t i = n_ * begin / parts_, stop = n_ * end / parts_; i < stop; ++i) {
        a[i] = read(i);
        own |= key(a[i]) ^ first;
      }
      differing |= own;
    };
    if (parts_ == 1)
      range(0, 1);
    else
      plugin::parallel_for(frame_, 0, parts_, 1, range);
    return differing;
  }
  // Where each part's first item of a digit goes: behind those of smaller digits, and of the parts before.
  void find_places(const Item* a, int pass) {
    Places* places = places_.get();
    for (int64_t part = 0; part < parts_; ++part) places[part].fill(0);
    for_parts([&](int64_t part, int64_t i) { ++places[part][digit(key(a[i]), pass)]; });
    uint32_t sum = 0;
    for (uint32_t d = 0; d < 1u << kDigitBits; ++d)
      for (int64_t part = 0; part < parts_; ++part) sum += std::exchange(places[part][d], sum);
  }
  template <class Write>
  void distribute(const Item* a, int pass, const Write& write) {
    for_parts([&, places = places_.get()](int64_t part, int64_t i) {
      const Item item = a[i];
      const uint32_t place = places[part][digit(key(item), pass)]++;
      write(place, item);
    });
  }

  const bp_frame* frame_;
  int64_t n_, parts_;
  Scratch<Places> places_;
};

}  // namespace backplane::cpu
