// One kernel call: its operands, launches on its stream, and the shapes in which kernels take them.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "backplane/plugin.hpp"
#include "runtime/arguments.hpp"
#include "runtime/backend.hpp"

namespace backplane::cuda {

// What a row's kernel is called with beside the frame: frame->context.
struct Row {
  Backend* backend;
  const char* name;  // of the op, as in the modules
};

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
  uint32_t threads = kThreads;
};

// Enough threads for `count` elements, and no more blocks than keep the device busy.
Grid grid_for(const Device& device, uint64_t count);
// `name` for messages. The device's context is current.
void launch_kernel(driver::Function function, Grid grid, const Stream& stream, void** parameters, const char* name);

// Operands over one shape, outermost dimension first; the result is operand 0. Strides in bytes.
struct Strided {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  // [operand][dimension]
  std::vector<char*> data;                    // nullptr: the number of the same place
  std::vector<Number> numbers;

  int64_t count() const;
};

class Call {
 public:
  Call(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs)
      : frame_(*frame),
        args_(args, static_cast<size_t>(n_args)),
        outs_(outs, static_cast<size_t>(n_outs)),
        device_(row().backend->device(frame->ordinal)),
        scope_(device_) {}

  const Row& row() const { return *static_cast<const Row*>(frame_.context); }
  const char* op_name() const { return frame_.op->name; }
  bp_dtype compute() const { return frame_.compute; }
  const bp_loop* loop() const { return frame_.loop; }
  size_t n_args() const { return args_.size(); }
  bool has(size_t arg) const { return arg < args_.size() && args_[arg].tag != BP_TAG_ABSENT; }
  const bp_value& value(size_t arg) const { return args_[arg]; }
  int64_t integer(size_t arg) const { return args_[arg].u.i; }
  std::span<const int64_t> integers(size_t arg) const { return {args_[arg].u.ints, args_[arg].count}; }
  std::span<bp_tensor* const> tensors(size_t arg) const { return {args_[arg].u.tensors, args_[arg].count}; }
  const bp_tensor& input(size_t arg) const { return *args_[arg].u.t; }
  const bp_tensor& output(size_t result = 0) const { return *outs_[result].u.t; }
  char* scratch(uint64_t bytes) const { return static_cast<char*>(plugin::Context{&frame_}.scratch(bytes)); }
  // For libraries, which want multiples of 256; nullptr of no bytes.
  char* aligned_scratch(uint64_t bytes) const;
  Libraries& libraries() const { return device_.libraries(); }
  bool is_capturing() const { return as_stream(frame_.stream).is_capturing(); }
  driver::Stream stream() const { return as_stream(frame_.stream).handle(); }
  uint32_t multiprocessors() const { return device_.multiprocessors(); }
  int capability() const { return device_.facts().capability; }  // 90 is 9.0
  // `stack`: the shape in which a fault counts matrices.
  DataError* expect_error(std::span<const int64_t> stack = {}) const {
    return as_stream(frame_.stream).expect_error(frame_.ticket, {short_name(), {stack.begin(), stack.end()}});
  }
  // Memory of the host, until the call's work has ended.
  void* host_scratch(uint64_t bytes) const { return as_stream(frame_.stream).host_scratch(frame_.ticket, bytes); }
  bool wants(size_t result) const { return outs_[result].tag == BP_TAG_TENSOR; }

  // The operands of an elementwise call or a reduction: results, then arguments. Numbers are elements of
  // `number_dtype`, the first argument's of `first_dtype`.
  Strided operands(bp_dtype number_dtype, bp_dtype first_dtype = BP_DTYPE_NONE) const;
  // The same, part by part: body(Loop).
  void for_each_loop(bp_dtype number_dtype, const std::function<void(Loop&)>& body,
                     bp_dtype first_dtype = BP_DTYPE_NONE) const;
  template <class... Arguments>
  void launch(const std::string& module, const std::string& function, Grid grid, const Arguments&... arguments) const {
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    launch_pointers(module, function, grid, pointers);
  }
  Grid grid_for(uint64_t count) const { return cuda::grid_for(device_, count); }

 private:
  // f(k, tensor or nullptr, its number) for the operands, results first.
  template <class F>
  void each_operand(bp_dtype number_dtype, bp_dtype first_dtype, F f) const;
  bool fill(Loop& loop, bp_dtype number_dtype, bp_dtype first_dtype) const;
  const char* short_name() const;
  void launch_pointers(const std::string& module, const std::string& function, Grid grid, void** pointers) const;

  const bp_frame& frame_;
  std::span<const bp_value> args_;
  std::span<bp_value> outs_;
  Device& device_;
  DeviceScope scope_;
};

inline char* data_of(const bp_tensor& tensor) { return static_cast<char*>(tensor.dl.data) + tensor.dl.byte_offset; }
inline int64_t item_of(const bp_tensor& tensor) { return plugin::kItemSize[tensor.dtype]; }
inline int64_t count_of(const bp_tensor& tensor) { return static_cast<int64_t>(tensor.nbytes) / item_of(tensor); }
// As kPackOf of device/element.cuh: how many elements one access moves.
inline uint32_t pack_of(bp_dtype dtype) {
  const int64_t item = plugin::kItemSize[dtype];
  return item >= 16 ? 1 : item <= 2 ? 8 : static_cast<uint32_t>(16 / item);
}
std::vector<int64_t> shape_of(const bp_tensor& tensor);
std::vector<int64_t> byte_strides_of(const bp_tensor& tensor);

Divider divider(int64_t size);
Number number_of(bp_dtype dtype, const bp_value& value);
std::string typed_module(bp_dtype dtype);  // "typed_float32"

// Dimensions outermost first. Throws where they are too many, or the elements.
Dimensions dimensions(std::span<const int64_t> sizes, std::span<const int64_t> out, std::span<const int64_t> x);

// body(Loop) for parts that a kernel takes: of at most kMaxRank dimensions and fewer than 2^31 elements.
void for_each_loop(const Strided& operands, const std::function<void(Loop&)>& body);

// Operands of one dimension, elements of these sizes side by side in each, that begin where `count` of them may be
// moved together. Numbers lie anywhere.
bool lies_in_packs(const Loop& operands, std::span<const int64_t> items, int64_t count);
constexpr int64_t kWidest = 16;  // bytes of an element that a kernel moves
// Elements of `width` bytes that lie side by side in all operands become elements of up to `widest`; gives their width.
int64_t widened(int64_t width, Strided& operands, int64_t widest = kWidest);

// Copies elements between strided tensors of one dtype's width.
void launch_copy(const Call& call, Strided operands, int64_t width);
Strided copy_operands(char* to, std::vector<int64_t> to_strides, char* from, std::vector<int64_t> from_strides,
                      std::vector<int64_t> shape);

// The C function of a kernel that is written as void(const Call&).
template <void (*Function)(const Call&)>
bp_status BP_CALL kernel(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return plugin::guard(frame, [&] { Function(Call(frame, args, n_args, outs, n_outs)); });
}

}  // namespace backplane::cuda
