// The batch formula of an entry, its refusal, and results of batches without rows.
#include "batch/batch_stated.hpp"

#include <algorithm>

#include "backplane/device.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/formulas/run_formula.hpp"
#include "record/dtype_rules.hpp"
#include "record/owned_value.hpp"

namespace backplane::core {
namespace {

bool has_rows(const bp_value& result, int64_t size) {
  return result.tag == BP_TAG_TENSOR && result.u.t->dl.ndim > 0 && result.u.t->dl.shape[0] == size;
}

}  // namespace

void run_stated(BatchedCall& c) {
  for (int32_t i = 0; i < c.call.n_args; ++i)
    if (c.batched[i] && !c.is_tensor(i)) c.batch_list(i);
  FormulaInputs inputs;
  inputs.args = c.args;
  inputs.batched = c.batched;
  bp_value results[kMaxResults] = {};
  run_formula(c.call.op, *c.call.op.batch.formula, inputs, results, c.call.mask);
  bool good = true;
  for (int32_t j = 0; j < c.call.n_outs; ++j) good = good && has_rows(results[j], c.size());
  if (!good) {
    for (int32_t j = 0; j < c.call.n_outs; ++j) release_owned(results[j], [](bp_tensor* t) { release(impl(t)); });
    detail::fail(BP_ERROR_SHAPE, c.record.name,
                 ": its batch formula gave a result whose axis 0 is not the batch of size ", c.size(), "; correct it (",
                 c.record.def.file ? c.record.def.file : "?", ":", c.call.op.batch.formula->line, ")");
  }
  std::copy_n(results, c.call.n_outs, c.call.outs);
}

void refuse_batch(const BatchedCall& c) {
  const OpRecord& op = c.record;
  const bp_formula* formula = c.call.op.batch.formula;
  if (c.call.op.batch.kind == BatchRule::Kind::kRefused)
    detail::fail(BP_ERROR_NOT_IMPLEMENTED, op.name, ": cannot be batched by ", c.level.transform, ": ",
                 formula && formula->text ? formula->text : "the shape of its result depends on values",
                 "; call it outside, or on a tensor that is the same for all rows");
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, op.name, ": has no batch rule, which ", c.level.transform,
               " needs; state one under batch in its entry (", op.def.file ? op.def.file : "?", ":", op.def.line,
               "), as a formula or as loop (of an op defined in Python: with register_batch)");
}

void no_rows(BatchedCall& c) {
  const bp_dtype compute = compute_dtype(c.record, c.call.args, c.call.n_args);
  bp_device device = default_device();
  each_tensor(c.call.args, c.call.n_args, [&](TensorImpl* t) { device = {t->backend, t->ordinal}; });
  for (int32_t j = 0; j < c.call.n_outs; ++j) {
    ShapeResult row;
    c.infer_row(j, row);
    int64_t* shape = c.ints(static_cast<size_t>(row.ndim) + 1);
    shape[0] = 0;
    std::copy_n(row.sizes, row.ndim, shape + 1);
    const bp_dtype dtype = result_dtype(c.record, c.call.args, c.call.n_args, j, compute);
    const Shape sizes(shape, static_cast<size_t>(row.ndim) + 1);
    c.call.outs[j] = owned_value(roles::full(sizes, value(int64_t{0}), dtype, device, c.call.mask));
  }
}

}  // namespace backplane::core
