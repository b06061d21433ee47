// The registry's elementwise ops as a compiler fuses them, by the lists that codegen wrote: a new op costs no line.
//
// Header-only; includes all scalar functions of C++ for their lists, so one source of a plugin includes it.
#pragma once

#include "backplane/plugin/fused_nodes.hpp"
#include "backplane/scalar.hpp"

namespace backplane::plugin {

struct ScalarOpName {
  const char *op, *function;
};
// Rows up to one without an op. As data: a statement per row takes the compiler half a minute.
inline void add_scalar_ops(ScalarOps& ops, const ScalarOpName* rows, bp_dtype in, int operands, bp_dtype out,
                           const char* suffix = "") {
  for (; rows->op; ++rows) ops[{rows->op, in}] = {std::string(rows->function) + suffix, operands, out};
}

#define BP_SCALAR_OPS_ROW(op, function, number) {"bp::" #op, #function},
#define BP_SCALAR_OPS_LIST(arity, operands, from, to, in, out)                                                       \
  {                                                                                                                  \
    static constexpr ScalarOpName rows[] = {BP_SCALAR_##arity##_##from##_##to(BP_SCALAR_OPS_ROW){nullptr, nullptr}}; \
    add_scalar_ops(ops, rows, in, operands, out);                                                                    \
  }
// A selection has a function for every dtype; the list names the function for bools.
#define BP_SCALAR_OPS_SELECT(op, function, number) {"bp::" #op, "bp_" #op},
#define BP_SCALAR_OPS_SAME(name, dtype)                                                                           \
  BP_SCALAR_OPS_LIST(UNARY, 1, name, name, dtype, dtype)                                                          \
  BP_SCALAR_OPS_LIST(BINARY, 2, name, name, dtype, dtype) {                                                       \
    static constexpr ScalarOpName rows[] = {BP_SCALAR_TERNARY_bool_bool(BP_SCALAR_OPS_SELECT){nullptr, nullptr}}; \
    add_scalar_ops(ops, rows, dtype, 3, dtype, "_" #name);                                                        \
  }
#define BP_SCALAR_OPS_NUMBERS(name, dtype)                 \
  BP_SCALAR_OPS_SAME(name, dtype)                          \
  BP_SCALAR_OPS_LIST(UNARY, 1, name, bool, dtype, BP_BOOL) \
  BP_SCALAR_OPS_LIST(BINARY, 2, name, bool, dtype, BP_BOOL)

inline ScalarOps scalar_ops() {
  ScalarOps ops;
  BP_SCALAR_OPS_SAME(bool, BP_BOOL)
  BP_SCALAR_OPS_NUMBERS(int8, BP_INT8)
  BP_SCALAR_OPS_NUMBERS(int16, BP_INT16)
  BP_SCALAR_OPS_NUMBERS(int32, BP_INT32)
  BP_SCALAR_OPS_NUMBERS(int64, BP_INT64)
  BP_SCALAR_OPS_NUMBERS(uint8, BP_UINT8)
  BP_SCALAR_OPS_NUMBERS(uint16, BP_UINT16)
  BP_SCALAR_OPS_NUMBERS(uint32, BP_UINT32)
  BP_SCALAR_OPS_NUMBERS(uint64, BP_UINT64)
  BP_SCALAR_OPS_NUMBERS(float32, BP_FLOAT32)
  BP_SCALAR_OPS_NUMBERS(float64, BP_FLOAT64)
  BP_SCALAR_OPS_NUMBERS(complex64, BP_COMPLEX64)
  BP_SCALAR_OPS_NUMBERS(complex128, BP_COMPLEX128)
  BP_SCALAR_OPS_LIST(BINARY, 2, float32, complex64, BP_FLOAT32, BP_COMPLEX64)
  BP_SCALAR_OPS_LIST(BINARY, 2, float64, complex128, BP_FLOAT64, BP_COMPLEX128)
  BP_SCALAR_OPS_LIST(UNARY, 1, complex64, float32, BP_COMPLEX64, BP_FLOAT32)
  BP_SCALAR_OPS_LIST(UNARY, 1, complex128, float64, BP_COMPLEX128, BP_FLOAT64)
  return ops;
}

#undef BP_SCALAR_OPS_ROW
#undef BP_SCALAR_OPS_LIST
#undef BP_SCALAR_OPS_SELECT
#undef BP_SCALAR_OPS_SAME
#undef BP_SCALAR_OPS_NUMBERS

}  // namespace backplane::plugin
