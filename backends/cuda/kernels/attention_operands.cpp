#include "kernels/attention_operands.hpp"

#include <cmath>

namespace backplane::cuda {
namespace {

std::string text_of(std::span<const int64_t> shape) {
  std::string text = "[";
  for (const int64_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

bool broadcasts_to(std::span<const int64_t> shape, std::span<const int64_t> to) {
  if (shape.size() > to.size()) return false;
  const std::span<const int64_t> last = to.last(shape.size());
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && shape[d] != last[d]) return false;
  return true;
}

}  // namespace

Stack::Stack(const bp_tensor& tensor, size_t made_cores)
    : data(data_of(tensor)),
      shape(shape_of(tensor)),
      strides(tensor.dl.strides, tensor.dl.strides + tensor.dl.ndim),
      cores(made_cores) {
  for (; shape.size() < cores; strides.insert(strides.begin(), 0)) shape.insert(shape.begin(), 1);
}

void check_operand(const Call& call, const char* name, const Stack& operand, std::span<const int64_t> batch,
                   std::vector<int64_t> sizes, bool is_mask) {
  const std::span<const int64_t> shape(operand.shape), own = shape.last(operand.cores);
  const bool fits =
      is_mask ? broadcasts_to(own, sizes) : std::equal(own.begin(), own.end(), sizes.begin(), sizes.end());
  sizes.insert(sizes.begin(), batch.begin(), batch.end());
  BP_CHECK(fits && broadcasts_to(shape.first(shape.size() - operand.cores), batch), SHAPE, call.op_name(), ": found '",
           name, "' of shape ", text_of(shape), ", expected ", text_of(sizes), ", or 1 for ",
           is_mask ? "any of them" : "batch dims");
}

void check_inputs(const Call& call, std::span<const int64_t> batch) {
  const Stack query(call.input(0), 2), key(call.input(1), 2), value(call.input(2), 2);
  check_operand(call, "query", query, batch, {query.size(0), query.size(1)});
  check_operand(call, "key", key, batch, {key.size(0), query.size(1)});
  check_operand(call, "value", value, batch, {key.size(0), value.size(1)});
}

std::vector<int64_t> Stack::batch_strides(std::span<const int64_t> batch) const {
  std::vector<int64_t> made(batch.size(), 0);
  const size_t own = shape.size() - cores;
  for (size_t d = 0; d < own; ++d)
    if (shape[d] != 1) made[batch.size() - own + d] = strides[d];
  return made;
}

bool Stack::is_ready() const {
  if (stride(1) != 1 || stride(0) % kPiece != 0 || reinterpret_cast<uintptr_t>(data) % 16 != 0) return false;
  for (size_t d = 0; d + cores < shape.size(); ++d)
    if (shape[d] != 1 && strides[d] % kPiece != 0) return false;
  return true;
}

Stack Stack::made_ready(const Call& call) const {
  Stack made = *this;
  int64_t count = 1;
  for (size_t d = shape.size(); d-- > 0; count *= shape[d]) made.strides[d] = count;
  made.data = call.aligned_scratch(static_cast<uint64_t>(count) * 2);
  return made;
}

void move_rows(const Call& call, const Stack& to, const Stack& from) {
  const auto bytes = [](std::vector<int64_t> strides) {
    for (int64_t& stride : strides) stride *= 2;
    return strides;
  };
  launch_copy(call, copy_operands(to.data, bytes(to.strides), from.data, bytes(from.strides), to.shape), 2);
}

Stack ready_rows(const Call& call, size_t arg) {
  const Stack given(call.input(arg), 2);
  if (given.is_ready()) return given;
  const Stack made = given.made_ready(call);
  move_rows(call, made, given);
  return made;
}

double scale_of(const bp_value& scale, int64_t features) {
  const auto count = static_cast<double>(std::max<int64_t>(features, 1));
  return scale.tag == BP_TAG_ABSENT ? 1 / std::sqrt(count) : plugin::as_double(scale);
}

bool fits_tensor_cores(const Call& call) {
  if ((BP_DTYPE_BIT(call.compute()) & (BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16))) == 0) return false;
  if (call.capability() < 80) return false;
  for (size_t arg = 0; arg < 3; ++arg) {
    const int64_t features = Stack(call.input(arg), 2).size(1);
    if (features % kPiece != 0 || features == 0 || features > kMostFeatures) return false;
  }
  return true;
}

}  // namespace backplane::cuda
