// Mode grad, under <a, b> = Re sum conj(a) b: a gradient on the device = the CPU's in float64, and that = the central
// finite difference along a direction; tangents on the device = the CPU's, and <cotangents, tangents> = <gradients,
// directions>; a batch = its rows.
#include <fmt/format.h>

#include <cmath>

#include "backplane/autograd.hpp"
#include "compare.hpp"
#include "running.hpp"
#include "transform_checks.hpp"
#include "trial.hpp"

namespace backplane::conformance {
namespace {

constexpr double kStep = 1e-5;
// Of the device's gradients: a backward pass is many calls, each with the tolerance of its own.
constexpr double kSlack = 16;
// What moves elements is exact, and its derivative adds them: in the device's dtype, where the reference adds in
// float64.
constexpr double kLeastTolerance = 1;

struct Differentiated {
  bp_status status = BP_OK;
  std::string message;
  std::vector<Array> results;  // those with a derivative
  std::vector<Array> gradients;
  std::vector<size_t> of;  // per gradient: its place among the tensors of the call
};

bool differentiates(const Entry& entry, size_t argument) {
  const Argument& arg = entry.args[argument];
  if (!arg.is_tensor() || !(arg.accepts & (BP_MASK_FLOATING | BP_MASK_COMPLEX))) return false;
  const auto stated = entry.vjp.find(arg.name);
  return entry.has("composite") || (stated != entry.vjp.end() && stated->second != "none");
}

Array random_like(const Array& array, uint64_t seed) {
  return draw({array.shape, array.dtype, "uniform(-1, 1)", ""}, array.dtype, seed);
}

Tensor cotangent_of(const Tensor& result, size_t i) {
  return to_tensor(random_like(from_tensor(result), 11 + i), result.device());
}

void differentiate(const Entry& entry, const Inputs& inputs, bp_device device, Differentiated& made) {
  Arguments arguments(entry, inputs, device, {.as_sampled = false});
  std::vector<Tensor> leaves;
  size_t position = 0;
  for (Arguments::Held& held : arguments.held()) {
    if (differentiates(entry, held.argument) && is_inexact(held.placed.tensor.dtype())) {
      set_requires_grad(held.placed.tensor, true);
      leaves.push_back(held.placed.tensor);
      made.of.push_back(position);
    }
    ++position;
  }
  std::vector<bp_value> slots(entry.list_results.size());
  if (const bp_status status =
          call_packed(entry.op, arguments.values().data(), static_cast<int32_t>(arguments.values().size()),
                      slots.data(), static_cast<int32_t>(slots.size())))
    throw_last_error(status);
  std::vector<Tensor> roots, cotangents;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::vector<Tensor> tensors;
    if (entry.list_results[i])
      tensors = take_list(slots[i]);
    else
      tensors.push_back(Tensor::adopt(slots[i].u.t));
    for (Tensor& tensor : tensors) {
      if (!entry.differentiable[i] || !is_inexact(tensor.dtype())) continue;
      made.results.push_back(from_tensor(detach(tensor)));
      if (!requires_grad(tensor)) continue;
      cotangents.push_back(cotangent_of(detach(tensor), made.results.size() - 1));
      roots.push_back(std::move(tensor));
    }
  }
  const std::vector<Tensor> found =
      roots.empty() ? std::vector<Tensor>(leaves.size()) : gradients(roots, cotangents, leaves, {});
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Array at = from_tensor(detach(leaves[i]));
    made.gradients.push_back(found[i] ? from_tensor(detach(found[i])) : Array(at.dtype, at.shape));
  }
}

Differentiated differentiated(const Entry& entry, const Inputs& inputs, bp_device device) {
  Differentiated made;
  try {
    differentiate(entry, inputs, device, made);
  } catch (const Error& error) {
    made.status = error.code();
    made.message = error.what();
  }
  return made;
}

long double inner(const Array& a, const Array& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.count(); ++i) sum += a.at(i).re * b.at(i).re + a.at(i).im * b.at(i).im;
  return sum;
}

// The arrays of the inputs in the order in which a call holds its tensors.
std::vector<Array*> arrays_of(Inputs& inputs) {
  std::vector<Array*> found;
  for (Input& input : inputs)
    for (auto& array : input.arrays)
      if (array) found.push_back(&*array);
  return found;
}

// <cotangents, results> with one tensor moved along the direction.
long double value_at(const Entry& entry, Inputs inputs, size_t tensor, const Array& direction, double step,
                     bp_device device) {
  Array& moved = *arrays_of(inputs)[tensor];
  for (size_t i = 0; i < moved.count(); ++i) {
    const Number at = moved.at(i), along = direction.at(i);
    moved.set(i, {at.re + step * along.re, at.im + step * along.im});
  }
  const Differentiated here = differentiated(entry, inputs, device);
  BP_CHECK(here.status == BP_OK, VALUE, here.message);
  long double sum = 0;
  for (size_t i = 0; i < here.results.size(); ++i) sum += inner(random_like(here.results[i], 11 + i), here.results[i]);
  return sum;
}

