// attention_with_lse and its gradient in memory linear in the lengths, of operands with any strides: one shader, which
// runs once for each result of the gradient (shaders/attention.glsl). Operands of other shapes are
// composed, and so refused where the decomposition refuses it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

enum Function : uint8_t { kValues, kQueryGrad, kKeyGrad, kValueGrad };  // as in the shader
constexpr size_t kOperands = 9;                                         // likewise

constexpr uint32_t n(int64_t value) { return static_cast<uint32_t>(value); }

// A tensor whose last `cores` axes are a matrix, or a line of one. An axis that it lacks is of size 1; one of size 1
// has the stride 0.
struct Stack {
  Operand batch;  // the axes before
  Range range;
  int64_t rows = 1, columns = 1, step = 0, along = 0;

  Stack() = default;
  Stack(Operand whole, size_t cores) : batch(std::move(whole)), range(batch.range()) {
    if (cores == 2) take(columns, along);
    take(rows, step);
  }
  uint64_t at() const { return batch.data; }
  Stack transposed() const {
    Stack made = *this;
    std::swap(made.rows, made.columns);
    std::swap(made.step, made.along);
    return made;
  }

 private:
  void take(int64_t& size, int64_t& stride) {
    if (batch.shape.empty()) return;
    size = batch.shape.back();
    stride = size == 1 ? 0 : batch.strides.back();
    batch.shape.pop_back();
    batch.strides.pop_back();
  }
};

Stack input(const Call& call, size_t arg, size_t cores) {
  return call.has(arg) ? Stack(call.input(arg), cores) : Stack{};
}
Stack output(const Call& call, size_t result, size_t cores) {
  return call.wants(result) ? Stack(call.output(result), cores) : Stack{};
}

// As the kernel reads it: bools, or numbers of the dtype that is computed in. What repeats is copied once.
Stack readable_mask(const Call& call, size_t arg) {
  if (!call.has(arg)) return {};
  Operand mask = call.input(arg);
  for (size_t d = 0; d < mask.shape.size(); ++d)
    if (mask.strides[d] == 0) mask.shape[d] = std::min<int64_t>(mask.shape[d], 1);
  if (mask.dtype == BP_BOOL || mask.dtype == call.compute()) return {mask, 2};
  const Operand made = call.scratch(call.compute(), mask.shape);
  record_cast(call, made, mask);
  return {made, 2};
}

struct Attention {
  Stack query, key, value, mask;
  Sizes batch;
  bool causal;
  double scale;
};

// query, key and value are the first arguments, the mask, causal and scale those from `mask` on.
Attention attention_of(const Call& call, size_t mask, Sizes batch) {
  Attention made{input(call, 0, 2),
                 input(call, 1, 2),
                 input(call, 2, 2),
                 readable_mask(call, mask),
                 std::move(batch),
                 call.flag(mask + 1),
                 0};
  made.scale = call.has(mask + 2) ? plugin::as_double(call.value(mask + 2))
                                  : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(made.query.columns, 1)));
  return made;
}

// The operands and the result of one dispatch, with the shader's names. In the forward pass lse is a result.
struct Pass {
  Function function;
  Stack result, row, other, summed, second_row, second_other, lse, delta;
};

// Do two neighbouring features lie in one aligned word, in every row?
bool in_words(const Stack& stack) {
  const auto even = [](int64_t stride) { return stride % 2 == 0; };
  return stack.batch.dtype == BP_FLOAT32 && stack.along == 1 && stack.columns % 2 == 0 && stack.at() % 8 == 0 &&
         even(stack.step) && std::all_of(stack.batch.strides.begin(), stack.batch.strides.end(), even);
}

struct Blocks {
  int64_t rows, features;  // of a block
  uint8_t option;          // kOption of the shader
};
Blocks cut(const Device& device, const Pass& pass, const Stack& mask, int64_t rows, int64_t width) {
  const bool subgroups = device.uses_blocks();
  const int64_t lanes = subgroups ? device.subgroup_size() : 64, unit = subgroups ? lanes : 16;
  // What an invocation keeps grows with both, and with it the time in which a driver compiles it.
  const int most_down = !subgroups ? 0 : pass.row.batch.dtype == BP_FLOAT64 ? 1 : 2, most_across = subgroups ? 3 : 2;
  int down = 0, across = 0;
  while (down < most_down && (lanes << down) < rows) ++down;
  while (across < most_across && (unit << across) < width) ++across;
  const bool slopes = pass.second_row.at() != 0;
  const bool products = in_words(pass.row) && in_words(pass.other) &&
                        (!slopes || (in_words(pass.second_row) && in_words(pass.second_other)));
  const bool sums = across > 0 && in_words(pass.summed) && in_words(pass.result);
  const int pairs = subgroups ? (products ? 16 : 0) | (sums ? 32 : 0) : 0;
  const int masked = mask.at() == 0 ? 0 : mask.batch.dtype == BP_BOOL ? 64 : 128;
  return {lanes << down, unit << across, static_cast<uint8_t>(down | across << 2 | pairs | masked)};
}

