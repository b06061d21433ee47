// Elements that are only moved: a type for each size in bytes.
#pragma once

#include <cstdint>

namespace backplane::cpu {

struct Item16 {
  uint64_t halves[2];
};

// body.template operator()<Item>() with an integer, or a pair, of `size` bytes.
template <class Body>
void with_item_type(int64_t size, Body&& body) {
  switch (size) {
    case 1:
      return body.template operator()<uint8_t>();
    case 2:
      return body.template operator()<uint16_t>();
    case 4:
      return body.template operator()<uint32_t>();
    case 8:
      return body.template operator()<uint64_t>();
    default:
      return body.template operator()<Item16>();
  }
}

}  // namespace backplane::cpu
