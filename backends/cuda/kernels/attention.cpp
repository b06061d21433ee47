// attention_with_lse of half floats without a mask, by device/attention.cuh: rows of features as they lie, where they
// lie side by side and aligned, and copies of others. All other attention goes by tiles.
#include <cmath>
#include <limits>
#include <optional>

#include "kernels/attention_operands.hpp"

namespace backplane::cuda {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// What the kernel reads, over the results' batch dims.
Attention inputs_of(const Call& call, std::span<const int64_t> batch, std::span<const int64_t> lse_strides) {
  const Stack query = ready_rows(call, 0), key = ready_rows(call, 1), value = ready_rows(call, 2);
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
void plain_attention(const Call& call) {
  const bool values_wanted = call.wants(0), lse_wanted = call.wants(1);
  const bp_tensor& like = call.output(values_wanted ? 0 : 1);
  if (count_of(like) == 0) return;
  const std::span<const int64_t> batch(like.dl.shape, static_cast<size_t>(like.dl.ndim - (values_wanted ? 2 : 1)));
  check_inputs(call, batch);
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
  if (to.data != out.data) move_rows(call, out, to);
}

// Whether the kernel without a mask takes the call.
bool is_plain(const Call& call) {
  if (call.has(3) || !fits_tensor_cores(call)) return false;
  const Stack query(call.input(0), 2);
  const double factor = std::abs(scale_of(call.value(5), query.size(1))) * kLog2E;
  return factor >= std::numeric_limits<float>::min() && factor <= std::numeric_limits<float>::max() &&
         std::max(query.size(0), Stack(call.input(1), 2).size(0)) <= std::numeric_limits<int32_t>::max() / 2;
}

void attention_with_lse(const Call& call) { is_plain(call) ? plain_attention(call) : tiled_attention(call); }

}  // namespace

void register_attention(const Registration& registration) {
  registration.row("attention_with_lse", kernel<attention_with_lse>, BP_MASK_FLOATING, BP_KERNEL_STRIDED, __FILE__,
                   __LINE__);
  registration.row("attention_grad", kernel<tiled_attention_grad>, BP_MASK_FLOATING, BP_KERNEL_STRIDED, __FILE__,
                   __LINE__);
}

}  // namespace backplane::cuda
