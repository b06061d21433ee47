#include "bindings/sizes/size_ratios.hpp"

#include <cmath>
#include <numeric>

namespace backplane::python {
namespace {

using Kind = SizeUse::Kind;
using Operand = SizeUse::Operand;
using Ratio = SizeLog::Ratio;

// So a size times the numerator is exact as a float, and no rounding of a quotient reaches the next whole number.
constexpr int64_t kLargest = 1024;

// A plain number as a fraction over a power of 2. Denominator 0: another number.
Ratio fraction_of(PyObject* number) {
  if (is_of_size(number)) return {};
  double value = PyFloat_CheckExact(number) ? PyFloat_AS_DOUBLE(number) : 0.0;
  if (PyLong_CheckExact(number)) value = PyLong_AsDouble(number);
  if (PyErr_Occurred()) return PyErr_Clear(), Ratio{};
  int64_t below = 1;
  while (value != std::floor(value) && below < kLargest) value *= 2, below *= 2;
  if (!(value > 0) || value > kLargest || value != std::floor(value)) return {};
  return {{}, static_cast<int64_t>(value), below};
}

Ratio ratio_of(const SizeLog& log, PyObject* number) {
  if (is_size(number)) return {log.operand(number), 1, 1};
  return is_size_float(number) ? log.ratio(number) : Ratio{};
}

void note_fraction(SizeLog& log, PyObject* result, const Ratio& size, int64_t times, int64_t divided) {
  if (!is_size_float(result) || size.denominator == 0 || size.of.use == Operand::kNone) return;
  Ratio made{size.of, size.numerator * times, size.denominator * divided};
  const int64_t common = std::gcd(made.numerator, made.denominator);
  made.numerator /= common;
  made.denominator /= common;
  if (made.numerator <= kLargest && made.denominator <= kLargest) log.note_ratio(result, made);
}

}  // namespace

void note_product(PyObject* product, PyObject* a, PyObject* b) {
  SizeLog* log = SizeLog::current();
  if (!log || !product) return;
  if (!is_of_size(a)) std::swap(a, b);
  const Ratio factor = fraction_of(b);
  if (factor.denominator) note_fraction(*log, product, ratio_of(*log, a), factor.numerator, factor.denominator);
}

void note_quotient(PyObject* quotient, PyObject* a, PyObject* b) {
  SizeLog* log = SizeLog::current();
  if (!log || !quotient) return;
  const Ratio divisor = fraction_of(b);
  if (divisor.denominator) note_fraction(*log, quotient, ratio_of(*log, a), divisor.denominator, divisor.numerator);
}

void note_whole(PyObject* floating, PyObject* size) {
  SizeLog* log = SizeLog::current();
  if (log && floating) note_fraction(*log, floating, ratio_of(*log, size), 1, 1);
}

PyObject* rounded_ratio(PyObject* number, Rounding rounding) {
  SizeLog* log = SizeLog::current();
  const Ratio ratio = log ? log->ratio(number) : Ratio{};
  if (ratio.denominator == 0) return nullptr;
  const auto whole = [&](Kind kind, Operand left, Operand right, int64_t value) {
    const PyRef made = PyRef::steal(log->number(kind, left, right, PyLong_FromLongLong(value)));
    return made ? log->operand(made.get()) : Operand{};
  };
  const double exact = PyFloat_AS_DOUBLE(number);
  bool up = rounding == Rounding::kUp;
  if (rounding == Rounding::kToZero) {
    up = exact < 0;
    log->compare(Kind::kLess, ratio.of, {}, up);
  }
  const Operand zero{}, below{Operand::kNone, ratio.denominator};
  const int64_t size = log->use(ratio.of.use).value * ratio.numerator;
  Operand times = whole(Kind::kMultiply, ratio.of, {Operand::kNone, ratio.numerator}, size);
  if (up) times = whole(Kind::kSubtract, zero, times, -size);
  const auto quotient = static_cast<int64_t>(up ? -std::ceil(exact) : std::floor(exact));
  const Operand rest = whole(Kind::kQuotient, times, below, quotient);
  if (PyErr_Occurred()) return nullptr;
  if (up) return log->number(Kind::kSubtract, zero, rest, PyLong_FromLongLong(-quotient));
  return log->number(Kind::kAdd, zero, rest, PyLong_FromLongLong(quotient));
}

}  // namespace backplane::python
