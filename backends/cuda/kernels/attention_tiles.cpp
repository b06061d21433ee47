// attention_with_lse and attention_grad by tiles of scores, by device/attention_tiles.cuh: with a mask or without, of
// any floating dtype and strides. Half floats go to tensor cores where they fit.
#include <limits>

#include "kernels/attention_operands.hpp"

namespace backplane::cuda {
namespace {

class Tiled {
 public:
  // `batch`: of the results.
  Tiled(const Call& call, std::span<const int64_t> batch)
      : call_(call), batch_(batch), on_cores_(fits_tensor_cores(call)) {
    made_.batches = 1;
    for (size_t d = batch.size(); d-- > 0;) {
      if (batch[d] == 1) continue;
      BP_CHECK(made_.rank < kMaxRank && batches() * batch[d] <= std::numeric_limits<int32_t>::max(), NOT_IMPLEMENTED,
               call.op_name(), ": found ", batch.size(), " batch dims of ", batches() * batch[d],
               " matrices, expected at most ", kMaxRank, " and 2147483647. Fix: reshape, or split the operands");
      dims_[made_.rank] = d;
      made_.sizes[made_.rank++] = divider(batch[d]);
      made_.batches = static_cast<uint32_t>(batches() * batch[d]);
    }
    check_inputs(call, batch);
    const Stack query(call.input(0), 2), key(call.input(1), 2), value(call.input(2), 2);
    BP_CHECK(std::max(query.size(0), key.size(0)) <= kMostRows, NOT_IMPLEMENTED, call.op_name(), ": found ",
             std::max(query.size(0), key.size(0)), " rows, expected at most ", kMostRows);
    made_.queries = static_cast<int32_t>(query.size(0)), made_.keys = static_cast<int32_t>(key.size(0));
    made_.features = static_cast<int32_t>(query.size(1)), made_.value_features = static_cast<int32_t>(value.size(1));
    set(kQuery, rows(0)), set(kKey, rows(1)), set(kValue, rows(2));
  }

  // Rows of features.
  void set(AttentionOperand operand, const Stack& stack) {
    AttentionTiles::Operand& to = made_.operands[operand];
    to.data = stack.data, to.row = stack.stride(0), to.column = stack.cores == 1 ? 0 : stack.stride(1);
    const std::vector<int64_t> steps = stack.batch_strides(batch_);
    for (int32_t d = 0; d < made_.rank; ++d) to.batch[d] = steps[dims_[d]];
  }
  // Rows of a cotangent, and a number of each query.
  void set_cotangent(size_t arg) {
    check_operand(call_, "cotangent", Stack(call_.input(arg), 2), batch_, {made_.queries, made_.value_features});
    set(kCotangent, rows(arg));
  }
  void set_number(AttentionOperand operand, const char* name, size_t arg) {
    const Stack stack(call_.input(arg), 1);
    check_operand(call_, name, stack, batch_, {made_.queries});
    set(operand, stack);
  }
  // Argument `arg` of the call as rows that the kernels take.
  Stack rows(size_t arg) const { return on_cores_ ? ready_rows(call_, arg) : Stack(call_.input(arg), 2); }
  // A result that the caller may not want.
  void set_result(AttentionOperand operand, size_t result, size_t cores) {
    if (call_.wants(result)) set(operand, Stack(call_.output(result), cores));
  }

  // The arguments mask, causal and scale, from `arg` on.
  void set_options(size_t arg) {
    if (call_.has(arg)) {
      Stack mask(call_.input(arg), 2);
      check_operand(call_, "mask", mask, batch_, {made_.queries, made_.keys}, true);
      for (size_t d = mask.shape.size() - 2; d < mask.shape.size(); ++d)
        if (mask.shape[d] == 1) mask.strides[d] = 0;
      set(kMask, mask);
      made_.mask_dtype = call_.input(arg).dtype;
    }
    made_.causal = plugin::as_bool(call_.value(arg + 1));
    made_.scale = scale_of(call_.value(arg + 2), made_.features);
  }

  // With the kernel's blocks over `rows`, whose results have up to `columns`.
  void launch(const char* kernel, int32_t rows, int32_t columns) const {
    const int64_t width = std::max(made_.features, made_.value_features) <= kNarrowTile ? kNarrowTile : kWideTile;
    const int64_t blocks = (rows + int64_t{kTileRows} - 1) / kTileRows * batches();
    const int64_t parts = std::max<int64_t>((columns + width - 1) / width, 1);
    if (blocks == 0) return;
    BP_CHECK(blocks <= std::numeric_limits<int32_t>::max() && parts <= kMostParts, NOT_IMPLEMENTED, call_.op_name(),
             ": found ", blocks, " blocks of rows of ", columns, " features, expected at most 2147483647 of ",
             kMostParts * width, ". Fix: split the operands");
    call_.launch(std::string(on_cores_ ? "attention_cores_" : "attention_lanes_") + std::to_string(width) + "_" +
                     plugin::dtype_name(call_.compute()),
                 kernel,
                 {static_cast<uint32_t>(blocks), static_cast<uint32_t>(parts), 1,
                  static_cast<uint32_t>(on_cores_ ? kCoreThreads : kLaneThreads)},
                 made_);
  }

  int32_t queries() const { return made_.queries; }
  int32_t keys() const { return made_.keys; }
  int32_t features() const { return made_.features; }
  int32_t value_features() const { return made_.value_features; }

 private:
  static constexpr int64_t kMostRows = std::numeric_limits<int32_t>::max() / 2, kMostParts = 65535;

  int64_t batches() const { return made_.batches; }

  const Call& call_;
  const std::span<const int64_t> batch_;
  const bool on_cores_;
  size_t dims_[kMaxRank] = {};  // those of the batch that are not 1, innermost first
  AttentionTiles made_{};
};

}  // namespace

// (query, key, value, mask, *, causal, scale) -> (values, lse)
void tiled_attention(const Call& call) {
  const bool values_wanted = call.wants(0);
  const bp_tensor& like = call.output(values_wanted ? 0 : 1);
  if (count_of(like) == 0 && !(values_wanted && call.wants(1))) return;
  Tiled tiled(call, {like.dl.shape, static_cast<size_t>(like.dl.ndim - (values_wanted ? 2 : 1))});
  tiled.set_options(3);
  tiled.set_result(kValues, 0, 2), tiled.set_result(kLse, 1, 1);
  tiled.launch("values", tiled.queries(), values_wanted ? tiled.value_features() : 0);
}

// (query, key, value, cotangent, lse, delta, mask, *, causal, scale) -> (query_grad, key_grad, value_grad)
void tiled_attention_grad(const Call& call) {
  const bp_tensor& cotangent = call.input(3);
  Tiled tiled(call, {cotangent.dl.shape, static_cast<size_t>(cotangent.dl.ndim - 2)});
  tiled.set_cotangent(3), tiled.set_number(kLse, "lse", 4), tiled.set_number(kDelta, "delta", 5);
  tiled.set_options(6);
  tiled.set_result(kQueryGrad, 0, 2), tiled.set_result(kKeyGrad, 1, 2), tiled.set_result(kValueGrad, 2, 2);
  if (call.wants(0)) tiled.launch("query_grad", tiled.queries(), tiled.features());
  if (call.wants(1) || call.wants(2))
    tiled.launch("key_value_grad", tiled.keys(), std::max(tiled.features(), tiled.value_features()));
}

}  // namespace backplane::cuda
