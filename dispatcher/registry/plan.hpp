// What becomes of an op's calls, resolved at registration: per slot a handler and what it works on.
//
// A call asks the functionality keys that its operands and its thread carry, the highest rank first: a plugin's, a
// level's, the tape's. The slot of the highest one that the op answers to handles the call, and calls on below it. With
// none left, the device's slot does. The call, `explain` and the coverage table read the same plan.
//
// A key that the op does not answer to stays in the mask: the calls that its decomposition makes may answer to it.
//
// A plan is immutable. It is made anew whenever the op's rows, the keys or the backends change, and replaced as a
// whole, so that calls read it without a lock.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "memory/plugin_record.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

struct Call;      // call/dispatch.hpp
struct Operands;  // call/operands.hpp
struct KeySlot;
struct OpEntry;  // registry.hpp

// Handles a call; `slot` is the key's, or nullptr where no key is left.
using Handle = void (*)(const Call& call, const KeySlot* slot);
// The same for a call that the fast path would serve if it were not for this one key. False: it declines.
using HandleFast = bool (*)(const Call& call, Operands operands);

struct KernelRow {
  bp_kernel_def def{};  // its strings lead into the members below
  std::string op;
  std::string backend;
  std::string file;
  PluginRecord* owner = nullptr;
  int32_t n_args = 0;      // the op's arguments at the row's revision: what its kernel is called with
  bool resolves = false;  // its arguments arrive as resolved_args.hpp says
  bool withdrawn = false;
  bool for_all = false;  // backend "*"
};

// Functionality keys. Bits 0 to 59 are given out to plugins; the rest are the layers' of this library.
inline constexpr uint32_t kPluginBits = 60;
inline constexpr uint64_t kTapeKey = uint64_t{1} << 63;
inline constexpr uint64_t kLevelKey = uint64_t{1} << 62;
// Included while a level is active. Only ops that make tensors out of nothing, or out of metadata, answer to it.
inline constexpr uint64_t kCreationKey = uint64_t{1} << 61;

inline constexpr int64_t kTapeRank = 0, kLevelRank = 1 << 20;

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

// A key of an op.
struct KeySlot {
  Handle handle = nullptr;  // nullptr: the op does not answer to the key
  HandleFast fast = nullptr;
  const KeyRecord* key = nullptr;
  const KernelRow* row = nullptr;  // of a plugin's key; nullptr: the key's fallback
};

inline constexpr int32_t kMaxFastArgs = 8;  // of a fast call whose arguments are resolved

// What the fast path (fast_call.hpp) reads of the best row on a backend, in one place.
struct FastRow {
  bp_dtype_mask dtypes = 0;    // compute dtypes that it may serve so; 0: none, or there is no row
  uint32_t granted_flags = 0;  // BP_TENSOR_CONTIGUOUS: takes operands of any strides
  bool immediates = false;
  bool resolves = false;
  bool inplace = false;  // the output may be an operand
  bp_kernel_fn fn = nullptr;
  const KernelRow* row = nullptr;
  bp_frame frame{};  // of a call on ordinal 0, but for its keys and compute dtype
};

// What serves a call on a backend whose rows, if any, decline. Of a composite none is asked.
enum class DeviceRule : uint8_t { kView, kFunction, kDecomposition, kHostFallback, kMissing };

// A backend's rows of an op.
struct DeviceSlot {
  FastRow fast_row;
  std::vector<const KernelRow*> rows;  // the best first
  DeviceRule otherwise = DeviceRule::kMissing;
};

// Which of an op's calls may the fast path serve, and where does the result then come from?
enum class FastPath : uint8_t {
  kNone,
  kView,          // of its first argument, which is its only tensor
  kLikeOperands,  // elementwise: a fresh output of the operands' common shape
  kInferred,      // a fresh output by the entry's rules
  kFromKernel,    // dynamic: the kernel makes it
  kCount
};

struct Plan {
  uint64_t answers = 0;  // the keys that have a handler
  uint32_t n_devices = 0;
  std::unique_ptr<DeviceSlot[]> devices;  // by backend index
  Handle device = nullptr;
  KeySlot layers[64 - kPluginBits];
  std::vector<KeySlot> keys;  // of plugins, by bit

  const KeySlot& slot(uint32_t bit) const { return bit >= kPluginBits ? layers[bit - kPluginBits] : keys[bit]; }
  const KeySlot& slot_of(uint64_t key) const { return slot(static_cast<uint32_t>(__builtin_ctzll(key))); }
};

// The fast path's two edges, for calls with as many arguments and results as the op has: the one enters the call, falls
// back on the slow path and gives a status; the other throws, and gives false where the call is the slow path's.
struct FastEdges {
  bp_status (*packed)(const OpEntry& op, const bp_value* args, bp_value* outs) noexcept = nullptr;
  bool (*attempt)(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t mask) = nullptr;
};

// What handles calls, as plans name it: put here by call/ and functions/, in static
// initialisers, before the first op.
struct Handlers {
  Handle view, device, decomposition, function, key;
  FastEdges edges[static_cast<size_t>(FastPath::kCount)];
};
extern constinit Handlers handlers;

FastPath fast_path(const OpRecord& record);
FastRow fast_row(const OpEntry& op, const KernelRow& row, uint32_t backend);
// Under the registry's lock.
void rebuild_plan(OpEntry& entry);
void rebuild_all_plans();

}  // namespace backplane::core