// Addresses and strides of the operands, and behind them those over the batch.
uint64_t stage_operands(const Call& call, const Sizes& batch, const std::array<const Stack*, kOperands>& operands,
                        uint32_t& rank) {
  struct Lines {
    uint64_t at;
    int32_t step, along;
  };
  std::vector<std::byte> bytes(kOperands * sizeof(Lines));
  std::array<Sizes, kOperands> strides;
  for (size_t k = 0; k < kOperands; ++k) {
    const Stack& stack = *operands[k];
    const Lines lines{stack.at(), narrow(stack.step, call.op_name()), narrow(stack.along, call.op_name())};
    std::memcpy(bytes.data() + k * sizeof(Lines), &lines, sizeof(Lines));
    narrow(stack.rows * stack.step, call.op_name()), narrow(stack.columns * stack.along, call.op_name());
    strides[k] = broadcast_strides(stack.batch, batch);
  }
  Rows rows;
  rows.add(batch, {&strides[0], &strides[1], &strides[2], &strides[3], &strides[4], &strides[5], &strides[6],
                   &strides[7], &strides[8]});
  rank = rows.rank();
  const auto values = std::as_bytes(rows.values());
  bytes.insert(bytes.end(), values.begin(), values.end());
  return call.stage(bytes);
}

void record(const Call& call, const Attention& of, const Pass& pass) {
  const bool by_queries = pass.function == kValues || pass.function == kQueryGrad;
  const int64_t rows = by_queries ? of.query.rows : of.key.rows, others = by_queries ? of.key.rows : of.query.rows;
  const int64_t width = pass.result.at() == 0 ? 0 : pass.result.columns;
  int64_t matrices = 1;
  for (const int64_t size : of.batch) matrices *= size;
  if (rows * matrices == 0 || (width == 0 && (pass.function != kValues || pass.lse.at() == 0))) return;
  const Device& device = call.stream().device();
  const Stack mask = by_queries ? of.mask : of.mask.transposed();
  const Blocks blocks = cut(device, pass, mask, rows, width);
  const int64_t slices = std::max<int64_t>((width + blocks.features - 1) / blocks.features, 1);
  const int64_t parts = (rows + blocks.rows - 1) / blocks.rows * slices * matrices;
  const auto bits = std::bit_cast<uint64_t>(of.scale);
  const bool doubles = call.compute() == BP_FLOAT64;
  uint32_t rank = 0;
  Push push = call.push();
  push.dims = stage_operands(call, of.batch,
                             {&pass.result, &pass.row, &pass.other, &pass.summed, &pass.second_row, &pass.second_other,
                              &mask, &pass.lse, &pass.delta},
                             rank);
  push.n = {n(rows),
            n(others),
            n(of.query.columns),
            n(of.value.columns),
            n(width),
            n(matrices),
            n(slices),
            rank,
            of.causal ? 1u : 0u,
            doubles ? static_cast<uint32_t>(bits) : std::bit_cast<uint32_t>(static_cast<float>(of.scale)),
            static_cast<uint32_t>(bits >> 32)};
  const auto format = static_cast<uint8_t>(call.compute());
  const Module module = device.uses_blocks() ? Module::attention_blocks_float32 : Module::attention_float32;
  const Shader shader{module_of(module, class_of(call.compute())), {pass.function, format, format, blocks.option}};
  const Range lse = pass.lse.range;
  const bool forward = pass.function == kValues;
  call.dispatch(shader, push, n(groups_of(device, parts)), {pass.result.range, forward ? lse : Range{}},
                {of.query.range, of.key.range, of.value.range, mask.range, pass.second_row.range,
                 pass.second_other.range, pass.summed.range, forward ? Range{} : lse, pass.delta.range});
}

// (query, key, value, mask?, *, causal, scale) -> (values, lse)
void attention(const Call& call) {
  const Stack values = output(call, 0, 2), lse = output(call, 1, 1);
  const Attention of = attention_of(call, 3, call.wants(0) ? values.batch.shape : lse.batch.shape);
  record(call, of,
         {.function = kValues,
          .result = values,
          .row = of.query,
          .other = of.key,
          .summed = of.value,
          .second_row = {},
          .second_other = {},
          .lse = lse,
          .delta = {}});
}

