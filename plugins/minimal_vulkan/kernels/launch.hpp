// One launch of a kernel: its arguments, and the loops that it walks. Nothing here knows the device's interface, but
// for the two functions that runtime/ defines.
#pragma once

#include <string>

#include "backplane/plugin/element.hpp"
#include "backplane/plugin/indexing.hpp"
#include "kernels/arguments.hpp"

namespace minimal {

using namespace backplane::plugin;

// Steps of the loops in one invocation. Some drivers end a loop without a word after 65,535 steps, counted over all
// loops of the invocation (Mesa's llvmpipe), others end a program that runs for too long.
inline constexpr int64_t kMostSteps = 16384;

// In which dtype the elements are computed: half floats in float32.
bp_dtype computed(bp_dtype dtype);

enum class Kernel : uint8_t {
#define MINIMAL_NUMBER(name, number) name = number,
  MINIMAL_TYPED_KERNELS(MINIMAL_NUMBER) MINIMAL_MOVING_KERNELS(MINIMAL_NUMBER)
#undef MINIMAL_NUMBER
};

// A loop over some operands, whose strides are bytes.
struct Walk {
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides;  // [operand][dimension]

  Walk() = default;
  // The loop that came with the call, results first; without one, a flat loop over the result.
  Walk(Context call, std::initializer_list<const bp_tensor*> operands);
  // Over a shape, by strides in elements of tensors of one item size.
  Walk(Ints shape, std::initializer_list<Ints> strides, int64_t item);
  int64_t count() const { return count_of(sizes); }
  void add_dim(int64_t size, std::initializer_list<int64_t> steps);
};

class Launch {
 public:
  // `dtype`: of the elements that the kernel computes with, or moves.
  Launch(Context call, Kernel kernel, bp_dtype dtype);
  Launch& result(bp_dtype dtype);                                   // where it differs from what is read
  Launch& tensor(const bp_tensor& tensor, int64_t more_bytes = 0);  // the next operand
  Launch& memory(const void* address);                              // likewise, of scratch
  Launch& number(int64_t number);
  Launch& bits(const bp_value& number, bp_dtype dtype);     // of one element, in two numbers
  Launch& function(const char* op, const char* next = "");  // "add": by its number in the lists of the dtype
  Launch& loop(const Walk& walk);
  // The message of the error if the kernel finds bad data.
  Launch& watch(std::string message);
  void run(int64_t items);
  void run(const Walk& walk) { loop(walk).run(walk.count()); }
  // One launch after another, each with the begin and the end of its steps in two more numbers. `loops`: how many steps
  // of loops one of these takes.
  void run_parts(int64_t items, int64_t steps, size_t loops = 1) const;

  Context call;
  Kernel kernel;
  bp_dtype dtype;  // whose kernels are meant: float32's compute half floats
  Arguments arguments{};
  std::string watched;

 private:
  int operands_ = 0, numbers_ = 0, loops_ = 0;
};

// What runtime/ defines: puts the launch on the call's stream; whether the call's device computes in float64.
void record(const Launch& launch);
bool has_float64(Context call);

// Byte steps of each dimension where the elements lie one after the other, `step` bytes apart.
std::vector<int64_t> row_major(const std::vector<int64_t>& sizes, int64_t step);

// to[...] = from[...] over `shape`, of tensors of one item size.
void record_move(Context call, const bp_tensor& to, int64_t to_bytes, const bp_tensor& from, Ints shape,
                 Ints to_strides, Ints from_strides);

// The elements at `from`, the walk's operand 1, cast into contiguous scratch memory, which the walk then has as that.
const char* record_cast(Context call, Walk& walk, const char* from, bp_dtype in, bp_dtype out);

}  // namespace minimal
