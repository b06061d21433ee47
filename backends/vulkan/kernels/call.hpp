// One kernel call: its operands as addresses, and how work of it is recorded.
//
// Offsets and strides are elements, in 32 bits on the device: an operand that is spread wider is refused. A kernel's
// function runs on the caller's thread and records; only the device follows the addresses.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"
#include "runtime/stream.hpp"

namespace backplane::vulkan {

using Sizes = std::vector<int64_t>;

struct Operand {
  uint64_t data = 0;  // address of the first element; 0 where there are no elements
  bp_dtype dtype = BP_DTYPE_NONE;
  Sizes shape;
  Sizes strides;

  int64_t count() const;
  int32_t ndim() const { return static_cast<int32_t>(shape.size()); }
  Range range() const;
};

// A contiguous operand, and the strides of one.
Operand contiguous(uint64_t data, bp_dtype dtype, Sizes shape);
Sizes row_major(const Sizes& shape);
// The strides with which an operand is seen at a larger shape: its last axes align, sizes 1 repeat.
Sizes broadcast_strides(const Operand& operand, const Sizes& shape);

// What `offsets_of` in shaders/call.glsl walks: rows of a size, what divides by it, and strides, innermost first. Axes
// of size 1 are left out, and neighbours that are one axis in every operand are joined.
class Rows {
 public:
  static constexpr size_t kHead = 3;  // a size, its multiplier and shift

  // strides[k][d] of operand k; `shape` outermost first.
  void add(const Sizes& shape, std::initializer_list<const Sizes*> strides);
  uint32_t rank() const { return rank_; }  // of what was added last
  std::span<const int32_t> values() const { return values_; }
  // The rows added last as words of a push, whose outermost row is only its strides (at least one row is there);
  // false: the words do not hold it.
  bool into(std::span<uint32_t> words) const;

 private:
  std::vector<int32_t> values_;
  size_t first_ = 0, width_ = 0;  // of what was added last
  uint32_t rank_ = 0;
};

// Completes a row that starts with a size of at least 2: what divides a position below 2^31 by it.
void set_divisor(int32_t* row);
// The multiplier and the shift of a size from 1, as `divided` in shaders/call.glsl takes them, at words[0] and
// words[1].
void divide_by(int64_t size, uint32_t* words);

int32_t narrow(int64_t value, const char* op_name);  // throws where 32 bits do not hold it

// The class of dtypes that computes `dtype`, as an offset from a family's module of float32.
enum class Class : uint8_t { kFloat32, kFloat64, kInt64, kComplex64, kComplex128 };
Class class_of(bp_dtype dtype);
inline Module module_of(Module first, Class c) {
  return static_cast<Module>(static_cast<uint8_t>(first) + static_cast<uint8_t>(c));
}

inline uint32_t groups_for(int64_t invocations) {
  const int64_t groups = (invocations + kGroupSize - 1) / kGroupSize;
  return static_cast<uint32_t>(std::min<int64_t>(groups, kMaxGroups));
}

class Call {
 public:
  Call(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs)
      : frame_(*frame), args_(args, static_cast<size_t>(n_args)), outs_(outs, static_cast<size_t>(n_outs)) {}

  const char* op_name() const { return frame_.op->name; }
  bp_dtype compute() const { return frame_.compute; }
  const bp_loop* loop() const { return frame_.loop; }
  template <class T>
  const T& registered() const {
    return *static_cast<const T*>(frame_.context);
  }
  std::span<const bp_value> args() const { return args_; }
  std::span<const bp_value> outs() const { return outs_; }
  bool has(size_t arg) const { return arg < args_.size() && args_[arg].tag != BP_TAG_ABSENT; }
  const bp_value& value(size_t arg) const { return args_[arg]; }
  int64_t integer(size_t arg) const { return args_[arg].u.i; }
  bool flag(size_t arg) const { return has(arg) && args_[arg].u.i != 0; }
  Sizes integers(size_t arg) const { return {args_[arg].u.ints, args_[arg].u.ints + args_[arg].count}; }
  Operand input(size_t arg) const { return operand(*args_[arg].u.t); }
  std::vector<Operand> inputs(size_t arg) const;  // of a tensor list; an absent element has no dtype
  Operand output(size_t result) const { return operand(*outs_[result].u.t); }
  bool wants(size_t result) const { return outs_[result].tag == BP_TAG_TENSOR; }
  Operand operand(const bp_tensor& tensor) const;
  // Device memory until the work of this call has ended.
  Operand scratch(bp_dtype dtype, Sizes shape) const;

  Stream& stream() const { return *reinterpret_cast<Stream*>(frame_.stream); }
  Push push() const;
  uint64_t stage(const Rows& rows) const { return stage(std::as_bytes(rows.values())); }
  uint64_t stage(std::span<const std::byte> bytes) const;  // an address, good for this call's commands
  uint64_t stage_number(const bp_value& number, bp_dtype dtype) const;
  void dispatch(const Shader& shader, const Push& push, uint32_t groups, std::initializer_list<Range> writes,
                std::initializer_list<Range> reads) const {
    stream().dispatch(shader, push, groups, {writes.begin(), writes.size()}, {reads.begin(), reads.size()});
  }

 private:
  const bp_frame& frame_;
  std::span<const bp_value> args_;
  std::span<bp_value> outs_;
};

// What several families record.
void record_move(const Call& call, const Operand& to, const Operand& from);  // `from` is broadcast
void record_cast(const Call& call, const Operand& to, const Operand& from);  // both contiguous, or of one loop
// Positions that sort lines along `axis` of x (ndim > 0), into `to` of x's shape, of int64 or int32.
void record_sort(const Call& call, const Operand& to, const Operand& x, size_t axis, bool descending);
// Refuses positions outside an axis of `size`.
void record_check(const Call& call, const bp_tensor& indices, int32_t axis, int64_t size);
// The sums of `from` along its first axis; both contiguous.
void record_sum(const Call& call, const Operand& to, const Operand& from);

// How shaders/tiles.glsl cuts a product of `rows` x `columns`: tiles no larger than it needs, of 16, 32 and at most
// 16 * `largest` a side.
struct Tiles {
  int64_t count;
  uint8_t option;  // kOption of the shader
};
Tiles tiles_for(int64_t rows, int64_t columns, int64_t largest);

// The same for shaders/blocks.glsl, on software drivers: blocks of a subgroup of `lanes` invocations, with at
// most 4 rows and `most_across` columns for each of these.
Tiles blocks_for(int64_t rows, int64_t columns, int64_t lanes, int64_t most_across);
// The workgroups that `parts` tiles or blocks have.
int64_t groups_of(const Device& device, int64_t parts);

// In how many slices an inner dimension is cut, so that a product of few parts keeps the device busy.
int64_t slices_for(int64_t parts, int64_t inner);
// The dtype of the slices of a result: the dtype of its class's arithmetic.
bp_dtype partial_dtype(bp_dtype dtype);

// A row of the dispatch table.
struct Row {
  const char* op;
  bp_kernel_fn fn;
  bp_dtype_mask dtypes;
  uint32_t flags;
  bp_kernel_fn supports = nullptr;
  uint32_t line = __builtin_LINE();  // where the row stands, for `backplane explain`
};

// The C function of a kernel that is written as void(const Call&).
template <void (*Function)(const Call&)>
bp_status BP_CALL kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return plugin::guard(frame, [&] { Function(Call(frame, args, n_args, outs, n_outs)); });
}

}  // namespace backplane::vulkan
