// Every op of the registry that takes one or two elements and gives one, over the core's loop descriptor: any strides,
// broadcasting included. What each does to an element codegen has written into the lists that are walked here and in
// shaders/elementwise.comp; an op costs no line.
#include <map>

#include "backplane/scalar.hpp"
#include "kernels/kernels.hpp"
#include "kernels/refused.hpp"

namespace backplane::vulkan {
namespace {

// The lists of a dtype, as the shader numbers them.
enum List : uint8_t { kUnarySame, kBinarySame, kUnaryBool, kBinaryBool, kUnaryReal, kBinaryComplex };

struct Elementwise {
  bp_dtype_mask dtypes = 0;
  bool in_place = true;
  std::array<Shader, BP_DTYPE_COUNT> shaders{};
};
using Table = std::map<std::string, Elementwise>;

// One list of the registry's, for the dtypes that are computed by it.
struct Functions {
  Module module;
  List list;
  std::vector<bp_dtype> dtypes;
};

void add(Table& table, const char* op, unsigned faults, const Functions& functions, uint8_t number) {
  Elementwise& row = table[std::string("bp::") + op];
  const bool same = functions.list == kUnarySame || functions.list == kBinarySame;
  row.in_place = row.in_place && same;
  for (const bp_dtype dtype : functions.dtypes) {
    const auto option = static_cast<uint8_t>(functions.list | static_cast<uint8_t>(refused(faults, dtype)) << 3);
    row.dtypes |= BP_DTYPE_BIT(dtype);
    row.shaders[dtype] = {functions.module, {number, static_cast<uint8_t>(dtype), 0, option}};
  }
}

#define BACKPLANE_ROW(op, function, number) add(table, #op, scalar::op::kFaults, functions, number);
#define BACKPLANE_LIST(list, name, rows, ...)                                   \
  {                                                                             \
    static_assert(rows##_COUNT <= 256, "8 bits hold a function's number");      \
    const Functions functions{Module::elementwise_##name, list, {__VA_ARGS__}}; \
    rows(BACKPLANE_ROW)                                                         \
  }
#define BACKPLANE_SAME(name, ...)                                                \
  BACKPLANE_LIST(kUnarySame, name, BP_SCALAR_UNARY_##name##_##name, __VA_ARGS__) \
  BACKPLANE_LIST(kBinarySame, name, BP_SCALAR_BINARY_##name##_##name, __VA_ARGS__)
#define BACKPLANE_NUMBERS(name, ...)                                           \
  BACKPLANE_SAME(name, __VA_ARGS__)                                            \
  BACKPLANE_LIST(kUnaryBool, name, BP_SCALAR_UNARY_##name##_bool, __VA_ARGS__) \
  BACKPLANE_LIST(kBinaryBool, name, BP_SCALAR_BINARY_##name##_bool, __VA_ARGS__)

Table make_table() {
  Table table;
  BACKPLANE_SAME(bool, BP_BOOL);
  BACKPLANE_NUMBERS(int8, BP_INT8);
  BACKPLANE_NUMBERS(int16, BP_INT16);
  BACKPLANE_NUMBERS(int32, BP_INT32);
  BACKPLANE_NUMBERS(int64, BP_INT64);
  BACKPLANE_NUMBERS(uint8, BP_UINT8);
  BACKPLANE_NUMBERS(uint16, BP_UINT16);
  BACKPLANE_NUMBERS(uint32, BP_UINT32);
  BACKPLANE_NUMBERS(uint64, BP_UINT64);
  BACKPLANE_NUMBERS(float32, BP_FLOAT16, BP_BFLOAT16, BP_FLOAT32);
  BACKPLANE_NUMBERS(float64, BP_FLOAT64);
  BACKPLANE_NUMBERS(complex64, BP_COMPLEX64);
  BACKPLANE_NUMBERS(complex128, BP_COMPLEX128);
  BACKPLANE_LIST(kBinaryComplex, float32, BP_SCALAR_BINARY_float32_complex64, BP_FLOAT32);
  BACKPLANE_LIST(kBinaryComplex, float64, BP_SCALAR_BINARY_float64_complex128, BP_FLOAT64);
  BACKPLANE_LIST(kUnaryReal, complex64, BP_SCALAR_UNARY_complex64_float32, BP_COMPLEX64);
  BACKPLANE_LIST(kUnaryReal, complex128, BP_SCALAR_UNARY_complex128_float64, BP_COMPLEX128);
  return table;
}

// The operands of an elementwise call, outputs first, and the loop over them.
struct Loop {
  Push push;
  std::array<Range, 4> ranges;
  size_t operands = 0;
  uint8_t rank = 0;  // as in shaders/loop.glsl
};

void add_operand(Loop& loop, const Call& call, const bp_value& value, bp_dtype number_dtype) {
  const size_t k = loop.operands++;
  if (value.tag == BP_TAG_TENSOR) {
    const Operand operand = call.operand(*value.u.t);
    loop.push.at[k] = operand.data;
    loop.ranges[k] = operand.range();
  } else {
    loop.push.at[k] = call.stage_number(value, number_dtype);
    loop.push.n[2] |= 1u << k;
  }
}

// As shaders/loop.glsl reads them: in the push constants where they have room for them.
void set_rows(Loop& loop, const Call& call, const bp_loop& source, std::span<const int64_t> items) {
  constexpr size_t kPushed = 3, kRowsInMemory = 7;
  std::array<int32_t, 64 * (Rows::kHead + 4)> rows;
  const size_t width = loop.operands + Rows::kHead;
  const auto dims = static_cast<size_t>(source.rank);
  size_t rank = 0;
  for (size_t d = dims; d-- > 0;) {
    if (source.sizes[d] == 1) continue;
    int32_t* row = rows.data() + rank++ * width;
    row[0] = narrow(source.sizes[d], call.op_name());
    set_divisor(row);
    for (size_t k = 0; k < loop.operands; ++k) {
      const int64_t stride = source.strides[k * dims + d] / items[k];
      narrow(stride * (source.sizes[d] - 1), call.op_name());
      row[Rows::kHead + k] = static_cast<int32_t>(stride);
    }
  }
  if (rank == 0) return;
  loop.push.n[1] = static_cast<uint32_t>(rank);
  const size_t words = rank * width - Rows::kHead;
  if (rank > 3 || kPushed + words > loop.push.n.size()) {
    loop.rank = kRowsInMemory;
    loop.push.dims = call.stage(std::as_bytes(std::span(rows.data(), rank * width)));
    return;
  }
  loop.rank = static_cast<uint8_t>(rank);
  const size_t outermost = (rank - 1) * width;
  for (size_t i = 0; i < words; ++i)
    loop.push.n[kPushed + i] = static_cast<uint32_t>(rows[i + (i < outermost ? 0 : Rows::kHead)]);
}

// `first`: the dtype of a number in the first argument. False: there is nothing to do.
bool make_loop(Loop& loop, const Call& call, size_t inputs, bp_dtype first) {
  const bp_tensor& out = *call.outs()[0].u.t;
  if (out.nbytes == 0) return false;
  loop.push = call.push();
  std::array<int64_t, 4> items{plugin::kItemSize[out.dtype]};
  add_operand(loop, call, call.outs()[0], out.dtype);
  for (size_t i = 0; i < inputs; ++i) {
    const bp_value& value = call.value(i);
    const bp_dtype dtype = i == 0 ? first : call.compute();
    items[i + 1] = plugin::kItemSize[value.tag == BP_TAG_TENSOR ? value.u.t->dtype : dtype];
    add_operand(loop, call, value, dtype);
  }
  loop.push.n[0] =
      static_cast<uint32_t>(call.loop() ? call.loop()->count : static_cast<int64_t>(out.nbytes) / items[0]);
  if (call.loop() && call.loop()->rank > 0) set_rows(loop, call, *call.loop(), items);
  return true;
}

// Where a flat loop may go by two neighbours at a time, it does (kPairs in shaders/loop.glsl). `sizes`: bytes of an
// element of each operand. What others than software drivers gain by it is not known.
void pair_up(Loop& loop, const Call& call, std::initializer_list<uint32_t> sizes) {
  constexpr uint8_t kPairs = 4;
  uint32_t& count = loop.push.n[0];
  if (!call.stream().device().is_software() || loop.push.n[1] > 0 || count % 2 != 0) return;
  size_t k = 0;
  for (const uint32_t size : sizes) {
    const bool single = (loop.push.n[2] >> k & 1) != 0;
    if (size > 4 || (!single && loop.push.at[k] % (2 * size) != 0)) return;
    ++k;
  }
  loop.rank = kPairs;
  count /= 2;
}

void dispatch(const Call& call, const Loop& loop, Shader shader) {
  shader.constants[3] |= static_cast<uint8_t>(loop.rank << 5);
  call.stream().dispatch(shader, loop.push, groups_for(loop.push.n[0]), {loop.ranges.data(), 1},
                         {loop.ranges.data() + 1, loop.operands - 1});
}

void elementwise(const Call& call) {
  Shader shader = call.registered<Elementwise>().shaders[call.compute()];
  Loop loop;
  const size_t inputs = shader.constants[3] & 1 ? 2 : 1;  // lists of odd numbers are binary
  if (!make_loop(loop, call, inputs, call.compute())) return;
  const bp_dtype out = call.outs()[0].u.t->dtype;
  shader.constants[2] = static_cast<uint8_t>(out);
  const uint32_t each = plugin::kItemSize[call.compute()];
  const bool refuses = (shader.constants[3] >> 3 & 3) != 0;
  if (!refuses) pair_up(loop, call, {plugin::kItemSize[out], each, inputs == 2 ? each : 1u});
  dispatch(call, loop, shader);
}

void where(const Call& call) {
  Loop loop;
  if (!make_loop(loop, call, 3, BP_BOOL)) return;
  const uint32_t each = plugin::kItemSize[call.compute()];
  pair_up(loop, call, {each, 1, each, each});
  dispatch(call, loop, {Module::where, {0, static_cast<uint8_t>(call.compute()), 0, 0}});
}

void copy(const Call& call) {
  Loop loop;
  if (!make_loop(loop, call, 1, call.compute())) return;
  const uint64_t size = call.outs()[0].u.t->nbytes;
  if (loop.push.n[1] > 0) return dispatch(call, loop, {Module::move, {0, static_cast<uint8_t>(call.compute()), 0, 0}});
  const Device& device = call.stream().device();
  call.stream().copy(device.place(loop.push.at[0], size), device.place(loop.push.at[1], size), size);
}

void cast(const Call& call) {
  Loop loop;
  if (!make_loop(loop, call, 1, call.compute())) return;
  const bp_dtype in = call.compute(), out = call.outs()[0].u.t->dtype;
  const bp_dtype_mask wide = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128);
  const bool doubles = (wide & (BP_DTYPE_BIT(in) | BP_DTYPE_BIT(out))) != 0;
  pair_up(loop, call, {plugin::kItemSize[out], plugin::kItemSize[in]});
  dispatch(
      call, loop,
      {doubles ? Module::cast_float64 : Module::cast, {0, static_cast<uint8_t>(in), static_cast<uint8_t>(out), 0}});
}

constexpr uint32_t kLoopFlags = BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES;
constexpr Row kRows[] = {
    {"bp::copy", kernel<copy>, BP_MASK_ANY, BP_KERNEL_LOOP},
    {"bp::cast", kernel<cast>, BP_MASK_ANY, kLoopFlags},
};

}  // namespace

void register_elementwise(const plugin::Registrar& registrar, Backend& backend) {
  register_rows(registrar, kRows, __FILE__);
  const auto table = std::make_shared<Table>(make_table());
  backend.keep(table);
  table->erase("bp::copy");  // by its bits, above
  for (auto& [op, row] : *table)
    registrar.kernel(BP_KERNEL(op.c_str(), "vulkan", kernel<elementwise>, .dtypes = row.dtypes,
                               .flags = kLoopFlags | (row.in_place ? uint32_t{BP_KERNEL_INPLACE} : 0u), .context = &row,
                               .max_elements = kMaxElements));
#define BACKPLANE_SELECT(op, function, number)                                                                       \
  registrar.kernel(BP_KERNEL("bp::" #op, "vulkan", kernel<where>, .flags = kLoopFlags | uint32_t{BP_KERNEL_INPLACE}, \
                             .max_elements = kMaxElements));
  BP_SCALAR_TERNARY_bool_bool(BACKPLANE_SELECT)  // every dtype is selected by its bits
#undef BACKPLANE_SELECT
}

}  // namespace backplane::vulkan
