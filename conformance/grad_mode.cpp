// Mode grad, under <a, b> = Re sum conj(a) b: a gradient on the device = the CPU's in the widest dtype that the op
// takes, and that, and its own gradient, = the central finite difference along a direction; tangents on the device =
// the CPU's, and <cotangents, tangents> = <gradients, directions>; a batch = its rows.
#include <fmt/format.h>

#include <cmath>

#include "compare.hpp"
#include "differentiated.hpp"
#include "running.hpp"
#include "transform_checks.hpp"
#include "trial.hpp"

namespace backplane::conformance {
namespace {

// Of the device's gradients: a backward pass is many calls, each with the tolerance of its own.
constexpr double kSlack = 16;
// What moves elements is exact, and its derivative adds them: in the device's dtype, where the reference adds in
// float64.
constexpr double kLeastTolerance = 1;

// How far a finite difference goes in the dtype, and how near it comes: of the second order of the step, and of the
// rounding divided by it.
struct Step {
  double size, tolerance;
};
Step step_of(bp_dtype dtype) {
  if (BP_DTYPE_BIT(dtype) & (BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128))) return {1e-5, 2e-6};
  if (BP_DTYPE_BIT(dtype) & (BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_COMPLEX64))) return {1.0 / 128, 4e-3};
  return {1.0 / 16, dtype == BP_FLOAT16 ? 0.03 : 0.15};
}

// <cotangents, results>, or where `again`, the sum of <gradient, direction>: what the gradients are of.
long double value_at(const Entry& entry, const Inputs& inputs, bp_device device, bool again) {
  const Differentiated here = differentiated(entry, inputs, device);
  BP_CHECK(here.status == BP_OK, VALUE, here.message);
  const std::vector<Array>& values = again ? here.gradients : here.results;
  long double sum = 0;
  for (size_t i = 0; i < values.size(); ++i)
    sum += inner(random_like(values[i], (again ? kAgainSeed : kCotangentSeed) + i), values[i]);
  return sum;
}

std::string against_differences(const Entry& entry, const Inputs& inputs, const Differentiated& found, bp_device device,
                                bool again = false) {
  for (size_t i = 0; i < found.gradients.size(); ++i) {
    const Step step = step_of(found.gradients[i].dtype);
    const Array direction = random_like(found.gradients[i], kDirectionSeed + i);
    const auto at = [&](double size) {
      return value_at(entry, moved(inputs, found.of[i], direction, size), device, again);
    };
    const long double expected = (at(step.size) - at(-step.size)) / (2 * step.size);
    const long double slope = inner(found.gradients[i], direction);
    if (!(std::fabs(slope - expected) <= (again ? 5 : 1) * step.tolerance * (1 + std::fabs(expected))))
      return fmt::format("{} {} along a direction: found {:.9g}, the finite difference is {:.9g}",
                         again ? "second derivative" : "gradient", i, slope, expected);
  }
  return "";
}

// The gradient is linear in the cotangents: those of each result alone give its parts.
std::string against_single_results(const Entry& entry, const Inputs& inputs, const Differentiated& all,
                                   bp_device device) {
  if (all.results.size() < 2) return "";
  std::vector<Array> sums;
  for (const Array& gradient : all.gradients) sums.emplace_back(gradient.dtype, gradient.shape);
  for (size_t r = 0; r < all.results.size(); ++r) {
    const Differentiated one = differentiated(entry, inputs, device, false, r);
    if (one.status != BP_OK) return fmt::format("with a cotangent of result {} alone: {}", r, one.message);
    for (size_t i = 0; i < sums.size(); ++i)
      for (size_t k = 0; k < sums[i].count(); ++k) {
        const Number sum = sums[i].at(k), part = one.gradients[i].at(k);
        sums[i].set(k, {sum.re + part.re, sum.im + part.im});
      }
  }
  Entry judged = entry;
  judged.compare = "close";
  const std::string wrong = difference(judged, sums, all.gradients, kSlack);
  return wrong.empty() ? "" : "the sum of the gradients for each result's cotangent alone: " + wrong;
}

