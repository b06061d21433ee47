// See sort_keys.hpp. Packed keys of 128 bits go to Highway's vectorised quicksort: a long run of them is cut into as
// many parts as there are threads; the sorted parts are merged two by two, each merger cut at places that a binary
// search finds. Equal keys are alike, so the result depends on neither.
#include "kernels/sorting/sort_keys.hpp"

#include <hwy/contrib/sort/vqsort.h>

#include <algorithm>

#include "kernels/sorting/quick_sort.hpp"
#include "kernels/sorting/short_sort.hpp"
#include "runtime/scratch.hpp"

namespace backplane::cpu {
namespace {

using Key = WidePacked;

constexpr int64_t kSmall = 16;
constexpr int64_t kPart = 32768;  // the least that is worth a thread

void sort_part(const hwy::Sorter& sorter, Key* keys, int64_t n) {
  static_assert(std::endian::native == std::endian::little);  // uint128_t has its low half first
  sorter(reinterpret_cast<hwy::uint128_t*>(keys), static_cast<size_t>(n), hwy::SortAscending());
}
// A sorter owns working memory, so that each thread has its own.
const hwy::Sorter& sorter() {
  thread_local const hwy::Sorter own;
  return own;
}

// How many of the first `total` merged keys come from a.
int64_t share_of(const Key* a, int64_t a_count, const Key* b, int64_t b_count, int64_t total) {
  int64_t low = std::max<int64_t>(0, total - b_count), high = std::min(total, a_count);
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (a[middle] < b[total - middle - 1])
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

void merge(const bp_frame* frame, const Key* a, int64_t a_count, const Key* b, int64_t b_count, Key* out,
           int64_t pieces) {
  const int64_t total = a_count + b_count;
  plugin::parallel_for(frame, 0, pieces, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = total * begin / pieces, last = total * end / pieces;
    const int64_t a_first = share_of(a, a_count, b, b_count, first), a_last = share_of(a, a_count, b, b_count, last);
    std::merge(a + a_first, a + a_last, b + first - a_first, b + last - a_last, out + first);
  });
}

void sort_all(const bp_frame* frame, Key* keys, int64_t n) {
  if (n <= kSmall) return std::sort(keys, keys + n);
  const int64_t threads = frame->host->worker_count();
  int64_t parts = 1;
  while (2 * parts <= threads && n / (2 * parts) >= kPart) parts *= 2;
  if (parts == 1) return sort_part(sorter(), keys, n);
  plugin::parallel_for(frame, 0, parts, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      sort_part(sorter(), keys + n * i / parts, n * (i + 1) / parts - n * i / parts);
  });
  const Scratch<Key> scratch(n);
  Key *from = keys, *to = scratch.get();
  for (int64_t width = 1; width < parts; width *= 2, std::swap(from, to))
    for (int64_t i = 0; i < parts; i += 2 * width) {
      const int64_t first = n * i / parts, middle = n * (i + width) / parts, last = n * (i + 2 * width) / parts;
      merge(frame, from + first, middle - first, from + middle, last - middle, to + first, threads);
    }
  if (from != keys) std::copy_n(from, n, keys);
}

}  // namespace

void sort_keys(const bp_frame* frame, uint32_t* keys, int64_t n) {
  n <= kShortKeys ? sort_short(keys, n) : quick_sort(frame, keys, n);
}
void sort_keys(const bp_frame* frame, uint64_t* keys, int64_t n) {
  n <= kShortKeys ? sort_short(keys, n) : quick_sort(frame, keys, n);
}
void sort_keys(const bp_frame* frame, WidePacked* keys, int64_t n) { sort_all(frame, keys, n); }

}  // namespace backplane::cpu
