// A compiled region: instructions over slots, run tile by tile.
//
// A tile is a piece of the region's space that stays in the cache. An instruction runs a kernel's own loop over one
// tile of its operands; what passes between instructions lies in buffers of the worker. So a result has the bits that
// the ops have one by one. Constant after compilation: any number of threads may run it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fuse/chains.hpp"
#include "fuse/machine_code.hpp"
#include "fuse/node_kind.hpp"

namespace backplane::cpu::fuse {

// The elements of a value: one in all, one per row, or one per element of the space.
enum class Extent : uint8_t { kUniform, kRow, kFull };

struct Slot {
  enum class Kind : uint8_t { kInput, kOutput, kConstant, kNumber, kUniform, kBuffer, kColumns, kWhole };
  Kind kind;
  Extent extent;
  bp_dtype dtype;
  // Of the tensors: which one. A number's or uniform value's place. A buffer's, in bytes per element (or row) of a
  // tile. Which of the program's columns, or wholes.
  uint32_t at = 0;
  std::vector<int32_t> axes{};  // of the tensors: per dim of the space, the tensor's axis; -1: all elements are one

  bool tensor() const { return kind == Kind::kInput || kind == Kind::kOutput || kind == Kind::kConstant; }
  int64_t item() const { return plugin::kItemSize[dtype]; }
};

inline constexpr int kMostOperands =
    7;                                 // a result, tensors and Scalars of elementwise_with_scalars<2, 3>, and one more
inline constexpr int kMostSlots = 28;  // of machine code

struct Instruction {
  enum class Kind : uint8_t { kMap, kChain, kCode, kCast, kReduce, kColumns, kWhole };
  Kind kind;
  Extent extent;          // over what it runs; a reduction: kFull
  int64_t weight = 0;     // of an element, in those of cheap instructions
  size_t part = 0;        // from 1 on; 0: uniform
  bool in_place = false;  // its result may lie on an operand of the same size
  uint8_t n_slots = 0, n_results = 1;
  uint32_t slots[kMostSlots];      // the results, then the operands
  InnerLoop loop = nullptr;        // of kMap
  Link links[kLongestChain] = {};  // of kChain; of a kMap that machine code can do, the first
  Chain chain = nullptr;
  const MachineCode* code = nullptr;        // of kCode
  const RowReduction* reduction = nullptr;  // of kReduce
  std::vector<bp_value> numbers{};          // of kReduce: the op's arguments, without tensors and lists
  std::string op{};                         // for messages
};

// A reduction over the rows of the space; of the accumulators' dtype, which is the output's.
struct Columns {
  const ColumnReduction* reduction;
  bp_dtype dtype;
  uint32_t output;
};

// Instructions that share a tensor or a buffer with one another, and with no others but uniform values. Parts are
// walked one after the other: the more tensors a tile touches, the more the processor's prefetching loses sight of
// them.
struct Part {
  std::vector<Instruction> code;
  std::vector<uint32_t> tensors;  // those that it touches, as places in Program::tensors
  std::vector<uint32_t> buffers;  // slots
  int64_t weight = 0;
};

struct alignas(16) Number {
  char bytes[16];
};

// The same over all elements of the space.
struct Whole {
  const WholeReduction* reduction;
  bp_dtype dtype;
  uint32_t output;
};

struct Program {
  Space space;
  std::vector<Slot> slots;
  std::vector<uint32_t> tensors;  // those of the slots that are tensors
  Part uniform;                   // run once
  std::vector<Part> tiled;        // run for each tile; one where something is reduced over all of them
  std::vector<Number> numbers;
  std::vector<std::pair<Arithmetic, std::unique_ptr<MachineCode>>> machine_code;
  std::vector<Columns> columns;
  std::vector<Whole> wholes;
  std::vector<bp_tensor*> constants;  // retained
  uint32_t n_inputs = 0, n_outputs = 0, n_uniform = 0;
  uint32_t full_bytes = 0, row_bytes = 0;  // of buffers, per element and per row of a tile
  uint32_t spill_bytes = 0;                // per element, for operands that a loop does not take as they lie
  int64_t widest = 1;                      // bytes of the largest element
  const bp_host* host = nullptr;

  bool reduces_tiles() const { return !columns.empty() || !wholes.empty(); }
  Program() = default;
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    for (bp_tensor* constant : constants) host->release(constant);
  }
};

// Throws if `partition` does not claim such a region.
std::unique_ptr<Program> lower(const bp_host* host, bp_device device, const GraphView& region);

// See bp_extension_compiler::execute and ::may_share.
void execute(const bp_frame* frame, const Program& program, const bp_value* inputs, int32_t n_inputs, bp_value* outs,
             int32_t n_outs);
bool may_share(const Program& program, uint32_t out, uint32_t in);

}  // namespace backplane::cpu::fuse
