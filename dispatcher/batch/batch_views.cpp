// Batch rules of views: the same view of every row, as one view of the batch.
#include "batch/batch_views.hpp"

#include <algorithm>

#include "batch/batch_rules.hpp"
#include "batch/batched_call.hpp"

namespace backplane::core {
namespace {

int32_t param(const BatchedCall& c, uint32_t i) { return static_cast<int32_t>(c.record.shapes[0].args[i]); }
const DLTensor& row_of(const BatchedCall& c) { return c.row(param(c, 0)); }

void shifted_view(BatchedCall& c, const ShapeResult*) {
  shift_axes(c, row_of(c).ndim);
  c.run();
}

// Whether each row allows the view was asked when its shape was inferred.
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
  if (c.args[arg].tag != BP_TAG_ABSENT) return shifted_view(c, row);
  const DLTensor& x = row_of(c);  // absent: every axis of size 1
  int64_t* axes = c.ints(static_cast<size_t>(x.ndim));
  size_t n = 0;
  for (int32_t d = 0; d < x.ndim; ++d)
    if (x.shape[d] == 1) axes[n++] = d + 1;
  c.set_ints(arg, axes, n);
  c.run();
}

// Its axes are axes of the result.
void unsqueeze(BatchedCall& c, const ShapeResult* row) {
  shift_axes(c, row->ndim);
  c.run();
}

}  // namespace

const DerivedRule kViewRules[] = {
    {"view.bitcast", as_it_is}, {"view.diagonal", shifted_view}, {"view.expand", expand},
    {"view.imag", as_it_is},    {"view.permute", permute},       {"view.real", as_it_is},
    {"view.reshape", reshape},  {"view.select", shifted_view},   {"view.slice", shifted_view},
    {"view.squeeze", squeeze},  {"view.unfold", shifted_view},   {"view.unsqueeze", unsqueeze},
};
const size_t kViewRuleCount = std::size(kViewRules);

}  // namespace backplane::core
