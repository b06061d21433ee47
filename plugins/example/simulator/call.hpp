// One kernel call as it is recorded: everything that the work needs is copied out of the borrowed arguments.
//
// Addresses in Operand and Loop belong to the device's own view; only queue threads follow them. The memory
// stays allocated until the call's ticket is complete, which the host guarantees.
#pragma once

#include <array>
#include <functional>
#include <span>
#include <vector>

#include "backplane/plugin.hpp"
#include "dtypes.hpp"

namespace sim {

// Bytes of device memory that a call reads or writes.
struct Touch {
  const void* block;
  uint64_t offset;
  uint64_t size;
  bool writes;
};

struct Operand {
  char* data = nullptr;
  bp_dtype dtype = BP_DTYPE_NONE;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // elements

  int64_t count() const;
  int32_t ndim() const { return static_cast<int32_t>(shape.size()); }
};

// A loop descriptor with its operands: outputs first. A number in a tensor position is an operand of stride 0.
struct Loop {
  int64_t count = 1;
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;  // bytes, [operand][rank]
  std::vector<char*> data;       // nullptr: the operand is the number of the same place
  struct alignas(16) Number {
    std::array<char, 16> bytes;
  };
  std::vector<Number> numbers;

  int32_t rank() const { return static_cast<int32_t>(sizes.size()); }
};

class Call {
 public:
  Call(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs)
      : frame_(*frame), args_(args, static_cast<size_t>(n_args)), outs_(outs, static_cast<size_t>(n_outs)) {}

  const char* op_name() const { return frame_.op->name; }
  bp_dtype compute() const { return frame_.compute; }
  bool has(size_t arg) const { return arg < args_.size() && args_[arg].tag != BP_TAG_ABSENT; }
  const bp_value& value(size_t arg) const { return args_[arg]; }
  int64_t integer(size_t arg) const { return args_[arg].u.i; }
  bool flag(size_t arg) const { return args_[arg].u.i != 0; }
  std::vector<int64_t> integers(size_t arg) const;
  Operand input(size_t arg) const;
  std::span<bp_tensor* const> tensors(size_t arg) const { return {args_[arg].u.tensors, args_[arg].count}; }
  std::vector<Operand> inputs(size_t arg) const;  // of a tensor list; an absent element has no dtype
  bool wanted(size_t result) const { return !(outs_[result].flags & BP_VALUE_NOT_WANTED); }
  Operand output(size_t result) const;
  char* scratch(uint64_t size) const;  // device memory until the work of this call has ended

  const bp_loop& frame_loop() const { return *frame_.loop; }
  // The frame's loop with its operands. Numbers are stored in the compute dtype; that of argument 0 in `first`, where
  // one is given.
  Loop loop(bp_dtype first = BP_DTYPE_NONE) const;
  void record(std::function<void()> work) const;

 private:
  // The device's side, in call_device.cpp: where its threads see the bytes, and the offsets that it takes.
  char* resolve(const Touch& touch) const;
  uint64_t alignment() const;
  Operand operand(const bp_tensor& tensor, bool writes) const;
  void add_tensor(Loop& loop, const bp_tensor& tensor, bool writes) const;
  void add_number(Loop& loop, bp_dtype dtype, const bp_value& number) const;

  const bp_frame& frame_;
  std::span<const bp_value> args_;
  std::span<bp_value> outs_;
  mutable std::vector<Touch> touched_;  // by the operands so far
};

// A row of the dispatch table, less what all rows of a backend share.
struct Row {
  const char* op;
  bp_kernel_fn fn;
  bp_dtype_mask dtypes;
  uint32_t flags;
  uint32_t line = __builtin_LINE();  // where the row stands, for `backplane explain`
};
struct Table {
  const char* file;
  std::span<const Row> rows;
};

// The C function of a kernel that is written as void(const Call&).
template <void (*Function)(const Call&)>
bp_status BP_CALL kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return backplane::plugin::guard(frame, [&] { Function(Call(frame, args, n_args, outs, n_outs)); });
}

inline constexpr uint32_t kLoopFlags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE;

}  // namespace sim
