// Comparing arrays. See compare.hpp.
#include "compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace backplane::conformance {
namespace {

Number times(Number a, Number b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Number conjugate(Number a) { return {a.re, -a.im}; }
Number sign(Number a) {
  const long double size = std::hypot(a.re, a.im);
  return size == 0 ? Number{} : Number{a.re / size, a.im / size};
}

std::string text(Number value, bp_dtype dtype) {
  const bool complex = (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0;
  if (!is_inexact(dtype)) return fmt::format("{:.0f}", value.re);
  if (std::isnan(value.re) && !complex) return "nan";  // whatever its sign
  return complex ? fmt::format("{:.9g}{:+.9g}j", value.re, value.im) : fmt::format("{:.9g}", value.re);
}

// Vectors of a decomposition have a phase of their own (U's columns, and Vh's rows the other way): those of U begin
// with a positive number afterwards, and so do the rows of Vh beyond them.
void fix_phases(std::vector<Array>& results) {
  size_t rank = 0;
  for (const Array& result : results) {
    rank = std::max(rank, result.shape.size());
    if (result.count() == 0) return;
  }
  std::vector<Array*> matrices;
  for (Array& result : results)
    if (result.shape.size() == rank && rank >= 2) matrices.push_back(&result);
  if (matrices.empty()) return;
  Array& u = *matrices[0];
  Array* vh = matrices.size() > 1 ? matrices[1] : nullptr;
  const auto rows = static_cast<size_t>(u.shape[rank - 2]), columns = static_cast<size_t>(u.shape[rank - 1]);
  const size_t vh_rows = vh ? static_cast<size_t>(vh->shape[rank - 2]) : 0;
  const size_t vh_columns = vh ? static_cast<size_t>(vh->shape[rank - 1]) : 0;
  for (size_t matrix = 0; matrix < u.count() / (rows * columns); ++matrix) {
    const size_t at = matrix * rows * columns, vh_at = matrix * vh_rows * vh_columns;
    std::vector<Number> phases(std::max(columns, vh_rows));
    for (size_t j = 0; j < columns; ++j) phases[j] = sign(u.at(at + j));
    for (size_t j = columns; j < vh_rows; ++j) phases[j] = conjugate(sign(vh->at(vh_at + j * vh_columns)));
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j)
        u.set(at + i * columns + j, times(u.at(at + i * columns + j), conjugate(phases[j])));
    for (size_t i = 0; i < vh_rows; ++i)
      for (size_t j = 0; j < vh_columns; ++j)
        vh->set(vh_at + i * vh_columns + j, times(phases[i], vh->at(vh_at + i * vh_columns + j)));
  }
}

bool same(long double a, long double b, long double bound) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= bound;
}

long double bound_of(const Entry& entry, const Array& expected, double slack) {
  if (entry.compare == "exact" || !is_inexact(expected.dtype)) return 0;
  long double scale = 1;
  for (size_t i = 0; i < expected.count(); ++i) {
    const long double size = std::hypot(expected.at(i).re, expected.at(i).im);
    if (std::isfinite(size)) scale = std::max(scale, size);
  }
  const double growth = std::max(1.0, std::sqrt(static_cast<double>(expected.count())));
  return slack * entry.tolerance * epsilon(expected.dtype) * growth * scale;
}

std::string index_text(size_t flat, const std::vector<int64_t>& shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = static_cast<int64_t>(flat) % shape[d];
    flat /= static_cast<size_t>(shape[d]);
  }
  return shape_text(index);
}

bp_dtype_mask kind_of(bp_dtype dtype) {
  for (const bp_dtype_mask mask : {BP_MASK_FLOATING, BP_MASK_COMPLEX, BP_MASK_SIGNED, BP_MASK_UNSIGNED})
    if (mask & BP_DTYPE_BIT(dtype)) return mask;
  return BP_MASK_BOOL;
}

}  // namespace

std::string difference(const Entry& entry, std::vector<Array> found, std::vector<Array> expected, double slack) {
  if (found.size() != expected.size())
    return fmt::format("found {} results, expected {}", found.size(), expected.size());
  for (size_t r = 0; r < found.size(); ++r) {
    const std::string which = found.size() > 1 ? fmt::format("result {}: ", r) : "";
    if (found[r].shape != expected[r].shape)
      return fmt::format("{}found shape {}, expected {}", which, shape_text(found[r].shape),
                         shape_text(expected[r].shape));
    if (kind_of(found[r].dtype) != kind_of(expected[r].dtype))
      return fmt::format("{}found dtype {}, expected the kind of {}", which, dtype_name(found[r].dtype),
                         dtype_name(expected[r].dtype));
  }
  if (entry.compare == "up_to_phase") {
    fix_phases(found);
    fix_phases(expected);
  }
  for (size_t r = 0; entry.is_repeatable() && r < found.size(); ++r) {
    const Array rounded = as_dtype(expected[r], found[r].dtype);
    const long double bound = bound_of(entry, rounded, slack);
    for (size_t i = 0; i < rounded.count(); ++i) {
      const Number a = found[r].at(i), b = rounded.at(i);
      if (same(a.re, b.re, bound) && same(a.im, b.im, bound)) continue;
      return fmt::format("{}at {} of {}: found {}, expected {} within {:.3g}",
                         found.size() > 1 ? fmt::format("result {} ", r) : "", index_text(i, rounded.shape),
                         shape_text(rounded.shape), text(a, found[r].dtype), text(b, found[r].dtype),
                         static_cast<double>(bound));
    }
  }
  return "";
}

}  // namespace backplane::conformance
