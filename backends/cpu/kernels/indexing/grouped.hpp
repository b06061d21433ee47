// Places of values by the position that they go to: what meets there is combined in a wider dtype and rounded once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace backplane::cpu {

// group(places, count) for each position, where `places` are the places of the n values that go there, in their order.
template <class Group>
void for_each_group(const int64_t* positions, int64_t n, Group&& group) {
  std::vector<int64_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  if (!std::is_sorted(positions, positions + n))
    std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) { return positions[a] < positions[b]; });
  for (int64_t first = 0; first < n;) {
    int64_t end = first + 1;
    const auto position = [&](int64_t i) { return positions[places[static_cast<size_t>(i)]]; };
    while (end < n && position(end) == position(first)) ++end;
    group(places.data() + first, end - first);
    first = end;
  }
}

}  // namespace backplane::cpu
