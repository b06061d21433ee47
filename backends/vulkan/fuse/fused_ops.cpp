// Codegen's lists as a table; an op costs no line.
#include "fuse/fused_ops.hpp"

#include "backplane/scalar.hpp"
#include "kernels/refused.hpp"

namespace backplane::vulkan {
namespace {

bool refuses(std::string_view op, bp_dtype dtype) {
  return refused(op.substr(op.rfind(':') + 1), dtype) != FaultKind::kNone;
}

struct Named {
  const char *op, *function;
};
// Rows up to one without an op. As data: a statement per row takes the compiler half a minute.
void add(plugin::ScalarOps& ops, const Named* rows, bp_dtype in, int operands, bp_dtype out, const char* suffix = "") {
  for (; rows->op; ++rows) ops[{rows->op, in}] = {std::string(rows->function) + suffix, operands, out};
}

#define BACKPLANE_ROW(op, function, number) {"bp::" #op, #function},
#define BACKPLANE_LIST(arity, operands, from, to, in, out)                                                \
  {                                                                                                       \
    static constexpr Named rows[] = {BP_SCALAR_##arity##_##from##_##to(BACKPLANE_ROW){nullptr, nullptr}}; \
    add(ops, rows, in, operands, out);                                                                    \
  }
// A selection has a function for every dtype, of which the list names that of bools.
#define BACKPLANE_SELECT(op, function, number) {"bp::" #op, "bp_" #op},
#define BACKPLANE_SAME(name, dtype)                                                                    \
  BACKPLANE_LIST(UNARY, 1, name, name, dtype, dtype)                                                   \
  BACKPLANE_LIST(BINARY, 2, name, name, dtype, dtype) {                                                \
    static constexpr Named rows[] = {BP_SCALAR_TERNARY_bool_bool(BACKPLANE_SELECT){nullptr, nullptr}}; \
    add(ops, rows, dtype, 3, dtype, "_" #name);                                                        \
  }
#define BACKPLANE_NUMBERS(name, dtype)                 \
  BACKPLANE_SAME(name, dtype)                          \
  BACKPLANE_LIST(UNARY, 1, name, bool, dtype, BP_BOOL) \
  BACKPLANE_LIST(BINARY, 2, name, bool, dtype, BP_BOOL)

plugin::ScalarOps scalar_ops() {
  plugin::ScalarOps ops;
  BACKPLANE_SAME(bool, BP_BOOL)
  BACKPLANE_NUMBERS(int8, BP_INT8)
  BACKPLANE_NUMBERS(int16, BP_INT16)
  BACKPLANE_NUMBERS(int32, BP_INT32)
  BACKPLANE_NUMBERS(int64, BP_INT64)
  BACKPLANE_NUMBERS(uint8, BP_UINT8)
  BACKPLANE_NUMBERS(uint16, BP_UINT16)
  BACKPLANE_NUMBERS(uint32, BP_UINT32)
  BACKPLANE_NUMBERS(uint64, BP_UINT64)
  BACKPLANE_NUMBERS(float32, BP_FLOAT32)
  BACKPLANE_NUMBERS(float64, BP_FLOAT64)
  BACKPLANE_NUMBERS(complex64, BP_COMPLEX64)
  BACKPLANE_NUMBERS(complex128, BP_COMPLEX128)
  BACKPLANE_LIST(BINARY, 2, float32, complex64, BP_FLOAT32, BP_COMPLEX64)
  BACKPLANE_LIST(BINARY, 2, float64, complex128, BP_FLOAT64, BP_COMPLEX128)
  BACKPLANE_LIST(UNARY, 1, complex64, float32, BP_COMPLEX64, BP_FLOAT32)
  BACKPLANE_LIST(UNARY, 1, complex128, float64, BP_COMPLEX128, BP_FLOAT64)
  return ops;
}

}  // namespace

const plugin::FusedOps& fused_ops() {
  static const plugin::FusedOps ops{scalar_ops(),
                                    {"bp::cast", "bp::copy"},
                                    {"bp::reshape", "bp::expand_dims", "bp::squeeze", "bp::broadcast_to"},
                                    refuses};
  return ops;
}

}  // namespace backplane::vulkan
