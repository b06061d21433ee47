// qr, singular values, and eigenvalues of Hermitian matrices, by cuSOLVER, else on the host.
#include "kernels/factoring.hpp"
#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

void set_identity(const Factoring& x, size_t result) {
  if (!x.call().wants(result)) return;
  const bp_tensor& out = x.call().output(result);
  const int64_t n = out.dl.shape[out.dl.ndim - 1];
  x.launch("identity", x.matrices(data_of(out), nullptr, n, n));
}

// qr_reduced(Tensor x) -> (Q, R), and qr_complete
template <bool Complete>
void qr(const Call& call) {
  Factoring x(call, call.input(0));
  const int64_t m = x.stack().rows, n = x.stack().columns, k = std::min(m, n), q = Complete ? m : k;
  if (k == 0 && Complete) return set_identity(x, 0);
  if (k == 0 || x.stack().count == 0) return;
  // Q has as many columns as x or more, for which there is place behind them.
  const int64_t size = m * std::max(n, q);
  char *a = x.by_columns(std::max(n, q)), *tau = x.elements(x.stack().count * k);
  const auto of = [&](char* all, int64_t i, int64_t elements) { return all + i * elements * x.item(); };
  int32_t* unused = x.infos();
  for (int64_t i = 0; i < x.stack().count; ++i) x.solver().geqrf(m, n, of(a, i, size), of(tau, i, k), unused);
  if (call.wants(1)) {
    Matrices r = x.matrices(data_of(call.output(1)), a, q, n);
    r.upper = 1, r.x_matrix = size, r.x_row = 1, r.x_column = m;
    x.launch("triangle", r);
  }
  if (!call.wants(0)) return;
  for (int64_t i = 0; i < x.stack().count; ++i) x.solver().ungqr(m, q, k, of(a, i, size), of(tau, i, k), unused);
  x.store(call.output(0), a, m, size);
}

// Finite matrices: of others the data is wrong, and the library, which may never end with them, sees zeros.
void require_finite(const Factoring& x, char* a) {
  Matrices all = x.matrices(a, a, x.stack().rows, x.stack().columns);
  all.info = x.infos();
  x.launch("find_infinite", all);
  x.report(all.info, DataFault::kNotFinite);
  x.launch("blank", all);
}

// Where the library writes a result: the tensor itself, or memory of its own where nobody wants it.
char* place_of(const Factoring& x, size_t result, int64_t elements, int64_t item) {
  return x.call().wants(result) ? data_of(x.call().output(result))
                                : x.call().aligned_scratch(static_cast<uint64_t>(elements * item));
}

int64_t real_item(const Factoring& x) {
  return x.call().compute() == BP_FLOAT32 || x.call().compute() == BP_COMPLEX64 ? 4 : 8;
}

enum class Vectors { kNone, kReduced, kFull };

// svd_reduced(Tensor x) -> (U, S, Vh), svd_full(Tensor x) -> (U, S, Vh), and svdvals(Tensor x) -> S
//
// The library takes matrices of as many rows as columns or more. A wide one by rows is a tall one by columns, its
// transpose V* S U^T, whose results by columns are Vh and U by rows.
template <Vectors kind>
void svd(const Call& call) {
  constexpr bool kValues = kind == Vectors::kNone;
  Factoring x(call, call.input(0));
  const int64_t m = x.stack().rows, n = x.stack().columns, k = std::min(m, n), count = x.stack().count;
  if (k == 0 && kind == Vectors::kFull) set_identity(x, 0), set_identity(x, 2);
  if (k == 0 || count == 0) return;
  const bool wide = m <= n;
  const int64_t rows = std::max(m, n), u_size = rows * (kind == Vectors::kFull ? rows : k), v_size = k * k;
  char* a = wide ? x.by_rows() : x.by_columns();
  require_finite(x, a);
  char* s = place_of(x, kValues ? 0 : 1, count * k, real_item(x));
  char *u = nullptr, *v = nullptr;
  if (!kValues && wide)
    u = place_of(x, 2, count * u_size, x.item()), v = place_of(x, 0, count * v_size, x.item());
  else if (!kValues)
    u = x.elements(count * u_size), v = x.elements(count * v_size);
  int32_t* infos = x.infos();
  for (int64_t i = 0; i < count; ++i)
    x.solver().gesvd(kValues                  ? 'N'
                     : kind == Vectors::kFull ? 'A'
                                              : 'S',
                     rows, k, a + i * m * n * x.item(), s + i * k * real_item(x), u ? u + i * u_size * x.item() : u,
                     v ? v + i * v_size * x.item() : v, infos + i);
  x.report(infos, DataFault::kNoSingularValues);
  if (kValues || wide) return;
  if (call.wants(0)) x.store(call.output(0), u, rows, u_size);
  if (call.wants(2)) x.store(call.output(2), v, k, v_size);
}

// eigh(Tensor x) -> (eigenvalues, eigenvectors), eigvalsh(Tensor x) -> eigenvalues
template <bool Vectors>
void eigh(const Call& call) {
  Factoring x(call, call.input(0));
  x.stack().require_square(call);
  const int64_t n = x.stack().rows, count = x.stack().count;
  if (n * count == 0) return;
  char* a = x.elements(count * n * n);
  Matrices part = x.matrices(a, data_of(call.input(0)), n, n);
  part.conjugated = 1;  // by rows, which is the part itself by columns
  x.launch("hermitian", part);
  require_finite(x, a);
  char* values = place_of(x, 0, count * n, real_item(x));
  int32_t* infos = x.infos();
  for (int64_t i = 0; i < count; ++i)
    x.solver().syevd(Vectors ? cusolver::kVectors : cusolver::kNoVectors, n, a + i * n * n * x.item(),
                     values + i * n * real_item(x), infos + i);
  x.report(infos, DataFault::kNoEigenvalues);
  if (Vectors && call.wants(1)) x.store(call.output(1), a, n, n * n);
}

}  // namespace

void register_orthogonal(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, kSolverTypes, 0, __FILE__, line, takes_matrices);
  };
  row("eigh", kernel<eigh<true>>);
  row("eigvalsh", kernel<eigh<false>>);
  row("qr_complete", kernel<qr<true>>);
  row("qr_reduced", kernel<qr<false>>);
  row("svd_full", kernel<svd<Vectors::kFull>>);
  row("svd_reduced", kernel<svd<Vectors::kReduced>>);
  row("svdvals", kernel<svd<Vectors::kNone>>);
}

}  // namespace backplane::cuda