// <cotangents, tangents> = <gradients, directions>
std::string against_tangents(const Differentiated& reverse, const std::vector<Array>& directions,
                             const std::vector<Array>& forward) {
  long double by_forward = 0, by_reverse = 0;
  for (size_t i = 0; i < forward.size(); ++i)
    by_forward += inner(random_like(reverse.results[i], kCotangentSeed + i), forward[i]);
  for (size_t i = 0; i < directions.size(); ++i) by_reverse += inner(reverse.gradients[i], directions[i]);
  const bp_dtype dtype = reverse.gradients.empty() ? bp_dtype{BP_FLOAT64} : reverse.gradients.front().dtype;
  if (std::fabs(by_forward - by_reverse) <= step_of(dtype).tolerance * (1 + std::fabs(by_reverse))) return "";
  return fmt::format("the tangent along a direction: found {:.9g}, the gradient says {:.9g}", by_forward, by_reverse);
}

// Differentiates forward what `reverse` differentiated; of an op without that nothing is said.
void run_forward(const Subject& subject, const Entry& entry, const Options& options, const Inputs& inputs,
                 const Differentiated& reverse, Outcome outcome, std::vector<Outcome>& outcomes) {
  outcome.check = "forward";
  const Running running(outcome);
  std::vector<Array> wide, narrow;
  Inputs own = inputs;
  const std::vector<Array*> arrays = arrays_of(own);
  for (size_t i = 0; i < reverse.gradients.size(); ++i) {
    wide.push_back(random_like(reverse.gradients[i], kDirectionSeed + i));
    narrow.push_back(as_dtype(wide.back(), arrays[reverse.of[i]]->dtype));
  }
  const Transformed expected = tangents(entry, widened(entry, inputs), subject.reference, reverse.of, wide);
  if (expected.status == BP_ERROR_NOT_IMPLEMENTED) return;
  const Transformed found = tangents(entry, inputs, subject.device, reverse.of, narrow);
  if (found.status != BP_OK || expected.status != BP_OK) {
    judge_failure(options, found.status, found.message.empty() ? expected.message : found.message, outcome);
  } else {
    Entry judged = entry;
    judged.compare = "close";
    outcome.text = difference(judged, found.results, expected.results, kSlack);
    if (outcome.text.empty() && subject.is_reference()) outcome.text = against_tangents(reverse, wide, found.results);
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
  }
  outcomes.push_back(std::move(outcome));
}

// The gradient of the gradient against finite differences of that; of an op without one nothing is said.
void run_second_order(const Subject& subject, const Entry& entry, const Options& options, const Inputs& inputs,
                      Outcome outcome, std::vector<Outcome>& outcomes) {
  outcome.check = "second order";
  const Running running(outcome);
  const Inputs wide = widened(entry, inputs);
  const Differentiated found = differentiated(entry, wide, subject.reference, true);
  if (found.status == BP_ERROR_NOT_IMPLEMENTED) return;
  if (found.status != BP_OK)
    judge_failure(options, found.status, found.message, outcome);
  else if (outcome.text = against_differences(entry, wide, found, subject.reference, true); !outcome.text.empty())
    outcome.verdict = Verdict::kFail;
  outcomes.push_back(std::move(outcome));
}

// A number that is not the size of an axis of the sample: a rule that takes one size for the other then gives another
// result.
size_t rows_for(const Sample& sample) {
  constexpr int64_t kLeast = 3;
  const std::set<int64_t> sizes = sizes_of(sample);
  int64_t rows = kLeast;
  while (sizes.count(rows)) ++rows;
  return static_cast<size_t>(rows);
}

// A batch of the sample against its rows, one by one, on the device.
void run_batch(const Subject& subject, const Entry& entry, const Options& options, size_t sample, bp_dtype dtype,
               std::vector<Outcome>& outcomes) {
  std::vector<Inputs> rows;
  const size_t count = rows_for(entry.samples[sample]);
  for (size_t row = 0; row < count; ++row)
    rows.push_back(draw_inputs(entry, sample, dtype, subject.computes, dtype == BP_DTYPE_NONE, row));
  if (!batches(entry, rows.front())) return;
  Outcome outcome{entry.name, "batch", dtype, sample, elements_of(rows.front())};
  const Running running(outcome);
  const Transformed expected = one_by_one(entry, rows, subject.device);
  if (expected.status != BP_OK && !is_lacking(expected.message)) return;  // mode test says why
  const Transformed found = batched(entry, rows, subject.device);
  if (found.status != BP_OK)
    judge_failure(options, found.status, found.message, outcome);
  else
    outcome.text = difference(entry, found.results, expected.results);
  if (found.status == BP_OK && !outcome.text.empty()) outcome.verdict = Verdict::kFail;
  outcomes.push_back(std::move(outcome));
}

