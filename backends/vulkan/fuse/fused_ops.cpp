// Codegen's lists as a table; an op costs no line.
#include "fuse/fused_ops.hpp"

#include "backplane/scalar.hpp"
#include "kernels/refused.hpp"

namespace backplane::vulkan {
namespace {

bool refuses(std::string_view op, bp_dtype dtype) {
  return refused(op.substr(op.rfind(':') + 1), dtype) != FaultKind::kNone;
}

#define BACKPLANE_ROW(op, function, number) ops[{"bp::" #op, in}] = {#function, operands, out};
#define BACKPLANE_LIST(arity, n, from, to, from_dtype, to_dtype) \
  {                                                              \
    constexpr bp_dtype in = from_dtype, out = to_dtype;          \
    constexpr int operands = n;                                  \
    BP_SCALAR_##arity##_##from##_##to(BACKPLANE_ROW)             \
  }
#define BACKPLANE_SAME(name, dtype)                     \
  BACKPLANE_LIST(UNARY, 1, name, name, dtype, dtype)    \
  BACKPLANE_LIST(BINARY, 2, name, name, dtype, dtype) { \
    constexpr bp_dtype in = dtype, out = dtype;         \
    constexpr int operands = 3;                         \
    const std::string suffix = "_" #name;               \
    BP_SCALAR_TERNARY_bool_bool(BACKPLANE_SELECT)       \
  }
// A selection has a function for every dtype, of which the list names that of bools.
#define BACKPLANE_SELECT(op, function, number) ops[{"bp::" #op, in}] = {"bp_" #op + suffix, operands, out};
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
