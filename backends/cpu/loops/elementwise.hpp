// Elementwise kernels: from a table of one-dimensional loops, one per dtype, to the contract's kernel form.
//
// A row's context is an Elementwise. Operands are the output, then the arguments; a number among the arguments is an
// operand with stride 0. An op is one row in its family's list; tables are filled at registration, and are constant
// afterwards.
#pragma once

#include <span>

#include "backplane/plugin.hpp"

namespace backplane::cpu {

// Computes n elements of out = f(operands...). pointers[0] and strides[0] (bytes) are the output's. Returns NULL, or
// a message about wrong data.
using InnerLoop = const char* (*)(char* const* pointers, const int64_t* strides, int64_t n);

// Elements from which a second thread pays: a piece must last well over the few microseconds that handing it out takes.
inline constexpr int64_t kCheapGrain = 32768;     // one load, one instruction, one store: about 0.3 ns an element
inline constexpr int64_t kFunctionGrain = 16384;  // vector functions: 0.2 to 2 ns an element
inline constexpr int64_t kCostlyGrain = 4096;     // scalar functions: 5 to 50 ns an element

// A function of one number of any type, as the loops over functors take it.
#define BACKPLANE_FUNCTION(name, expression) \
  struct name {                              \
    template <class T>                       \
    static HWY_INLINE T call(T x) {          \
      return expression;                     \
    }                                        \
  };

struct Elementwise {
  // By compute dtype. A half float's entry may be NULL: then blocks are converted to float32 and back.
  InnerLoop inner[BP_DTYPE_COUNT];
  int64_t grain = kCheapGrain;
  bool condition_first = false;  // the first argument is bool, whatever the compute dtype (`where`)
};

bp_status BP_CALL elementwise_unary(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                    int32_t n_outs);
bp_status BP_CALL elementwise_binary(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                     int32_t n_outs);
bp_status BP_CALL elementwise_ternary(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                      int32_t n_outs);

// Of one or two tensors followed by one to three Scalar arguments, which are operands with stride 0.
template <int Tensors, int Scalars>
bp_status BP_CALL elementwise_with_scalars(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                           int32_t n_outs);

// Writes a number as one element of a dtype.
void store_number(bp_dtype dtype, const bp_value& number, void* element);

inline char* data_of(const bp_tensor* tensor) { return static_cast<char*>(tensor->dl.data) + tensor->dl.byte_offset; }

inline constexpr uint32_t kElementwiseFlags =
    BP_KERNEL_STRIDED | BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE;

// One operation, as a family's list has it once per Highway target. The list lives as long as the process: the
// registered row points into it.
struct ElementwiseRow {
  const char* op;
  bp_kernel_fn fn;
  void (*fills[3])(Elementwise&);  // applied in order; NULL where there are fewer
  bp_dtype_mask dtypes = 0;        // 0: those with a loop, and the half floats if float32 has one
  uint32_t flags = kElementwiseFlags;
  Elementwise table{};
};
void register_elementwise(const plugin::Registrar& registrar, std::span<ElementwiseRow> rows, const char* file,
                          uint32_t line);

}  // namespace backplane::cpu