void run_sample(const Subject& subject, const Entry& entry, const Options& options, size_t sample, bp_dtype wide,
                std::vector<Outcome>& outcomes) {
  const bool complex = (BP_DTYPE_BIT(wide) & BP_MASK_COMPLEX) != 0;
  const bp_dtype narrow = complex ? BP_COMPLEX64 : BP_FLOAT32;
  const bp_dtype dtype = subject.computes & BP_DTYPE_BIT(wide) ? wide : narrow;
  const Inputs inputs = draw_inputs(entry, sample, dtype, subject.computes, !complex);
  Outcome outcome{entry.name, "gradient", dtype, sample, elements_of(inputs)};
  const Running running(outcome);
  const Differentiated expected = differentiated(entry, widened(entry, inputs), subject.reference);
  if (expected.status == BP_OK && expected.gradients.empty()) return;
  // The op may refuse a derived sample, or say that it has no derivative there.
  const bool derived = !entry.samples[sample].varies.empty();
  if (expected.status != BP_OK && derived &&
      (expected.status == BP_ERROR_NOT_IMPLEMENTED || !reference_call(subject, entry, inputs, dtype).ok()))
    return;
  // Whether an op of dynamic size has derivatives, its padded form says.
  if (expected.status == BP_ERROR_NOT_IMPLEMENTED && entry.has("dynamic")) return;
  const Differentiated found = differentiated(entry, inputs, subject.device);
  if (found.status != BP_OK) {
    judge_failure(options, found.status, found.message, outcome);
    if (outcome.verdict == Verdict::kFail && expected.status != BP_OK) outcome.text = nowhere_text(found.message);
  } else {
    Entry judged = entry;
    judged.compare = "close";  // the derivative of what moves elements adds them, in the device's dtype
    outcome.text = difference(judged, found.gradients, expected.gradients, kSlack);
    if (outcome.text.empty() && subject.is_reference())
      outcome.text = against_differences(entry, widened(entry, inputs), expected, subject.reference);
    if (outcome.text.empty()) outcome.text = against_single_results(entry, inputs, found, subject.device);
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
  }
  outcomes.push_back(outcome);
  if (outcome.verdict != Verdict::kPass) return;
  if (!entry.exempt("forward")) run_forward(subject, entry, options, inputs, expected, outcome, outcomes);
  if (subject.is_reference() && !entry.exempt("second_order"))
    run_second_order(subject, entry, options, inputs, outcome, outcomes);
}

void run_entry(const Subject& subject, const Entry& entry, const Options& options, std::vector<Outcome>& outcomes) {
  // Vectors with a phase of their own have the gradient of the phase that was chosen.
  note_exceptions(entry, {"gradient", "forward", "second_order", "vmap"}, outcomes);
  const bool gradients = !entry.exempt("gradient") && entry.is_repeatable() && entry.compare != "up_to_phase";
  for (size_t sample = 0; sample < entry.samples.size(); ++sample) {
    if (!entry.samples[sample].is_usual()) continue;
    const std::vector<bp_dtype> dtypes = dtypes_of(entry, entry.samples[sample]);
    for (const bp_dtype dtype : dtypes)
      if (gradients && is_inexact(dtype) && dtype == widest_taken(entry, dtype))
        run_sample(subject, entry, options, sample, dtype, outcomes);
    const std::vector<bp_dtype> first = representatives(dtypes);
    if (!entry.exempt("vmap"))
      run_batch(subject, entry, options, sample, first.empty() ? bp_dtype{BP_DTYPE_NONE} : first.front(), outcomes);
    if (options.brief) break;
  }
}

}  // namespace

void run_gradients(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
                   const Progress& progress, std::vector<Outcome>& outcomes) {
  for (size_t i = 0; i < entries.size(); ++i) {
    progress(i, entries.size(), entries[i].name);
    if (!entries[i].has("higher_order")) run_entry(subject, entries[i], options, outcomes);
  }
}

}  // namespace backplane::conformance
