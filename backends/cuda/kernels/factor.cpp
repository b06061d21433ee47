// cholesky, and what follows from an LU factorisation with partial pivots: solve, inv, det, slogdet. By cuSOLVER, else
// on the host.
#include "kernels/factoring.hpp"
#include "kernels/families.hpp"
#include "kernels/right_side.hpp"

namespace backplane::cuda {
namespace {

void cholesky(const Call& call) {
  Factoring x(call, call.input(0));
  x.stack().require_square(call);
  const int64_t n = x.stack().rows;
  if (count_of(call.output()) == 0) return;
  const bool upper = call.integer(1) != 0;
  char* a = x.elements(x.stack().count * n * n);
  x.launch("hermitian", x.matrices(a, data_of(call.input(0)), n, n));
  // By columns this is the transpose, whose upper factor is the lower one by rows.
  int32_t* infos = x.infos();
  for (int64_t i = 0; i < x.stack().count; ++i)
    x.solver().potrf(upper ? cusolver::kLower : cusolver::kUpper, n, a + i * n * n * x.item(), infos + i);
  x.report(infos, DataFault::kNotPositive);
  Matrices factor = x.matrices(data_of(call.output()), a, n, n);
  factor.upper = upper;
  x.launch("triangle", factor);
}

// The factors of the transposes: of x's matrices by columns.
struct Lu {
  char* factors;
  int64_t* pivots;
  int32_t* infos;

  explicit Lu(Factoring& x) : factors(x.by_rows()), pivots(x.pivots()), infos(x.infos()) {
    for (int64_t i = 0; i < x.stack().count && x.stack().rows > 0; ++i)
      x.solver().getrf(x.stack().rows, of(x, i), pivots_of(x, i), infos + i);
  }
  char* of(const Factoring& x, int64_t i) const { return factors + i * x.stack().size() * x.item(); }
  int64_t* pivots_of(const Factoring& x, int64_t i) const { return pivots + i * x.stack().rows; }
};

void inverse(const Call& call) {
  Factoring x(call, call.input(0));
  x.stack().require_square(call);
  if (count_of(call.output()) == 0) return;
  const Lu lu(x);
  x.report(lu.infos, DataFault::kSingular);
  const int64_t n = x.stack().rows;
  char* out = data_of(call.output());
  x.launch("identity", x.matrices(out, nullptr, n, n));
  int32_t* unused = x.infos();
  for (int64_t i = 0; i < x.stack().count; ++i)
    x.solver().getrs(cusolver::kAsStored, n, n, lu.of(x, i), lu.pivots_of(x, i), out + i * n * n * x.item(), unused);
}

// solve(Tensor x1, Tensor x2)
void solve(const Call& call) {
  Factoring x(call, call.input(0));
  const RightSide b(x);
  if (x.stack().rows == 0 || b.count() == 0) return;
  const Lu lu(x);
  x.report(lu.infos, DataFault::kSingular);
  if (b.columns() == 0) return;
  const int64_t n = x.stack().rows;
  char* y = b.load();
  int32_t* unused = x.infos();
  if (x.stack().count == 1) {  // the right sides lie side by side
    x.solver().getrs(cusolver::kTransposed, n, b.count() * b.columns(), lu.factors, lu.pivots, y, unused);
  } else {
    const std::vector<int64_t> matrices = b.matrices();
    for (int64_t i = 0; i < b.count(); ++i) {
      const int64_t matrix = matrices[static_cast<size_t>(i)];
      x.solver().getrs(cusolver::kTransposed, n, b.columns(), lu.of(x, matrix), lu.pivots_of(x, matrix),
                       y + i * n * b.columns() * x.item(), unused);
    }
  }
  b.store(y);
}

Determinants determinants(Factoring& x, const Lu& lu) {
  return {x.stack().count, x.stack().rows, lu.factors, lu.pivots, lu.infos, nullptr, nullptr};
}

void determinant(const Call& call) {
  Factoring x(call, call.input(0));
  x.stack().require_square(call);
  if (x.stack().count == 0) return;
  Determinants wanted = determinants(x, Lu(x));
  wanted.value = data_of(call.output());
  x.launch("determinant", call.grid_for(static_cast<uint64_t>(x.stack().count)), wanted);
}

// slogdet(Tensor x) -> (sign, logabsdet)
void sign_and_log(const Call& call) {
  Factoring x(call, call.input(0));
  x.stack().require_square(call);
  if (x.stack().count == 0) return;
  Determinants wanted = determinants(x, Lu(x));
  if (call.wants(0)) wanted.value = data_of(call.output(0));
  if (call.wants(1)) wanted.log = data_of(call.output(1));
  x.launch("sign_and_log", call.grid_for(static_cast<uint64_t>(x.stack().count)), wanted);
}

// solve_triangular(Tensor x1, Tensor x2, *, bool upper, bool unit_diagonal), by a kernel of our own.
void solve_triangular(const Call& call) {
  const Factoring x(call, call.input(0));
  const RightSide b(x);
  const int64_t n = x.stack().rows;
  if (n == 0 || b.columns() == 0 || b.count() == 0) return;
  Substitution system{};
  system.upper = call.integer(2) != 0, system.unit = call.integer(3) != 0;
  if (!system.unit) {
    Matrices diagonal = x.matrices(nullptr, data_of(call.input(0)), n, n);
    diagonal.info = x.infos();
    x.launch("find_zero_diagonal", diagonal);
    x.report(diagonal.info, DataFault::kSingular);
  }
  char* y = b.load();
  system.stack = b.stack();
  system.a = data_of(call.input(0)), system.y = y;
  system.n = n, system.columns = b.columns();
  constexpr int64_t kWarps = kThreads / kWarp;
  x.launch("substitute",
           Grid{static_cast<uint32_t>(std::min<int64_t>((b.columns() + kWarps - 1) / kWarps, INT32_MAX)),
                std::min(system.stack.count, 65535u), 1, kThreads},
           system);
  b.store(y);
}

}  // namespace

void register_factorizations(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_kernel_fn supports, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, kSolverTypes, 0, __FILE__, line, supports);
  };
  row("cholesky", kernel<cholesky>, takes_matrices);
  row("det", kernel<determinant>, takes_matrices);
  row("inv", kernel<inverse>, takes_matrices);
  row("slogdet", kernel<sign_and_log>, takes_matrices);
  row("solve", kernel<solve>, takes_matrices);
  row("solve_triangular", kernel<solve_triangular>, nullptr);
}

}  // namespace backplane::cuda
