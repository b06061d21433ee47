// What a call would give, by its record's rules alone: the meta behaviour of every op.
#include "backplane/op.hpp"

#include "call/call_errors.hpp"
#include "call/dispatch.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"

namespace backplane {
namespace {

InferredResult infer_one(const core::OpEntry& op, const bp_value* args, int32_t n_args, int32_t index,
                         bp_dtype compute) {
  const core::OpRecord& record = *op.record;
  BP_CHECK(!(op.flags & BP_OP_DYNAMIC), NOT_IMPLEMENTED, record.name,
           ": no rule states the shape of its result, which its kernel decides; call it instead");
  core::ShapeResult shape;
  core::infer_shape(record, args, n_args, index, shape);
  bp_dtype dtype = core::result_dtype(record, args, n_args, index, compute);
  if (shape.is_view && shape.view_dtype != BP_DTYPE_NONE) dtype = shape.view_dtype;
  return {dtype, {shape.sizes, shape.sizes + shape.ndim}};
}

std::vector<InferredResult> infer_all(const core::OpEntry& entry, const bp_value* args, int32_t n_args) {
  const core::OpRecord& record = *entry.record;
  bp_value full[core::kMaxArgs];
  n_args = core::fill_defaults(record, args, n_args, full);
  args = full;
  const bp_dtype compute = core::compute_dtype(record, args, n_args);
  std::vector<InferredResult> results;
  for (size_t i = 0; i < record.results.size(); ++i)
    results.push_back(infer_one(entry, args, n_args, static_cast<int32_t>(i), compute));
  return results;
}

}  // namespace

std::vector<InferredResult> infer(OpHandle op, const bp_value* args, int32_t n_args) {
  core::CallGuard guard;
  const core::OpEntry& entry = core::checked_entry(op);
  try {
    return infer_all(entry, args, n_args);
  } catch (const Error& error) {
    if (error.code() == BP_ERROR_PYTHON) throw;
    const std::string said = core::in_terms_of_call(error.what(), entry, args, n_args);
    if (!said.empty()) throw Error(error.code(), said);
    if (core::names_op(error.what(), entry)) throw;
    throw Error(error.code(), std::string(entry.record->name) + ": " + error.what());
  }
}

}  // namespace backplane
