// matrix_exp: the exponential of each matrix, by scaling, a Padé approximant, and squaring (Al-Mohy and Higham, "A new
// scaling and squaring algorithm for the matrix exponential", 2009), after a diagonal scaling and a shift.
//
// How often the matrix is halved follows from the norms of its powers, which may be far below the powers of its norm:
// each squaring that follows costs digits. float32 is computed in float64 and rounded once.
//
// All matrices of one computation are polynomials of one another and commute, so it does not matter that LAPACK sees
// transposes.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/families.hpp"
#include "kernels/linalg/balance.hpp"
#include "kernels/linalg/gemm.hpp"
#include "kernels/linalg/matrix_batch.hpp"

namespace backplane::cpu {
namespace {

// The diagonal approximant of a degree m: coefficients of the powers, the bound of the norms of powers up to which it
// is exact to rounding, and the coefficient of its error's leading term (Al-Mohy and Higham, table 3.1 and (5.5)).
struct Pade {
  int degree;
  double limit, error;
  std::vector<double> coefficients;
};
const Pade kPades[] = {
    {3, 1.495585217958292e-2, 1 / 100800., {120, 60, 12, 1}},
    {5, 2.539398330063230e-1, 1 / 10059033600., {30240, 15120, 3360, 420, 30, 1}},
    {7, 9.504178996162932e-1, 1 / 4487938430976000., {17297280, 8648640, 1995840, 277200, 25200, 1512, 56, 1}},
    {9,
     2.097847961257068,
     1 / 5914384781877411840000.,
     {17643225600., 8821612800., 2075673600., 302702400., 30270240., 2162160., 110880., 3960., 90., 1.}},
    {13,
     4.25,
     1 / 113250775606021113483283660800000000.,
     {64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800., 129060195264000., 10559470521600.,
      670442572800., 33522128640., 1323241920., 40840800., 960960., 16380., 182., 1.}}};

template <class T>
double magnitude(T value) {
  if constexpr (plugin::kIsComplex<T>)
    return std::max(std::abs(value.real()), std::abs(value.imag()));
  else
    return std::abs(value);
}

// W: double or std::complex<double>.
template <class W>
class Exponential {
 public:
  explicit Exponential(int64_t n)
      : n_(n), a_(n * n), a2_(n * n), a4_(n * n), a6_(n * n), a8_(n * n), odd_(n * n), even_(n * n), solver_(n) {}

  // out = exp(x); a matrix that is not finite gives NaN.
  template <class T>
  void run(const T* x, T* out) {
    if (!all_finite(x, n_ * n_)) {
      std::fill_n(out, n_ * n_, T(std::numeric_limits<lapack::Real<T>>::quiet_NaN()));
      return;
    }
    W* a = a_.get();
    std::copy_n(x, n_ * n_, a);
    const std::vector<int> powers = balance(a);
    W factor = std::exp(shift(a));
    int exponent = 0;
    if (magnitude(factor) > 0 && std::isfinite(magnitude(factor))) {
      std::frexp(magnitude(factor), &exponent);
      factor = times_power(factor, -exponent);
    }
    exponential(a);
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j < n_; ++j) {
        const W value = a[i * n_ + j];
        const int power = powers[static_cast<size_t>(i)] - powers[static_cast<size_t>(j)] + exponent;
        out[i * n_ + j] = value == W(0) ? T(0) : static_cast<T>(times_power(value * factor, power));
      }
  }

 private:
  static W times_power(W value, int power) {
    if constexpr (plugin::kIsComplex<W>)
      return {std::ldexp(value.real(), power), std::ldexp(value.imag(), power)};
    else
      return std::ldexp(value, power);
  }
  void scale(W* a, int power) const {
    if (power == 0) return;
    for (int64_t i = 0; i < n_ * n_; ++i) a[i] = times_power(a[i], power);
  }
  std::vector<int> balance(W* a) const {
    std::vector<double> magnitudes(static_cast<size_t>(n_ * n_));
    for (int64_t i = 0; i < n_ * n_; ++i) magnitudes[static_cast<size_t>(i)] = magnitude(a[i]);
    const std::vector<int> powers = balancing_exponents(magnitudes.data(), n_);
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t j = 0; j < n_; ++j)
        a[i * n_ + j] = times_power(a[i * n_ + j], powers[static_cast<size_t>(j)] - powers[static_cast<size_t>(i)]);
    return powers;
  }
  // Takes the mean of the diagonal out of it where that leaves little of the norm. Neither factor of the result leaves
  // the range then: exp(700) is finite.
  W shift(W* a) const {
    constexpr double kMost = 700;
    W mean = 0;
    for (int64_t i = 0; i < n_; ++i) mean += a[i * (n_ + 1)] / static_cast<double>(n_);
    const double before = norm(a);
    std::vector<W> diagonal(static_cast<size_t>(n_));
    for (int64_t i = 0; i < n_; ++i) {
      diagonal[static_cast<size_t>(i)] = a[i * (n_ + 1)];
      a[i * (n_ + 1)] -= mean;
    }
    const double rest = norm(a);
    if (rest <= 1 || (rest <= std::min(before / 2, kMost) && std::abs(std::real(mean)) <= kMost)) return mean;
    for (int64_t i = 0; i < n_; ++i) a[i * (n_ + 1)] = diagonal[static_cast<size_t>(i)];
    return 0;
  }

