// sum, prod, max, min, any, all and mean: which accumulator, which dimensions, and the result of no elements.
#include <cmath>
#include <cstdlib>

#include "kernels/families.hpp"
#include "kernels/reduction/reduce_plan.hpp"
#include "kernels/reduction/whole.hpp"
#include "loops/cast_row.hpp"
#include "loops/column_reduction.hpp"
#include "loops/row_reduction.hpp"
#include "loops/strided.hpp"
#include "loops/whole_reduction.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

bp_dtype accumulator_of(Reduction reduction, bp_dtype x, bp_dtype out) {
  const auto is = [](bp_dtype dtype, bp_dtype_mask mask) { return (BP_DTYPE_BIT(dtype) & mask) != 0; };
  switch (reduction) {
    case Reduction::kAny:
    case Reduction::kAll:
      return BP_BOOL;
    case Reduction::kMax:
    case Reduction::kMin:
      return is(x, BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16)) ? bp_dtype{BP_FLOAT32} : x;
    default:
      break;
  }
  const bp_dtype_mask wide = BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128) | BP_MASK_INTEGER | BP_MASK_BOOL;
  // Each factor of a product costs half a unit, in whatever order they are multiplied.
  const bool exact = reduction == Reduction::kProd;
  if (is(x, BP_MASK_COMPLEX) || is(out, BP_MASK_COMPLEX))
    return exact || is(x, wide) || is(out, BP_DTYPE_BIT(BP_COMPLEX128)) ? BP_COMPLEX128 : BP_COMPLEX64;
  if (is(x, BP_MASK_FLOATING) || is(out, BP_MASK_FLOATING))
    return exact || is(x, wide) || is(out, BP_DTYPE_BIT(BP_FLOAT64)) ? BP_FLOAT64 : BP_FLOAT32;
  return BP_INT64;
}

// The fastest dimension of x becomes the inner one.
void split_dims(ReducePlan& plan, const bp_loop& loop) {
  const int64_t* out = loop.strides;
  const int64_t* x = loop.strides + loop.rank;
  int32_t inner = -1;
  for (int32_t d = 0; d < loop.rank; ++d)
    if (inner < 0 || std::llabs(x[d]) <= std::llabs(x[inner])) inner = d;
  plan.inner_reduced = inner < 0 || out[inner] == 0;
  plan.inner_size = inner < 0 ? 1 : loop.sizes[inner];
  plan.inner_x = inner < 0 ? plan.item : x[inner];
  plan.inner_out = inner < 0 ? 0 : out[inner];
  for (int32_t d = 0; d < loop.rank; ++d)
    if (d != inner) (out[d] == 0 ? plan.reduced : plan.kept).add(loop.sizes[d], x[d], out[d]);
  plan.strips = plan.inner_reduced ? 1 : (plan.inner_size + plan.strip() - 1) / plan.strip();
}

// Over no elements: 0, 1, false, true, NaN for a mean.
void fill_identity(const bp_frame* frame, const ReduceOp& op, const bp_tensor* out) {
  BP_CHECK(!op.needs_elements, VALUE, frame->op->name, ": found no elements to choose from");
  const double identity[2] = {op.mean                                                               ? NAN
                              : op.reduction == Reduction::kProd || op.reduction == Reduction::kAll ? 1.0
                                                                                                    : 0.0,
                              0.0};
  for_each_strided_row(*out, [&](char* row, int64_t stride, int64_t n) {
    cast_row(BP_COMPLEX128, reinterpret_cast<const char*>(identity), 0, out->dtype, row, stride, n);
  });
}

void begin_plan(ReducePlan& plan, const bp_frame* frame, const ReduceOp& op, bp_dtype x, bp_dtype out) {
  plan.frame = frame;
  plan.op = &op;
  plan.x_dtype = x;
  plan.out_dtype = out;
  plan.accumulator = accumulator_of(op.reduction, x, out);
  plan.item = kItemSize[plan.accumulator];
  plan.reducer = &reducers().by[static_cast<int>(op.reduction)][plan.accumulator];
}

bp_status BP_CALL reduce(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor* x = plugin::as_tensor(args[0]);
    const bp_tensor* out = outs[0].u.t;
    const auto& op = *static_cast<const ReduceOp*>(frame->context);
    if (out->nbytes == 0) return;
    if (x->nbytes == 0) return fill_identity(frame, op, out);
    ReducePlan plan;  // not zeroed: its arrays are large beside a small reduction
    begin_plan(plan, frame, op, x->dtype, out->dtype);
    plan.x = data_of(x);
    plan.out = data_of(out);
    split_dims(plan, *frame->loop);
    plan.divisor = steps(plan);
    run_reduction(plan);
  });
}

void reduce_plain_rows(const void* context, const ReducedRows& rows) {
  ReducePlan plan;
  begin_plan(plan, rows.frame, *static_cast<const ReduceOp*>(context), rows.x_dtype, rows.out_dtype);
  plan.x = rows.x;
  plan.out = rows.out;
  plan.inner_reduced = true;
  plan.inner_size = plan.divisor = rows.n;
  plan.inner_x = kItemSize[rows.x_dtype];
  plan.inner_out = 0;
  plan.kept.add(rows.rows, rows.x_step, rows.out_step);
  plan.strips = 1;
  run_reduction(plan);
}

