// Batch rules of views: the same view of every row, as one view of the batch.
#include <algorithm>

#include "batch/batch_rules.hpp"
#include "batch/batched_call.hpp"

namespace backplane::core {
namespace {

bool is_view(const OpRecord& record, const BatchSignature& s) {
  return s.tensors == 1 && !s.lists && record.results.size() == 1 &&
         (record.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
}
bool any_view(const OpRecord& record, const bp_shape_rule&, const BatchSignature& s) { return is_view(record, s); }
// The axes are arguments of the op, so that they can be shifted: without, the word means the first ones.
template <uint32_t kFirst, uint32_t kLast>
bool view_with_axes(const OpRecord& record, const bp_shape_rule& rule, const BatchSignature& s) {
  if (!is_view(record, s) || rule.n_args <= kLast) return false;
  for (uint32_t i = kFirst; i <= kLast; ++i)
    if (rule.args[i] == BP_NO_ARG || (record.args[rule.args[i]].flags & BP_ARG_OPTIONAL)) return false;
  return true;
}
// An absent list of axes has a meaning of its own.
bool view_with_list(const OpRecord& record, const bp_shape_rule& rule, const BatchSignature& s) {
  return is_view(record, s) && rule.n_args >= 2 && rule.args[1] != BP_NO_ARG;
}

int32_t param(const BatchedCall& c, uint32_t i) { return static_cast<int32_t>(c.record.shapes[0].args[i]); }
const DLTensor& row_of(const BatchedCall& c) { return c.row(param(c, 0)); }

void shifted(BatchedCall& c, const ShapeResult*) {
  shift_axes(c, row_of(c).ndim);
  c.run();
}

void as_it_is(BatchedCall& c, const ShapeResult*) { c.run(); }

// The result's shape per row, behind the batch.
void set_shape(BatchedCall& c, const ShapeResult& row) {
  const auto ndim = static_cast<size_t>(row.ndim) + 1;
  int64_t* shape = c.ints(ndim);
  shape[0] = c.size();
  std::copy_n(row.sizes, row.ndim, shape + 1);
  c.set_ints(param(c, 1), shape, ndim);
}

void reshape(BatchedCall& c, const ShapeResult* row) {
  set_shape(c, *row);
  c.run();
}

void expand(BatchedCall& c, const ShapeResult* row) {
  const int32_t x = param(c, 0);
  c.set_tensor(x, c.padded(c.inner(x), row->ndim));
  set_shape(c, *row);
  c.run();
}

void permute(BatchedCall& c, const ShapeResult*) {
  const int32_t arg = param(c, 1), rank = row_of(c).ndim;
  const bp_value given = c.args[arg];
  int64_t* axes = c.ints(static_cast<size_t>(rank) + 1);
  axes[0] = 0;
  for (int32_t d = 0; d < rank; ++d)  // absent: reversed
    axes[d + 1] = given.tag == BP_TAG_ABSENT ? rank - d : normalize_axis(c.record, given.u.ints[d], rank) + 1;
  c.set_ints(arg, axes, static_cast<size_t>(rank) + 1);
  c.run();
}

void squeeze(BatchedCall& c, const ShapeResult* row) {
  const int32_t arg = param(c, 1);
  if (c.args[arg].tag != BP_TAG_ABSENT) return shifted(c, row);
  const DLTensor& x = row_of(c);  // absent: every axis of size 1
  int64_t* axes = c.ints(static_cast<size_t>(x.ndim));
  size_t n = 0;
  for (int32_t d = 0; d < x.ndim; ++d)
    if (x.shape[d] == 1) axes[n++] = d + 1;
  c.set_ints(arg, axes, n);
  c.run();
}

// Its axes count those of the result.
void unsqueeze(BatchedCall& c, const ShapeResult* row) {
  shift_axes(c, row->ndim);
  c.run();
}

}  // namespace

const DerivedRule kViewRules[] = {
    {"view.diagonal", view_with_axes<2, 3>, shifted},
    {"view.expand", view_with_list, expand},
    {"view.imag", any_view, as_it_is},
    {"view.permute", view_with_list, permute},
    {"view.real", any_view, as_it_is},
    {"view.reshape", view_with_list, reshape},
    {"view.select", view_with_axes<1, 1>, shifted},
    {"view.slice", view_with_axes<1, 1>, shifted},
    {"view.squeeze", view_with_list, squeeze},
    {"view.unfold", view_with_axes<1, 1>, shifted},
    {"view.unsqueeze", view_with_axes<1, 1>, unsqueeze},
};
const size_t kViewRuleCount = std::size(kViewRules);

}  // namespace backplane::core