  // The largest sum of a column.
  double norm(const W* x) const {
    double largest = 0;
    for (int64_t column = 0; column < n_; ++column) {
      double sum = 0;
      for (int64_t row = 0; row < n_; ++row) sum += std::abs(x[row * n_ + column]);
      largest = std::max(largest, sum);
    }
    return largest;
  }
  // log2 of the norm of |a|^power, -infinity where that is 0.
  double log_norm_of_magnitudes(const W* a, int power) const {
    std::vector<double> sums(static_cast<size_t>(n_), 1), next(static_cast<size_t>(n_));
    double log = 0;
    for (int k = 0; k < power; ++k) {
      std::fill(next.begin(), next.end(), 0);
      for (int64_t i = 0; i < n_; ++i)
        for (int64_t j = 0; j < n_; ++j)
          next[static_cast<size_t>(j)] += sums[static_cast<size_t>(i)] * std::abs(a[i * n_ + j]);
      const double top = *std::max_element(next.begin(), next.end());
      if (top == 0) return -std::numeric_limits<double>::infinity();
      for (double& sum : next) sum /= top;
      log += std::log2(top);
      sums.swap(next);
    }
    return log;
  }
  // Further halvings after which the rounding errors of the approximant (growing with |a|) stay below the errors of the
  // result. Where the square is far smaller than the norm says, the result is as sensitive as the approximant, and each
  // squaring would cost more digits than a halving saves.
  int halvings_for_rounding(const W* a, const Pade& pade) const {
    constexpr double kCollapse = 1000;
    const double whole = norm(a);
    if (whole == 0 || collapse_ > kCollapse) return 0;
    const double log = std::log2(pade.error) + log_norm_of_magnitudes(a, 2 * pade.degree + 1) - std::log2(whole) + 53;
    return log > 0 ? static_cast<int>(std::ceil(log / (2 * pade.degree))) : 0;
  }

  void product(const W* a, const W* b, W* out) const {
    const auto matrix = [&](const W* data) {
      return Matrix{reinterpret_cast<char*>(const_cast<W*>(data)), n_, n_, n_, 1};
    };
    gemm(plugin::kDtypeOf<W>, matrix(a), matrix(b), matrix(out));
  }
  // The norm of a product of `power` factors, as a mean of each.
  double mean_norm(const W* x, int power) const { return std::pow(norm(x), 1.0 / power); }