const ReduceOp& op_of(const void* context) { return *static_cast<const ReduceOp*>(context); }
const Reducer& reducer_of(const void* context, bp_dtype dtype) {
  return reducers().by[static_cast<int>(op_of(context).reduction)][dtype];
}

constexpr ColumnReduction::Loops kColumnLoops = {
    .takes = [](const void* context, bp_dtype x,
                bp_dtype out) { return x == out && accumulator_of(op_of(context).reduction, x, out) == x; },
    .leaf = [](const void* context, bp_dtype dtype, const char* x, int64_t step, int64_t rows, int64_t n,
               char* made) { reduce_leaf(reducer_of(context, dtype), x, step, rows, kItemSize[dtype], n, made); },
    .merge = [](const void* context, bp_dtype dtype, char* accumulators, const char* others,
                int64_t n) { reducer_of(context, dtype).merge(accumulators, others, n); },
    .store =
        [](const void* context, bp_dtype dtype, char* accumulators, int64_t rows, int64_t n, char* out, int64_t step) {
          ReducePlan plan;
          begin_plan(plan, nullptr, op_of(context), dtype, dtype);
          plan.divisor = rows;
          store_columns(plan, accumulators, n, out, step);
        }};

constexpr WholeReduction::Loops kWholeLoops = {
    .takes =
        [](const void* context, bp_dtype x, bp_dtype out) {
          return (BP_DTYPE_BIT(x) & (BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64))) != 0 &&
                 kColumnLoops.takes(context, x, out);
        },
    .leaf = [](const void* context, bp_dtype dtype, const char* x, int64_t n,
               char* made) { reducer_of(context, dtype).row(x, kItemSize[dtype], n, made); },
    .store =
        [](const void* context, bp_dtype dtype, char* leaves, int64_t n, char* out) {
          fold_leaves(reducer_of(context, dtype), kItemSize[dtype], leaves, n);
          ReducePlan plan;
          begin_plan(plan, nullptr, op_of(context), dtype, dtype);
          plan.divisor = n;
          store_columns(plan, leaves, 1, out, 0);
        }};

// Rows of the registry carry no pointers to constants; nothing changes them.
ReduceOp reduce_ops[] = {
    {Reduction::kSum}, {Reduction::kProd}, {Reduction::kMax, false, true}, {Reduction::kMin, false, true},
    {Reduction::kAny}, {Reduction::kAll},  {Reduction::kSum, true}};
constexpr bp_dtype_mask kOrdered = BP_MASK_ANY & ~BP_MASK_COMPLEX, kMeans = BP_MASK_FLOATING | BP_MASK_COMPLEX;

const RowReduction kRows[] = {{"bp::sum", BP_MASK_ANY, reduce_plain_rows, &reduce_ops[0]},
                              {"bp::prod", BP_MASK_ANY, reduce_plain_rows, &reduce_ops[1]},
                              {"bp::max", kOrdered, reduce_plain_rows, &reduce_ops[2]},
                              {"bp::min", kOrdered, reduce_plain_rows, &reduce_ops[3]},
                              {"bp::any", BP_MASK_ANY, reduce_plain_rows, &reduce_ops[4]},
                              {"bp::all", BP_MASK_ANY, reduce_plain_rows, &reduce_ops[5]},
                              {"bp::mean", kMeans, reduce_plain_rows, &reduce_ops[6]}};
const ColumnReduction kColumns[] = {{"bp::sum", &kColumnLoops, &reduce_ops[0]},
                                    {"bp::prod", &kColumnLoops, &reduce_ops[1]},
                                    {"bp::max", &kColumnLoops, &reduce_ops[2]},
                                    {"bp::min", &kColumnLoops, &reduce_ops[3]},
                                    {"bp::mean", &kColumnLoops, &reduce_ops[6]}};

const WholeReduction kWholes[] = {{"bp::sum", &kWholeLoops, &reduce_ops[0]},
                                  {"bp::prod", &kWholeLoops, &reduce_ops[1]},
                                  {"bp::max", &kWholeLoops, &reduce_ops[2]},
                                  {"bp::min", &kWholeLoops, &reduce_ops[3]},
                                  {"bp::mean", &kWholeLoops, &reduce_ops[6]}};

}  // namespace

const Family kReduce([](const Registrar& registrar) {
  const uint32_t flags = BP_KERNEL_STRIDED | BP_KERNEL_LOOP;
  reducers();
  registrar.kernel(BP_KERNEL("bp::sum", "cpu", reduce, .flags = flags, .context = &reduce_ops[0]));
  registrar.kernel(BP_KERNEL("bp::prod", "cpu", reduce, .flags = flags, .context = &reduce_ops[1]));
  registrar.kernel(BP_KERNEL("bp::max", "cpu", reduce, .dtypes = kOrdered, .flags = flags, .context = &reduce_ops[2]));
  registrar.kernel(BP_KERNEL("bp::min", "cpu", reduce, .dtypes = kOrdered, .flags = flags, .context = &reduce_ops[3]));
  registrar.kernel(BP_KERNEL("bp::any", "cpu", reduce, .flags = flags, .context = &reduce_ops[4]));
  registrar.kernel(BP_KERNEL("bp::all", "cpu", reduce, .flags = flags, .context = &reduce_ops[5]));
  registrar.kernel(BP_KERNEL("bp::mean", "cpu", reduce, .dtypes = kMeans, .flags = flags, .context = &reduce_ops[6]));
});

}  // namespace backplane::cpu
