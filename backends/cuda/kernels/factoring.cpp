// See factoring.hpp.
#include "kernels/factoring.hpp"

#include <climits>

namespace backplane::cuda {
namespace {

// Each matrix is some calls of the library, of several launches each. Where there are more of them than this, of fewer
// rows and columns than that, one core has factorised them sooner than the host has launched.
constexpr int64_t kMostSmall = 64, kSmall = 64;

}  // namespace

Stack::Stack(const Call& call, const bp_tensor& x) {
  const int32_t rank = x.dl.ndim;
  BP_CHECK(rank >= 2, SHAPE, call.op_name(), ": found ", rank, " axes, expected a matrix or a stack of matrices");
  shape.assign(x.dl.shape, x.dl.shape + rank - 2);
  for (const int64_t size : shape) count *= size;
  rows = x.dl.shape[rank - 2], columns = x.dl.shape[rank - 1];
  BP_CHECK(std::max(rows, columns) <= INT_MAX / 64, SHAPE, call.op_name(), ": found ", rows, " x ", columns,
           " matrices, which are larger than cuSOLVER takes");
}

void Stack::require_square(const Call& call) const {
  BP_CHECK(rows == columns, SHAPE, call.op_name(), ": found ", rows, " x ", columns, " matrices, expected square ones");
}

Factoring::Factoring(const Call& call, const bp_tensor& x)
    : call_(call), stack_(call, x), item_(item_of(x)), module_(std::string("linalg_") + plugin::dtype_name(x.dtype)) {}

Factorizing& Factoring::solver() {
  if (!solver_)
    solver_.emplace(*call_.libraries().factorizations(), call_.compute(), call_.stream(),
                    Workspaces{[&call = call_](size_t bytes) { return call.aligned_scratch(bytes); },
                               [&call = call_](size_t bytes) { return call.host_scratch(bytes); }});
  return *solver_;
}

int32_t* Factoring::infos() const {
  const uint64_t bytes = static_cast<uint64_t>(stack_.count) * sizeof(int32_t);
  char* made = call_.aligned_scratch(bytes);
  if (made) check(the_driver().cuMemsetD8Async(at(made, 0), 0, bytes, call_.stream()), "cuMemsetD8Async");
  return reinterpret_cast<int32_t*>(made);
}

int64_t* Factoring::pivots() const {
  return reinterpret_cast<int64_t*>(
      call_.aligned_scratch(static_cast<uint64_t>(stack_.count * stack_.rows) * sizeof(int64_t)));
}

char* Factoring::by_rows() const {
  const uint64_t bytes = static_cast<uint64_t>(stack_.count * stack_.size() * item_);
  char* made = call_.aligned_scratch(bytes);
  if (made)
    check(the_driver().cuMemcpyDtoDAsync_v2(at(made, 0), at(data_of(call_.input(0)), 0), bytes, call_.stream()),
          "cuMemcpyDtoDAsync");
  return made;
}

char* Factoring::by_columns(int64_t between) const {
  const int64_t m = stack_.rows, n = stack_.columns, whole = between > 0 ? between : n;
  char* made = elements(stack_.count * m * whole);
  launch_copy(call_,
              copy_operands(made, {m * whole * item_, item_, m * item_}, data_of(call_.input(0)),
                            {m * n * item_, n * item_, item_}, {stack_.count, m, n}),
              item_);
  return made;
}

void Factoring::store(const bp_tensor& out, char* by_columns, int64_t leading, int64_t matrix) const {
  const int64_t rows = out.dl.shape[out.dl.ndim - 2], columns = out.dl.shape[out.dl.ndim - 1];
  launch_copy(call_,
              copy_operands(data_of(out), {rows * columns * item_, columns * item_, item_}, by_columns,
                            {matrix * item_, item_, leading * item_}, {stack_.count, rows, columns}),
              item_);
}

Matrices Factoring::matrices(char* out, const char* x, int64_t rows, int64_t columns) const {
  Matrices made{};
  made.count = stack_.count, made.rows = rows, made.columns = columns;
  made.out = out, made.x = x;
  made.x_matrix = rows * columns, made.x_row = columns, made.x_column = 1;
  return made;
}

void Factoring::launch(const char* kernel, const Matrices& matrices) const {
  if (matrices.count * matrices.rows * matrices.columns == 0) return;
  Grid grid = call_.grid_for(static_cast<uint64_t>(matrices.rows * matrices.columns));
  grid.y = static_cast<uint32_t>(std::min<int64_t>(matrices.count, 65535));
  launch(kernel, grid, matrices);
}

void Factoring::report(const int32_t* infos, DataFault fault) const {
  call_.launch(module_, "report_matrix", Grid{1, 1, 1, kWarp}, infos, stack_.count, static_cast<int32_t>(fault),
               call_.expect_error(stack_.shape));
}

bp_status BP_CALL takes_matrices(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  return plugin::guard(frame, [&] {
    std::string reason;
    BP_CHECK(find_cusolver(&reason), NOT_IMPLEMENTED, "libcusolver.so.12 ", reason);
    const bp_tensor& x = *args[0].u.t;
    int64_t count = 1, side = 0;
    for (int32_t d = 0; d < x.dl.ndim; ++d) {
      const int64_t size = x.dl.shape[d];
      if (d < x.dl.ndim - 2)
        count *= size;
      else
        side = std::max(side, size);
    }
    BP_CHECK(count <= kMostSmall || side >= kSmall, NOT_IMPLEMENTED, "found ", count, " matrices of at most ", side,
             " rows and columns; cuSOLVER takes ", kMostSmall, " so small ones at most");
  });
}

}  // namespace backplane::cuda
