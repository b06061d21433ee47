// See tiles.hpp. Squares as wide as 16 bytes are turned in registers, by interleaving rows; the rest one by one.
#include "loops/tiles.hpp"

#include <cstring>

namespace backplane::cpu {
namespace {

template <class T>
struct Square {
  static constexpr int64_t kSide = 16 / sizeof(T);
  typedef T Vector __attribute__((vector_size(16)));

  static Vector interleave(Vector a, Vector b, T first) {
    Vector order;
    for (int64_t i = 0; i < kSide; ++i) order[i] = static_cast<T>(first + i / 2 + i % 2 * kSide);
    return __builtin_shuffle(a, b, order);
  }
  // Interleaving rows i and i + side / 2 moves one bit of the row's number into the column's.
  static void turn(const char* from, int64_t from_step, char* to, int64_t to_step) {
    Vector rows[kSide], next[kSide];
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(&rows[i], from + i * from_step, 16);
    for (int64_t width = 1; width < kSide; width *= 2) {
      for (int64_t i = 0; i < kSide / 2; ++i) {
        next[2 * i] = interleave(rows[i], rows[i + kSide / 2], 0);
        next[2 * i + 1] = interleave(rows[i], rows[i + kSide / 2], kSide / 2);
      }
      std::memcpy(rows, next, sizeof(rows));
    }
    for (int64_t i = 0; i < kSide; ++i) std::memcpy(to + i * to_step, &rows[i], 16);
  }
};

template <class T>
void turn_one_by_one(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      reinterpret_cast<T*>(to + i * to_step)[j] = reinterpret_cast<const T*>(from + j * from_step)[i];
}

template <class T>
void turn(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = Square<T>::kSide, kItem = sizeof(T);
  const int64_t whole_rows = rows / kSide * kSide, whole_columns = columns / kSide * kSide;
  for (int64_t j = 0; j < whole_columns; j += kSide)
    for (int64_t i = 0; i < whole_rows; i += kSide)
      Square<T>::turn(from + j * from_step + i * kItem, from_step, to + i * to_step + j * kItem, to_step);
  turn_one_by_one<T>(from + whole_columns * from_step, from_step, to + whole_columns * kItem, to_step, whole_rows,
                     columns - whole_columns);
  turn_one_by_one<T>(from + whole_rows * kItem, from_step, to + whole_rows * to_step, to_step, rows - whole_rows,
                     columns);
}

struct Wide {
  uint64_t low, high;
};

}  // namespace

void turn_tile(int64_t item, const char* from, int64_t from_step, char* to, int64_t to_step, int64_t rows,
               int64_t columns) {
  const auto function = item == 1   ? turn<uint8_t>
                        : item == 2 ? turn<uint16_t>
                        : item == 4 ? turn<uint32_t>
                        : item == 8 ? turn<uint64_t>
                                    : turn_one_by_one<Wide>;
  function(from, from_step, to, to_step, rows, columns);
}

}  // namespace backplane::cpu
