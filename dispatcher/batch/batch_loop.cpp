// Batching row by row: what an entry that says `batch: loop` gets.
#include "batch/batch_loop.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "backplane/op.hpp"
#include "backplane/placement.hpp"
#include "batch/batch_random.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/formulas/temporaries.hpp"
#include "call/warn_once.hpp"
#include "levels/kernel_below.hpp"
#include "record/mapped_value.hpp"

namespace backplane::core {
namespace {

thread_local constinit std::optional<bool> loop_of_thread;

// Elements of a row's result from which on the calls of a kernel cost less than the passes of a decomposition over all
// rows: 0.2 µs a row against a few ns an element.
constexpr int64_t kLargeRow = 4096;

// One row's arguments, as selections out of the batch.
class Row {
 public:
  Row(BatchedCall& c, int64_t index) : mask_(c.call.mask) {
    for (int32_t i = 0; i < c.call.n_args; ++i) {
      args[i] = c.args[i];
      if (c.batched[i]) args[i] = mapped(args[i], lists_, [&](bp_tensor* t) { return select(t, index); });
    }
  }
  bp_value args[kMaxArgs];

 private:
  bp_tensor* select(bp_tensor* t, int64_t index) { return selected_.keep(roles::select(impl(t), 0, index, mask_)); }
  uint64_t mask_;
  Temporaries selected_;
  TensorLists lists_;
};

bp_value joined(BatchedCall& c, const std::vector<Tensor>& rows) {
  std::vector<bp_tensor*> pieces;
  for (const Tensor& row : rows) {
    const auto ndim = static_cast<size_t>(row.ndim()) + 1;
    int64_t* shape = c.ints(ndim);
    shape[0] = 1;
    std::copy_n(row.get()->dl.shape, ndim - 1, shape + 1);
    pieces.push_back(c.reshape(impl(row), shape, ndim));
  }
  return owned_value(roles::concat(pieces, c.call.mask));
}

}  // namespace

void run_loop(BatchedCall& c) {
  BP_CHECK(batch_loop_allowed(), NOT_IMPLEMENTED, c.record.name, ": ", c.level.transform,
           " would loop over the rows, which allow_batch_loop(false) forbids. Fix: state a batch "
           "formula in its entry, or allow loops");
  // Who defined an op in this process asked for the loop.
  if (!c.record.def.tags || !std::string_view(c.record.def.tags).starts_with("python"))
    warn_once(c.call.op.batch_loop_reported, [&] {
      return std::string(c.record.name) + ": " + c.level.transform +
             " runs it once per row of the batch; a batch formula in its entry would be faster";
    });
  counters.batch_loops.fetch_add(1, std::memory_order_relaxed);
  run_rows(c);
}

bool rows_have_kernel(const BatchedCall& c) {
  if (c.size() == 0 || (c.call.op.flags & BP_OP_COMPOSITE) || !kernel_below(&c.level, c.call)) return false;
  ShapeResult row;
  c.infer_row(0, row);
  return checked_count(row.sizes, row.ndim) >= kLargeRow;
}

void run_rows(BatchedCall& c) {
  for (int32_t i = 0; i < c.call.n_args; ++i)
    if (c.batched[i] && !c.is_tensor(i)) c.batch_list(i);
  std::vector<std::vector<Tensor>> results(static_cast<size_t>(c.call.n_outs));
  for (int64_t index = 0; index < c.size(); ++index) {
    Row row(c, index);
    RowGenerator generator(c, index, row.args);
    bp_value outs[kMaxResults] = {};
    dispatch({c.call.op, row.args, c.call.n_args, outs, c.call.n_outs, c.call.mask});
    for (int32_t j = 0; j < c.call.n_outs; ++j) results[static_cast<size_t>(j)].push_back(Tensor::adopt(outs[j].u.t));
  }
  for (int32_t j = 0; j < c.call.n_outs; ++j) c.call.outs[j] = joined(c, results[static_cast<size_t>(j)]);
}

}  // namespace backplane::core

namespace backplane {
bool allow_batch_loop(bool allowed) noexcept { return core::counters.batch_loop_allowed.exchange(allowed); }
bool batch_loop_allowed() noexcept {
  return core::loop_of_thread.value_or(core::counters.batch_loop_allowed.load(std::memory_order_relaxed));
}
std::optional<bool> set_thread_batch_loop(std::optional<bool> allowed) noexcept {
  return std::exchange(core::loop_of_thread, allowed);
}
}  // namespace backplane