  // a = exp(a).
  void exponential(W* a) {
    // Beyond 2^100 the sixth power overflows: such a matrix is halved before.
    const double whole = norm(a);
    int halvings = whole > 0x1p100 ? std::ilogb(whole) - 100 : 0;
    if (!std::isfinite(whole)) halvings = 1000;
    scale(a, -halvings);
    product(a, a, a2_.get());
    const double square = norm(a2_.get()), root = norm(a);
    collapse_ = square == 0 ? std::numeric_limits<double>::infinity() : root / square * root;
    product(a2_.get(), a2_.get(), a4_.get());
    product(a2_.get(), a4_.get(), a6_.get());
    const double four = mean_norm(a4_.get(), 4), six = mean_norm(a6_.get(), 6);
    const Pade* pade = halvings == 0 ? small_enough(a, four, six) : nullptr;
    if (pade == nullptr) {
      pade = &kPades[4];
      const int more = halvings_needed(a, four, six, *pade);
      scale(a, -more);
      scale(a2_.get(), -2 * more);
      scale(a4_.get(), -4 * more);
      scale(a6_.get(), -6 * more);
      halvings += more;
    }
    approximate(a, *pade);
    for (int i = 0; i < halvings; ++i) {
      std::copy_n(a, n_ * n_, odd_.get());
      product(odd_.get(), odd_.get(), a);
    }
  }
  // An approximant of a low degree that needs no halving.
  const Pade* small_enough(const W* a, double four, double six) {
    const double first = std::max(four, six);
    for (const Pade* pade : {&kPades[0], &kPades[1]})
      if (first <= pade->limit && halvings_for_rounding(a, *pade) == 0) return pade;
    if (six > kPades[3].limit) return nullptr;
    product(a4_.get(), a4_.get(), a8_.get());
    const double second = std::max(six, mean_norm(a8_.get(), 8));
    for (const Pade* pade : {&kPades[2], &kPades[3]})
      if (second <= pade->limit && halvings_for_rounding(a, *pade) == 0) return pade;
    return nullptr;
  }
  int halvings_needed(W* a, double four, double six, const Pade& pade) {
    double least = std::max(four, six);
    if (least > pade.limit) {
      product(a4_.get(), a4_.get(), a8_.get());
      const double eight = mean_norm(a8_.get(), 8);
      product(a4_.get(), a6_.get(), a8_.get());
      least = std::min({least, std::max(six, eight), std::max(eight, mean_norm(a8_.get(), 10))});
    }
    int count = least > pade.limit ? static_cast<int>(std::ceil(std::log2(least / pade.limit))) : 0;
    std::copy_n(a, n_ * n_, even_.get());
    scale(even_.get(), -count);
    return count + halvings_for_rounding(even_.get(), pade);
  }

  void fill_diagonal(W* to, double value) const {
    std::fill_n(to, n_ * n_, W(0));
    for (int64_t i = 0; i < n_; ++i) to[i * (n_ + 1)] = value;
  }
  void add(double coefficient, const W* from, W* to) const {
    for (int64_t i = 0; i < n_ * n_; ++i) to[i] += from[i] * coefficient;
  }
  // to = b[first] + b[first + 2] a^2 + b[first + 4] a^4 + …, of a8_ beyond the sixth power, which serves as memory.
  void polynomial(const Pade& pade, size_t first, W* to) {
    const std::vector<double>& b = pade.coefficients;
    const W* powers[] = {a2_.get(), a4_.get(), a6_.get(), a8_.get()};
    fill_diagonal(to, b[first]);
    const size_t direct = pade.degree == 13 ? 3 : 4;
    for (size_t k = 0; k < direct && first + 2 * k + 2 < b.size(); ++k) add(b[first + 2 * k + 2], powers[k], to);
    if (pade.degree != 13) return;
    W *high = a8_.get(), *rest = product_.get();
    std::fill_n(high, n_ * n_, W(0));
    for (size_t k = 0; k < 3; ++k) add(b[first + 8 + 2 * k], powers[k], high);
    product(a6_.get(), high, rest);
    add(1, rest, to);
  }
  // a = r(a) = 1 + (V - U)^-1 2 U, where U has the odd powers of a and V the even ones.
  void approximate(W* a, const Pade& pade) {
    W *odd = odd_.get(), *even = even_.get(), *u = product_.get();
    polynomial(pade, 1, odd);
    polynomial(pade, 0, even);
    product(a, odd, u);
    for (int64_t i = 0; i < n_ * n_; ++i) {
      even[i] -= u[i];
      a[i] = 2.0 * u[i];
    }
    solver_.factor(even);
    solver_.solve(even, a);
    for (int64_t i = 0; i < n_; ++i) a[i * (n_ + 1)] += 1;
  }

  int64_t n_;
  double collapse_ = 1;  // how many times the squared norm exceeds the norm of the square
  Scratch<W> a_, a2_, a4_, a6_, a8_, odd_, even_;
  Scratch<W> product_{n_ * n_};
  Inverter<W> solver_;
};

template <class T>
struct WideOf {
  using type = double;
};
template <class R>
struct WideOf<std::complex<R>> {
  using type = std::complex<double>;
};

struct MatrixExp {
  template <class T>
  static void run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
    const MatrixBatch x(frame, plugin::as_tensor(args[0])), out(frame, outs[0].u.t);
    x.require_square(frame);
    const int64_t n = x.rows;
    for_matrices(frame, n == 0 ? 0 : x.count, 20 * n * n * n, [&](int64_t begin, int64_t end) {
      Exponential<typename WideOf<T>::type> exponential(n);
      for (int64_t i = begin; i < end; ++i) exponential.run(x.at<T>(i), out.at<T>(i));
    });
  }
};

}  // namespace

const Family kMatrixExp([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::matrix_exp", "cpu", lapack_kernel<MatrixExp>, .dtypes = kLapackTypes));
});

}  // namespace backplane::cpu
