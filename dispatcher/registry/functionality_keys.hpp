// Functionality keys: the reasons for which a call may have to be intercepted, and which of several comes first.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "backplane/abi/plugin.h"
#include "memory/process/plugin_record.hpp"

namespace backplane::core {

struct Call;      // call/dispatch.hpp
struct KeySlot;   // registry/plan.hpp
struct Operands;  // call/operands.hpp

// Handles a call; `slot` is the key's, or nullptr where no key is left.
using Handle = void (*)(const Call& call, const KeySlot* slot);
// The same for a call that the fast path would serve if it were not for this one key. False: it declines.
using HandleFast = bool (*)(const Call& call, const Operands& operands);

// Functionality keys. Bits 0 to 56 are given out to plugins; the rest are this library's layers', all of them here or,
// as tensors carry it, in memory/tensors/history.hpp.
inline constexpr uint32_t kPluginBits = 57;
inline constexpr uint64_t kPluginKeys = (uint64_t{1} << kPluginBits) - 1;
inline constexpr uint64_t kTapeKey = uint64_t{1} << 63;
inline constexpr uint64_t kLevelKey = uint64_t{1} << 62;
// Included while a level is active. Only ops that make tensors out of nothing, or out of metadata, answer to it.
inline constexpr uint64_t kCreationKey = uint64_t{1} << 61;
// Included while a level is active that takes every call. Where a level's tensor is among the arguments too, that one's
// key comes first.
inline constexpr uint64_t kEveryCallKey = uint64_t{1} << 60;
// Included while a profile runs. Above all others, and of composites it sees the call, not the parts.
inline constexpr uint64_t kProfileKey = uint64_t{1} << 59;
// Included in a block of autocast (backplane/autocast.hpp). Above all transforms, and below a profile.
inline constexpr uint64_t kAutocastKey = uint64_t{1} << 57;
// What calls that the core itself makes answer to: formulas, casts, nodes of graphs.
inline constexpr uint64_t kInnerKeys = ~kAutocastKey;

inline constexpr int64_t kTapeRank = 0, kLevelRank = 1 << 20, kProfileRank = INT64_MAX, kAutocastRank = INT64_MAX - 1;

struct KeyRecord {
  std::string name;
  uint32_t bit = 0;
  int64_t rank = 0;  // the higher one comes first
  bp_kernel_fn fallback = nullptr;
  void* context = nullptr;
  PluginRecord* owner = nullptr;
  Handle handle = nullptr;  // of a layer
  HandleFast fast = nullptr;
  std::atomic<bool> withdrawn{false};
};
const KeyRecord* key_at(uint32_t bit) noexcept;
const KeyRecord* find_key(std::string_view name) noexcept;
// The highest-ranked of a set of keys, as a bit.
uint64_t highest_key(uint64_t keys) noexcept;
uint32_t register_key(PluginRecord* owner, const bp_key_def& key);
// A layer's key, by its static initialiser: before the first op.
void register_layer(uint64_t key, const char* name, int64_t rank, Handle handle, HandleFast fast = nullptr);

}  // namespace backplane::core
