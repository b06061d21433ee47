// A graph for inputs of given sizes, made ready: kernels chosen, their arguments in the form that they take, loops
// built, memory laid out. A run goes through the steps in one loop.
//
// A tensor that steps read is a slot: a handle of fixed dtype, shape and strides. Where its bytes lie is known ahead
// for what only kernels see, in an arena; inputs, outputs, and what calls through the dispatcher see are bound at run
// time. A plan is immutable; each run has its own workspace, and the plan keeps one for the next run. It
// holds the graph, and leases on the plugins whose kernels it calls.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "call/profile.hpp"
#include "graph/interpret.hpp"
#include "graph/regions/region.hpp"
#include "memory/tensors/loop.hpp"
#include "memory/tensors/tensor_impl.hpp"
#include "record/resolved_args.hpp"

namespace backplane::core::graph {

using SlotId = uint32_t;

// A handle over the bytes of a root: a slot of its own, or one that a view shows a part of.
struct Slot {
  Tensor handle;  // without storage
  SlotId root = kNone;
  int64_t offset = 0;      // bytes from the root's first element
  ValueId value = kNone;   // of a root: whose tensor it is; kNone: made between nodes
  bool bound = false;      // of a root: at run time; else it lies in an arena
  bool used = false;       // some step has it as an argument
  uint32_t block = kNone;  // of a root in an arena
};

struct Step {
  enum class Kind : uint8_t { kKernel, kRegion, kCall };
  Kind kind = Kind::kKernel;
  bp_kernel_fn fn = nullptr;
  bp_frame frame{};
  uint32_t args = 0;  // into Plan::arguments
  uint32_t outs = 0;
  int32_t n_args = 0;
  int32_t n_outs = 0;
  Device* device = nullptr;
  const KernelRow* row = nullptr;
  const Region* region = nullptr;
  NodeId node = kNone;  // that it runs, or for which it prepares an argument; of a region the last one
  // Into Plan::made and Plan::dropped: values that get memory before the step, and values that are dead after it.
  uint32_t first_made = 0, n_made = 0;
  uint32_t first_dropped = 0, n_dropped = 0;
};

// A tensor of a value, made before the step that writes it.
struct Made {
  SlotId slot;
  ValueId donor = kNone;   // the input, or the constant, whose memory it may take
  bool is_update = false;  // it is the donor's next value, and the donor is updated
};

// Bytes of one device, at offsets that are known ahead.
struct Arena {
  Device* device;
  uint64_t size;
};

// What becomes of a graph's nodes and memory, for reports.
struct PlanSummary {
  uint64_t arena = 0;     // bytes
  uint64_t separate = 0;  // what they would be if nothing were reused
  uint32_t kernels = 0, regions = 0, views = 0, calls = 0;
  uint32_t in_regions = 0;  // nodes
  // Of bytes, and what the arena would be without the nodes that run once more for it.
  std::optional<uint64_t> budget;
  uint64_t arena_before = 0;
  size_t recomputed = 0;
};

struct PlanData {
  std::shared_ptr<const Graph> graph;
  std::vector<int64_t> symbols;
  std::vector<std::shared_ptr<GraphFunction>> functions;
  std::vector<Step> steps;
  std::vector<Slot> slots;
  std::vector<bp_value> arguments;  // of all steps

  // Arguments that each workspace has of its own.
  struct Patch {
    uint32_t argument;
    SlotId slot;
  };
  struct ListPatch {
    uint32_t argument;
    std::vector<SlotId> slots;  // kNone: as the template has it
  };
  struct DrawPatch {
    uint32_t argument, draw;
    uint64_t offset;
  };
  std::vector<Patch> patches;
  std::vector<ListPatch> list_patches;
  std::vector<DrawPatch> draw_patches;

  std::vector<Made> made;
  // From this step on, no step can fail once it has memory: results may be written over the tensors that they update.
  uint32_t first_update = UINT32_MAX;
  std::vector<ValueId> dropped;
  std::vector<std::vector<SlotId>> bound;  // per value: the slots that show its tensor
  std::vector<ValueId> held;               // values that have a tensor in a run, constants apart
  std::vector<Arena> arenas;
  struct Block {
    uint32_t arena;
    uint64_t offset;
  };
  std::vector<Block> blocks;
  uint64_t alignment = 64;         // of offsets in an arena
  uint64_t operand_alignment = 1;  // of the offsets that the steps' kernels take, a power of two

  // What arguments point to.
  std::deque<LoopStorage> loops;
  std::deque<ResolvedLists> resolved;
  std::deque<std::vector<int64_t>> ints;
  std::deque<std::vector<bp_tensor*>> lists;
  struct Complex {
    double parts[2];
  };
  std::deque<Complex> complex_numbers;
  std::vector<Tensor> kept;
  std::vector<std::shared_ptr<Region>> regions;

  // A run that is being captured on an asynchronous device may go through the steps: all of them are capturable.
  bool capturable = true;
  // The generations of devices at the time of the build: objects from before a reset are not used after it.
  struct MadeFor {
    Device* device;
    uint32_t generation;
  };
  std::vector<MadeFor> made_for;
  std::vector<Device*> devices;
  std::vector<PluginRecord*> plugins;  // a lease on each
  std::vector<std::vector<int64_t>> input_shapes;
  PlanSummary summary;
};

struct Workspace;

class Plan {
 public:
  // Takes the leases.
  explicit Plan(std::unique_ptr<PlanData> data);
  ~Plan();
  Plan(const Plan&) = delete;

  bool fits(std::span<const Tensor> inputs) const;  // their sizes, and devices as they are
  // Can it run now, on the streams that this thread has chosen? Not if a capture would need a step that is not
  // capturable.
  bool may_run() const;
  // Inputs as the graph types them. `updates`: the caller carries out the graph's updates next, so that a result may be
  // written over the tensor that it updates. Throws Error with the node; every input is then as it was.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const bp_generator_state> draws,
                          bool updates = false);
  const PlanData& data() const { return *data_; }

 private:
  std::shared_ptr<const std::vector<StepFacts>> facts();
  std::unique_ptr<Workspace> take_workspace();
  void give_workspace(std::unique_ptr<Workspace> workspace) noexcept;

  std::unique_ptr<PlanData> data_;
  std::atomic<Workspace*> idle_{nullptr};
  std::atomic<std::shared_ptr<const std::vector<StepFacts>>> facts_;  // made when a profile first runs
};

}  // namespace backplane::core::graph
