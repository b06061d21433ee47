// Every op of the registry from one or two elements to one, in every dtype that has a function in codegen's lists: no
// op is named here.
#include <array>
#include <map>
#include <string_view>

#include "backplane/scalar.hpp"
#include "kernels/call.hpp"
#include "kernels/families.hpp"
#include "kernels/refused.hpp"

namespace backplane::cuda {
namespace {

static_assert(kFaultDivision == BP_FAULT_DIVISION && kFaultExponent == BP_FAULT_EXPONENT);

// Makes the innermost dimension one of packs, as the kernel takes them, where it can be cut so.
bool cut_into_packs(Loop& loop, std::span<const int64_t> items) {
  const uint32_t together = together_of(*std::max_element(items.begin(), items.end()));
  const uint32_t inner = loop.rank > 0 ? loop.sizes[0].size : 0;
  if (inner < together || (inner % together != 0 && loop.rank > 1)) return false;
  uint32_t repeated = 0;
  for (size_t k = 0; k < items.size(); ++k) {
    const int64_t pack = items[k] * together;
    if (!loop.data[k] || loop.strides[k][0] == 0) {
      repeated |= 1u << k;
      continue;
    }
    if (loop.strides[k][0] != items[k]) return false;
    if (reinterpret_cast<uintptr_t>(loop.data[k]) % static_cast<uint64_t>(pack) != 0) return false;
    for (int32_t d = 1; d < loop.rank; ++d)
      if (loop.strides[k][d] % pack != 0) return false;
  }
  for (size_t k = 0; k < items.size(); ++k) loop.strides[k][0] *= together;
  loop.sizes[0] = divider(inner / together);
  loop.count /= together;
  loop.repeated = repeated, loop.rest = inner % together;
  return true;
}

// `kMayRefuse`: in integer dtypes, some y.
template <bool kMayRefuse>
void elementwise(const Call& call) {
  std::array<int64_t, kMaxOperands> items;
  items.fill(plugin::kItemSize[call.compute()]);
  items[0] = item_of(call.output());
  const size_t operands = 1 + call.n_args();
  const std::string module = std::string("elementwise_") + plugin::dtype_name(call.compute());
  const bool refuses = kMayRefuse && (BP_DTYPE_BIT(call.compute()) & BP_MASK_INTEGER) != 0;
  DataError* error = nullptr;
  call.for_each_loop(call.compute(), [&](Loop& loop) {
    if (refuses && !error) error = call.expect_error();
    loop.error = error;
    const bool packs = cut_into_packs(loop, {items.data(), operands});
    call.launch(module, std::string(call.row().name) + (packs ? "_packs" : "_strided"), call.grid_for(loop.count),
                loop);
  });
}

void where(const Call& call) {
  const int64_t width = plugin::kItemSize[call.compute()];
  const int64_t items[] = {width, 1, width, width};
  call.for_each_loop(
      call.compute(),
      [&](Loop& loop) {
        const bool flat = lies_in_packs(loop, items, kWhereTogether);
        call.launch("moves", (flat ? "where_flat_" : "where_") + std::to_string(width),
                    call.grid_for(flat ? loop.count / kWhereTogether + 1 : loop.count), loop);
      },
      BP_BOOL);
}

struct Functions {
  bp_dtype_mask dtypes = 0;
  bool may_refuse = false;
};
using Ops = std::map<std::string_view, Functions>;

void add(Ops& ops, const char* op, unsigned faults, bp_dtype dtype) {
  Functions& functions = ops[op];
  functions.dtypes |= BP_DTYPE_BIT(dtype);
  functions.may_refuse = refused_integer(faults) != DataFault::kNone;
}

// The lists of a dtype, whose functions compute in `Name`.
#define BACKPLANE_ROW(op, function, number) add(ops, #op, scalar::op::kFaults, dtype);
#define BACKPLANE_LISTS(Name)                                                                      \
  void add_##Name(Ops& ops, bp_dtype dtype) {                                                      \
    BP_SCALAR_UNARY_##Name##_##Name(BACKPLANE_ROW) BP_SCALAR_BINARY_##Name##_##Name(BACKPLANE_ROW) \
        BP_SCALAR_UNARY_##Name##_bool(BACKPLANE_ROW) BP_SCALAR_BINARY_##Name##_bool(BACKPLANE_ROW) \
  }
BACKPLANE_LISTS(bool)
BACKPLANE_LISTS(int8)
BACKPLANE_LISTS(int16)
BACKPLANE_LISTS(int32)
BACKPLANE_LISTS(int64)
BACKPLANE_LISTS(uint8)
BACKPLANE_LISTS(uint16)
BACKPLANE_LISTS(uint32)
BACKPLANE_LISTS(uint64)
BACKPLANE_LISTS(float32)
BACKPLANE_LISTS(float64)
BACKPLANE_LISTS(complex64)
BACKPLANE_LISTS(complex128)

void add_other_results(Ops& ops) {
  bp_dtype dtype = BP_COMPLEX64;
  BP_SCALAR_UNARY_complex64_float32(BACKPLANE_ROW) dtype = BP_COMPLEX128;
  BP_SCALAR_UNARY_complex128_float64(BACKPLANE_ROW) dtype = BP_FLOAT32;
  BP_SCALAR_BINARY_float32_complex64(BACKPLANE_ROW) dtype = BP_FLOAT64;
  BP_SCALAR_BINARY_float64_complex128(BACKPLANE_ROW)
}

Ops all_ops() {
  Ops ops;
  add_bool(ops, BP_BOOL), add_int8(ops, BP_INT8), add_int16(ops, BP_INT16), add_int32(ops, BP_INT32);
  add_int64(ops, BP_INT64), add_uint8(ops, BP_UINT8), add_uint16(ops, BP_UINT16), add_uint32(ops, BP_UINT32);
  add_uint64(ops, BP_UINT64), add_float32(ops, BP_FLOAT32), add_float64(ops, BP_FLOAT64);
  add_float32(ops, BP_FLOAT16), add_float32(ops, BP_BFLOAT16);  // computed in float32
  add_complex64(ops, BP_COMPLEX64), add_complex128(ops, BP_COMPLEX128);
  add_other_results(ops);
  ops.erase("copy");  // moves bits, which a conversion to float32 and back would not
  return ops;
}

constexpr uint32_t kFlags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES | BP_KERNEL_INPLACE;

}  // namespace

void register_elementwise(const Registration& registration) {
  for (const auto& [op, functions] : all_ops()) {
    const bp_kernel_fn fn = functions.may_refuse ? kernel<elementwise<true>> : kernel<elementwise<false>>;
    registration.row(op.data(), fn, functions.dtypes, kFlags, __FILE__, __LINE__);
  }
#define BACKPLANE_SELECT(op, function, number) \
  registration.row(#op, kernel<where>, BP_MASK_ANY, kFlags, __FILE__, __LINE__);
  BP_SCALAR_TERNARY_bool_bool(BACKPLANE_SELECT)
#undef BACKPLANE_SELECT
}

}  // namespace backplane::cuda
