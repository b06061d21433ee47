// What the stand-in of cuSOLVER does with memory: matrices by columns on the emulated device, and workspaces.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "services.hpp"

namespace emulator {

// Whether the element at a row and a column counts.
using Part = bool (*)(int row, int column);
inline bool everything(int, int) { return true; }
inline bool lower(int row, int column) { return row >= column; }
inline bool upper(int row, int column) { return row <= column; }

// Of columns that begin `leading` elements apart.
template <class T>
struct Matrix {
  char* data;
  int rows, columns, leading;

  char* at(int row, int column) const {
    return data + (static_cast<int64_t>(column) * leading + row) * static_cast<int64_t>(sizeof(T));
  }
  // By columns with nothing between them; elements outside the part are not read.
  std::vector<T> load(Part part = everything) const {
    std::vector<T> made(static_cast<size_t>(rows) * static_cast<size_t>(columns), T(NAN));
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row)
        if (part(row, column))
          std::memcpy(&made[static_cast<size_t>(column) * static_cast<size_t>(rows) + static_cast<size_t>(row)],
                      readable(at(row, column), sizeof(T)), sizeof(T));
    return made;
  }
  void store(const std::vector<T>& values, Part part = everything) const {
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row)
        if (part(row, column))
          std::memcpy(writable(at(row, column), sizeof(T)),
                      &values[static_cast<size_t>(column) * static_cast<size_t>(rows) + static_cast<size_t>(row)],
                      sizeof(T));
  }
};
template <class T>
Matrix<T> matrix(const void* data, int64_t rows, int64_t columns, int64_t leading) {
  return {static_cast<char*>(const_cast<void*>(data)), static_cast<int>(rows), static_cast<int>(columns),
          static_cast<int>(leading)};
}
template <class T>
Matrix<T> line(const void* data, int64_t count) {
  return matrix<T>(data, count, 1, count);
}
inline void store_info(int* info, int value) { line<int>(info, 1).store({value}); }

struct Workspace {
  void* device;
  size_t device_bytes;
  void* host;
  size_t host_bytes;

  static constexpr unsigned char kMark = 0x5C;
  // While the call is made; the host's has to be as it is left here when the work runs.
  bool is_enough(size_t device_needed, size_t host_needed) const {
    if (device_bytes < device_needed || host_bytes < host_needed || (device_needed > 0 && !device) ||
        (host_needed > 0 && !host))
      return false;
    if (host_needed > 0) std::memset(host, kMark, host_bytes);
    return true;
  }
  // The earlier contents are lost.
  void use() const {
    if (device_bytes > 0) std::memset(writable(device, device_bytes), 0xA5, device_bytes);
    for (size_t k = 0; k < host_bytes; ++k)
      if (static_cast<unsigned char*>(host)[k] != kMark)
        end_with_fault("cuSOLVER: the host's workspace was used by others before the work had ended");
  }
};

}  // namespace emulator