// (query, key, value, cotangent, lse, delta, mask?, *, causal, scale) -> (query_grad, key_grad, value_grad)
void attention_grad(const Call& call) {
  const Stack g = input(call, 3, 2), lse = input(call, 4, 1), delta = input(call, 5, 1);
  const Attention of = attention_of(call, 6, g.batch.shape);
  record(call, of, {kQueryGrad, output(call, 0, 2), of.query, of.key, of.key, g, of.value, lse, delta});
  record(call, of, {kKeyGrad, output(call, 1, 2), of.key, of.query, of.query, of.value, g, lse, delta});
  record(call, of, {kValueGrad, output(call, 2, 2), of.key, of.query, g, {}, {}, lse, {}});
}

// Of a value's last `cores` axes, as Stack takes them.
struct Given {
  const DLTensor* tensor;
  int32_t cores;
  Given(const bp_value& value, int32_t made_cores)
      : tensor(value.tag == BP_TAG_TENSOR ? &value.u.t->dl : nullptr), cores(made_cores) {}
  int64_t size(int32_t from_end) const { return tensor->ndim >= from_end ? tensor->shape[tensor->ndim - from_end] : 1; }
  bool is_matrix() const { return tensor != nullptr && tensor->ndim >= 2; }
  // Do its axes before the last ones broadcast to those of `to`?
  bool broadcasts(const Given& to) const {
    const int32_t own = tensor->ndim - cores, all = to.tensor->ndim - to.cores;
    bool fits = own <= all;
    for (int32_t d = 0; fits && d < own; ++d)
      fits = tensor->shape[d] == 1 || tensor->shape[d] == to.tensor->shape[all - own + d];
    return fits;
  }
};

bool are_of_one_attention(const Given& query, const Given& key, const Given& value, const bp_value& given_mask) {
  if (!query.is_matrix() || !key.is_matrix() || !value.is_matrix()) return false;
  const auto is = [](int64_t size, int64_t wanted) { return size == 1 || size == wanted; };
  const Given mask(given_mask, 2);
  return query.size(1) == key.size(1) && key.size(2) == value.size(2) &&
         (mask.tensor == nullptr || (is(mask.size(1), key.size(2)) && is(mask.size(2), query.size(2))));
}

bp_status answer(const bp_frame* frame, bool shapes, const bp_value& mask) {
  const bool converts = mask.tag == BP_TAG_TENSOR && mask.u.t->dtype == BP_FLOAT64;
  const auto ordinal = frame->ordinal;
  const char* reason =
      !shapes ? "takes operands of the shapes of one attention"
      : converts && (Device::lacks(static_cast<Backend*>(frame->context)->physical(ordinal)) & BP_DTYPE_BIT(BP_FLOAT64))
          ? "takes a mask of float64 where the device computes in it"
          : nullptr;
  if (reason == nullptr) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, reason);
  return BP_ERROR_NOT_IMPLEMENTED;
}

bp_status BP_CALL takes(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return answer(frame, are_of_one_attention({args[0], 2}, {args[1], 2}, {args[2], 2}, args[3]), args[3]);
}

bp_status BP_CALL takes_grad(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const Given query(args[0], 2), key(args[1], 2), value(args[2], 2), g(args[3], 2), lse(args[4], 1), delta(args[5], 1);
  bool fits = are_of_one_attention(query, key, value, args[6]) && g.is_matrix() && lse.tensor && delta.tensor &&
              g.size(2) == query.size(2) && g.size(1) == value.size(1) && lse.size(1) == query.size(2) &&
              delta.size(1) == query.size(2);
  for (const Given* operand : {&query, &key, &value, &lse, &delta}) fits = fits && operand->broadcasts(g);
  if (const Given mask(args[6], 2); fits && mask.tensor) fits = mask.broadcasts(g);
  return answer(frame, fits, args[6]);
}

constexpr Row kRows[] = {
    {"bp::attention_with_lse", kernel<attention>, BP_MASK_FLOATING, BP_KERNEL_STRIDED, takes},
    {"bp::attention_grad", kernel<attention_grad>, BP_MASK_FLOATING, BP_KERNEL_STRIDED, takes_grad},
};

}  // namespace

void register_attention(const plugin::Registrar& registrar, Backend& backend) {
  register_rows(registrar, kRows, __FILE__, &backend);
}

}  // namespace backplane::vulkan
