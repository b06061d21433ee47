// The arguments of a call as a program takes them, and the key of the calls that one program serves.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include <string>
#include <vector>

#include "device_tensors.hpp"

namespace backplane_torch {

// The key holds all that a row may branch on: dtypes, which sizes are 0, 1 or equal to one another, the kinds of
// numbers, and every other argument.
struct CallArguments {
  std::vector<backplane::Tensor> tensors;
  std::vector<c10::Scalar> numbers;
  std::vector<size_t> number_places;  // which arguments they are
  std::vector<int64_t> key;
  bool is_plain = true;  // false: no program serves such a call
};

CallArguments arguments_of(const torch::jit::Stack& stack, size_t first, const std::string& kinds, bp_device device,
                           bool any_size);

struct KeyHash {
  size_t operator()(const std::vector<int64_t>& key) const noexcept {
    uint64_t hash = 0xcbf29ce484222325u;
    for (int64_t word : key) hash = (hash ^ static_cast<uint64_t>(word)) * 0x100000001b3u;
    return hash ^ (hash >> 29);
  }
};

}  // namespace backplane_torch
