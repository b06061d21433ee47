// The handlers of an op's calls, resolved at registration: per slot a handler and its data.
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

#include "memory/process/plugin_record.hpp"
#include "registry/fast_row.hpp"
#include "registry/functionality_keys.hpp"

namespace backplane::core {

struct Device;   // memory/devices/device.hpp
struct OpEntry;  // registry.hpp

struct KernelRow {
  bp_kernel_def def{};  // its strings lead into the members below
  std::string op;
  std::string backend;
  std::string file;
  PluginRecord* owner = nullptr;
  int32_t n_args = 0;     // the op's arguments at the row's revision: what its kernel is called with
  bool resolves = false;  // its arguments arrive as resolved_args.hpp says
  bool withdrawn = false;
  bool for_all = false;            // backend "*"
  std::shared_ptr<void> in_front;  // what a filter keeps for it
};

// Changes a row when it is registered, so that its calls reach an interceptor, and returns the data that the
// interceptor needs as long as the row lives; nullptr without an interceptor. Set it while no registration runs.
using RowFilter = std::shared_ptr<void> (*)(bp_kernel_def& row, const PluginRecord& owner);
inline constinit RowFilter row_filter = nullptr;

// A key of an op.
struct KeySlot {
  Handle handle = nullptr;  // nullptr: the op does not answer to the key
  HandleFast fast = nullptr;
  const KeyRecord* key = nullptr;
  const KernelRow* row = nullptr;  // of a plugin's key; nullptr: the key's fallback
};

// What serves a call on a backend whose rows, if any, decline. Of a composite none is asked.
enum class DeviceRule : uint8_t { kView, kFunction, kDecomposition, kHostFallback, kMissing };

// A backend's rows of an op.
struct DeviceSlot {
  FastRow fast_row;
  std::vector<const KernelRow*> rows;  // the best first
  DeviceRule otherwise = DeviceRule::kMissing;
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

// How calls of an op begin, by its fast path; of as many arguments and results as the op has.
struct FastEdges {
  // Inside a call: throws, and gives false where the call is the slow path's.
  bool (*attempt)(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t mask) = nullptr;
  // From outside: returns a status, and leaves the call that the caller has entered (CallGuard::enter).
  bp_status (*packed)(const OpEntry& op, const bp_value* args, bp_value* outs, uint64_t after) noexcept = nullptr;
};

// What handles calls, as plans name it: put here by call/ and functions/, in static initialisers, before the
// first op.
struct Handlers {
  Handle view, device, decomposition, function, key;
  bp_kernel_fn resolved;  // calls the fast row's kernel with resolved arguments
  FastEdges edges[static_cast<size_t>(FastPath::kCount)];
};
extern constinit Handlers handlers;

// The observers of calls, each nullptr without an observer; set by static initialisers, before the first op. Gives the
// edges that ops get in place of the fast path's edges.
using EdgeFilter = FastEdges (*)(FastPath path, const FastEdges& edges);
inline constinit EdgeFilter edge_filter = nullptr;
// Receives each call that reaches a device past the fast path: its row, or the rule where no row takes it.
using DeviceObserver = void (*)(const Call& call, const Device& device, bp_dtype compute, const KernelRow* row,
                                DeviceRule otherwise);
inline constinit DeviceObserver device_observer = nullptr;

// Verifies, copies and throws Error. Under the registry's lock, which the loader does not hold.
void register_kernel(PluginRecord* owner, const bp_kernel_def& kernel);
// Under the registry's lock.
void rebuild_plan(OpEntry& entry);
void rebuild_all_plans();

}  // namespace backplane::core
