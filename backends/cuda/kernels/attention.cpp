// attention_with_lse of half floats on tensor cores, by device/attention.cuh: rows of features as they lie, where they
// lie side by side and aligned, and copies of others. What it does not serve is composed.
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kPiece = 8, kMostFeatures = 128;  // elements
constexpr double kLog2E = 1.4426950408889634;

// A tensor whose last `cores` axes are a matrix or a line of it. Strides in elements.
struct Stack {
  char* data;
  std::vector<int64_t> shape, strides;
  size_t cores;

  Stack(const bp_tensor& tensor, size_t made_cores)
      : data(data_of(tensor)),
        shape(shape_of(tensor)),
        strides(tensor.dl.strides, tensor.dl.strides + tensor.dl.ndim),
        cores(made_cores) {}

  int64_t size(size_t core) const { return shape[shape.size() - cores + core]; }
  int64_t stride(size_t core) const { return strides[shape.size() - cores + core]; }
  // Over the axes of `batch`.
  std::vector<int64_t> batch_strides(std::span<const int64_t> batch) const {
    std::vector<int64_t> made(batch.size(), 0);
    const size_t own = shape.size() - cores;
    for (size_t d = 0; d < own; ++d)
      if (shape[d] != 1) made[batch.size() - own + d] = strides[d];
    return made;
  }

  // As the kernel takes rows. It makes addresses of rows that are not there, too.
  bool is_ready() const {
    if (stride(1) != 1 || stride(0) % kPiece != 0 || reinterpret_cast<uintptr_t>(data) % 16 != 0) return false;
    for (size_t d = 0; d + cores < shape.size(); ++d)
      if (shape[d] != 1 && strides[d] % kPiece != 0) return false;
    return true;
  }
  // One of its shape in new memory, row behind row.
  Stack made_ready(const Call& call) const {
    Stack made = *this;
    int64_t count = 1;
    for (size_t d = shape.size(); d-- > 0; count *= shape[d]) made.strides[d] = count;
    made.data = call.aligned_scratch(static_cast<uint64_t>(count) * 2);
    return made;
  }
};

void move(const Call& call, const Stack& to, const Stack& from) {
  const auto bytes = [](std::vector<int64_t> strides) {
    for (int64_t& stride : strides) stride *= 2;
    return strides;
  };
  launch_copy(call, copy_operands(to.data, bytes(to.strides), from.data, bytes(from.strides), to.shape), 2);
}

Stack rows_of(const Call& call, size_t arg) {
  const Stack given(call.input(arg), 2);
  if (given.is_ready()) return given;
  const Stack made = given.made_ready(call);
  move(call, made, given);
  return made;
}

// The factor of scores, given or by the number of features.
double scale_of(const bp_value& scale, int64_t features) {
  return scale.tag == BP_TAG_ABSENT ? 1 / std::sqrt(static_cast<double>(features)) : plugin::as_double(scale);
}

// What the kernel reads, over the results' batch dims.
Attention inputs_of(const Call& call, std::span<const int64_t> batch, std::span<const int64_t> lse_strides) {
  const Stack query = rows_of(call, 0), key = rows_of(call, 1), value = rows_of(call, 2);
  Attention made{};
  made.query_and_key = dimensions(batch, key.batch_strides(batch), query.batch_strides(batch));
  made.value_and_lse = dimensions(batch, lse_strides, value.batch_strides(batch));
  made.query = query.data, made.key = key.data, made.value = value.data;
  made.query_row = query.stride(0), made.key_row = key.stride(0), made.value_row = value.stride(0);
  made.queries = static_cast<int32_t>(query.size(0)), made.keys = static_cast<int32_t>(key.size(0));
  made.features = static_cast<int32_t>(query.size(1)), made.value_features = static_cast<int32_t>(value.size(1));
  made.causal = plugin::as_bool(call.value(4));
  const double scale = scale_of(call.value(5), query.size(1));
  made.negative = scale < 0, made.factor = static_cast<float>(std::abs(scale) * kLog2E);
  return made;
}