std::string against_differences(const Entry& entry, const Inputs& inputs, const Differentiated& found,
                                bp_device device) {
  for (size_t i = 0; i < found.gradients.size(); ++i) {
    const Array direction = random_like(found.gradients[i], 5 + i);
    const long double above = value_at(entry, inputs, found.of[i], direction, kStep, device);
    const long double below = value_at(entry, inputs, found.of[i], direction, -kStep, device);
    const long double expected = (above - below) / (2 * kStep), slope = inner(found.gradients[i], direction);
    if (std::fabs(slope - expected) > 2e-6L * (1 + std::fabs(expected)))
      return fmt::format("gradient {} along a direction: found {:.9g}, the finite difference is {:.9g}", i, slope,
                         expected);
  }
  return "";
}

// <cotangents, tangents> = <gradients, directions>
std::string against_tangents(const Differentiated& reverse, const std::vector<Array>& directions,
                             const std::vector<Array>& forward) {
  long double by_forward = 0, by_reverse = 0;
  for (size_t i = 0; i < forward.size(); ++i) by_forward += inner(random_like(reverse.results[i], 11 + i), forward[i]);
  for (size_t i = 0; i < directions.size(); ++i) by_reverse += inner(reverse.gradients[i], directions[i]);
  if (std::fabs(by_forward - by_reverse) <= 2e-6L * (1 + std::fabs(by_reverse))) return "";
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
    wide.push_back(random_like(reverse.gradients[i], 5 + i));
    narrow.push_back(as_dtype(wide.back(), arrays[reverse.of[i]]->dtype));
  }
  const Transformed expected = tangents(entry, widened(inputs), subject.reference, reverse.of, wide);
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

// A batch of the sample against its rows, one by one, on the device.
void run_batch(const Subject& subject, const Entry& entry, const Options& options, size_t sample, bp_dtype dtype,
               std::vector<Outcome>& outcomes) {
  constexpr size_t kRows = 3;
  std::vector<Inputs> rows;
  for (size_t row = 0; row < kRows; ++row)
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
  const bool complex = wide == BP_COMPLEX128;
  const bp_dtype narrow = complex ? BP_COMPLEX64 : BP_FLOAT32;
  const bp_dtype dtype = subject.computes & BP_DTYPE_BIT(wide) ? wide : narrow;
  const Inputs inputs = draw_inputs(entry, sample, dtype, subject.computes, !complex);
  const Differentiated expected = differentiated(entry, widened(inputs), subject.reference);
  if (expected.gradients.empty() && expected.status == BP_OK) return;
  Outcome outcome{entry.name, "gradient", dtype, sample, elements_of(inputs)};
  const Running running(outcome);
  const Differentiated found = differentiated(entry, inputs, subject.device);
  if (found.status != BP_OK) {
    judge_failure(options, found.status, found.message, outcome);
    if (outcome.verdict == Verdict::kFail && expected.status != BP_OK) outcome.text = nowhere_text(found.message);
  } else {
    Entry judged = entry;
    judged.compare = "close";  // the derivative of what moves elements adds them, in the device's dtype
    outcome.text = difference(judged, found.gradients, expected.gradients, kSlack);
    if (outcome.text.empty() && subject.is_reference())
      outcome.text = against_differences(entry, widened(inputs), expected, subject.reference);
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
  }
  outcomes.push_back(outcome);
  if (outcome.verdict == Verdict::kPass) run_forward(subject, entry, options, inputs, expected, outcome, outcomes);
}

void run_entry(const Subject& subject, const Entry& entry, const Options& options, std::vector<Outcome>& outcomes) {
  // Vectors with a phase of their own have the gradient of the phase that was chosen.
  const bool gradients = !entry.exempt("gradient") && entry.is_repeatable() && entry.compare != "up_to_phase";
  for (size_t sample = 0; sample < entry.samples.size(); ++sample) {
    if (!entry.samples[sample].is_usual()) continue;
    const std::vector<bp_dtype> dtypes = dtypes_of(entry, entry.samples[sample]);
    for (const bp_dtype dtype : dtypes)
      if (gradients && (dtype == BP_FLOAT64 || dtype == BP_COMPLEX128))
        run_sample(subject, entry, options, sample, dtype, outcomes);
    const std::vector<bp_dtype> first = representatives(dtypes);
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
