// Positions along an axis, by vectors: are they in range, before a loop that need not ask; and elements read at those
// that are. Pure.
#pragma once

#include <cstdint>

#include "loops/item_type.hpp"

namespace backplane::cpu {

// Whether all n positions lie in [0, size).
bool all_inside(const int64_t* positions, int64_t n, int64_t size);

// out[i] = x[positions[i]] for the first so many, which it returns: up to a few before the first position outside
// [0, size), or before the end. For the types of item_type.hpp.
template <class Item>
int64_t take_inside(const Item* x, int64_t size, const int64_t* positions, int64_t n, Item* out);

}  // namespace backplane::cpu