void launch(const Call& call, const Attention& made) {
  const int64_t blocks = (int64_t{made.queries} + kQueryTile - 1) / kQueryTile * made.query_and_key.count;
  BP_CHECK(blocks <= std::numeric_limits<int32_t>::max(), NOT_IMPLEMENTED, call.op_name(), ": found ", blocks,
           " blocks of queries, expected at most 2147483647. Fix: split the query");
  const char* name = std::max(made.features, made.value_features) <= 64 ? "attention_64" : "attention_128";
  call.launch(std::string("attention_") + plugin::dtype_name(call.compute()), name,
              {static_cast<uint32_t>(blocks), 1, 1, 128}, made);
}

// (query, key, value, mask, *, causal, scale) -> (values, lse)
void attention(const Call& call) {
  const bool values_wanted = call.wants(0), lse_wanted = call.wants(1);
  const bp_tensor& like = call.output(values_wanted ? 0 : 1);
  if (count_of(like) == 0) return;
  const std::span<const int64_t> batch(like.dl.shape, static_cast<size_t>(like.dl.ndim - (values_wanted ? 2 : 1)));
  const std::vector<int64_t> none(batch.size(), 0);
  const auto lse = lse_wanted ? std::optional<Stack>(std::in_place, call.output(1), 1) : std::nullopt;
  Attention made = inputs_of(call, batch, lse ? lse->batch_strides(batch) : none);
  if (lse) made.lse = lse->data, made.lse_step = lse->stride(0);
  if (!values_wanted) {
    made.results = dimensions(batch, none, none);
    return launch(call, made);
  }
  const Stack out(call.output(), 2), to = out.is_ready() ? out : out.made_ready(call);
  made.values = to.data, made.values_row = to.stride(0);
  made.results = dimensions(batch, to.batch_strides(batch), none);
  launch(call, made);
  if (to.data != out.data) move(call, out, to);
}

// What is composed instead.
bp_status BP_CALL takes(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return plugin::guard(frame, [&] {
    const int capability = static_cast<const Row*>(frame->context)->backend->device(frame->ordinal).facts().capability;
    BP_CHECK(capability >= 80, NOT_IMPLEMENTED, "compute capability ", capability / 10, ".", capability % 10,
             "; the kernel needs 8.0");
    BP_CHECK(args[3].tag == BP_TAG_ABSENT, NOT_IMPLEMENTED, "there is a mask");
    for (size_t arg = 0; arg < 3; ++arg) {
      const DLTensor& tensor = args[arg].u.t->dl;
      const int64_t features = tensor.shape[tensor.ndim - 1], rows = tensor.shape[tensor.ndim - 2];
      BP_CHECK(features % kPiece == 0 && features > 0 && features <= kMostFeatures, NOT_IMPLEMENTED, "found ", features,
               " features; the kernel takes multiples of ", kPiece, " up to ", kMostFeatures);
      BP_CHECK(rows <= std::numeric_limits<int32_t>::max() / 2, NOT_IMPLEMENTED, "found ", rows, " rows");
    }
    const DLTensor& query = args[0].u.t->dl;
    const double factor = std::abs(scale_of(args[5], query.shape[query.ndim - 1])) * kLog2E;
    BP_CHECK(factor >= std::numeric_limits<float>::min() && factor <= std::numeric_limits<float>::max(),
             NOT_IMPLEMENTED, "the scale is zero or beyond the numbers of float32");
  });
}

}  // namespace

void register_attention(const Registration& registration) {
  registration.row("attention_with_lse", kernel<attention>, BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16),
                   uint32_t{BP_KERNEL_STRIDED} | BP_KERNEL_CAPTURABLE, __FILE__, __LINE__, takes);
}

}  // namespace backplane::cuda
