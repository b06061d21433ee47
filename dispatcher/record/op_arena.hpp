// The memory of a copied op record: blocks, small at first since most records need little, that are freed together.
// Only op_record.cpp and its verifier write here; one thread at a time.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "record/op_record.hpp"

namespace backplane::core {

struct OpRecord::Arena {
  std::vector<std::unique_ptr<std::max_align_t[]>> blocks;
  char* next = nullptr;
  size_t left = 0;

  void* take(size_t size) {
    constexpr size_t kAlign = alignof(std::max_align_t), kUnit = sizeof(std::max_align_t);
    size = (size + kAlign - 1) / kAlign * kAlign;
    if (size > left) {
      const size_t block = size_t{256} << std::min<size_t>(blocks.size(), 3);
      const size_t units = (std::max(size, block) + kUnit - 1) / kUnit;
      left = units * kUnit;
      blocks.push_back(std::make_unique<std::max_align_t[]>(units));
      next = reinterpret_cast<char*>(blocks.back().get());
    }
    void* memory = next;
    next += size;
    left -= size;
    return memory;
  }
  template <class T>
  T* array(size_t count) {
    return static_cast<T*>(take(sizeof(T) * count));
  }
  const char* text(std::string_view source) {
    char* copy = array<char>(source.size() + 1);
    std::memcpy(copy, source.data(), source.size());
    copy[source.size()] = '\0';
    return copy;
  }
};

// Throws Error(BP_ERROR_VALUE) with the record's name.
template <class... Parts>
void require(const OpRecord& op, bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    detail::fail(BP_ERROR_VALUE, "op record '", op.name, "': ", parts...);
}

inline bool is_type(const OpRecord& op, uint32_t arg, uint16_t type) {
  return arg < op.args.size() && op.args[arg].type == type;
}

}  // namespace backplane::core
