// Mode test: every sample in every dtype and way against the reference in higher precision. See subject.hpp.
#include <algorithm>

#include "backplane/device.hpp"
#include "call.hpp"
#include "compare.hpp"
#include "subject.hpp"
#include "variants.hpp"

namespace backplane::conformance {
namespace {

// Process-wide switches of the core, for as long as this lives.
class Forced {
 public:
  explicit Forced(bool forced) : before_(force_decompositions(forced)) {}
  ~Forced() { force_decompositions(before_); }
  Forced(const Forced&) = delete;

 private:
  bool before_;
};

// One per class of dtypes that the dtypes hold, the usual one first: what all ways of calling are tried in.
std::vector<bp_dtype> representatives(const std::vector<bp_dtype>& dtypes) {
  static constexpr bp_dtype kPreferred[][4] = {{BP_FLOAT32, BP_FLOAT64, BP_FLOAT16, BP_BFLOAT16},
                                               {BP_COMPLEX64, BP_COMPLEX128, BP_COMPLEX64, BP_COMPLEX64},
                                               {BP_INT32, BP_INT64, BP_INT16, BP_INT8},
                                               {BP_UINT8, BP_UINT16, BP_UINT32, BP_UINT64},
                                               {BP_BOOL, BP_BOOL, BP_BOOL, BP_BOOL}};
  std::vector<bp_dtype> found;
  for (const auto& row : kPreferred)
    for (const bp_dtype dtype : row)
      if (std::count(dtypes.begin(), dtypes.end(), dtype)) {
        found.push_back(dtype);
        break;
      }
  return found;
}

size_t elements_of(const Inputs& inputs) {
  size_t count = 0;
  for (const Input& input : inputs)
    for (const auto& array : input.arrays) count += array ? array->count() : 0;
  return count;
}

Route route_of(const Entry& entry, const CallCounts& counts) {
  if (counts.host_fallbacks) return Route::kHost;
  if (counts.decompositions) return Route::kDecomposed;
  if (counts.kernels) return Route::kNative;
  return entry.has("view") || entry.has("maybe_view") ? Route::kView : Route::kDecomposed;
}

// Codes that an error of that name may have: more special ones stand for it.
std::vector<bp_status> codes_of(const std::string& error) {
  if (error == "ShapeError") return {BP_ERROR_SHAPE};
  if (error == "DtypeError") return {BP_ERROR_DTYPE};
  if (error == "DataError") return {BP_ERROR_DATA};
  if (error == "IndexError") return {BP_ERROR_INDEX};
  if (error == "TypeError") return {BP_ERROR_TYPE, BP_ERROR_DTYPE};
  if (error == "NotImplementedError") return {BP_ERROR_NOT_IMPLEMENTED};
  return {BP_ERROR_VALUE, BP_ERROR_SHAPE, BP_ERROR_DATA, BP_ERROR_OVERFLOW};
}

class EntryTest {
 public:
  EntryTest(const Subject& subject, const Entry& entry, const Options& options, std::vector<Outcome>& outcomes)
      : subject_(subject), entry_(entry), options_(options), outcomes_(outcomes) {}

  void run() {
    size_t tried = 0;
    for (size_t sample = 0; sample < entry_.samples.size(); ++sample) {
      if (!entry_.samples[sample].error.empty()) {
        run_error(sample);
        continue;
      }
      if (options_.brief && tried++) continue;
      std::vector<bp_dtype> dtypes = dtypes_of(entry_, entry_.samples[sample]);
      const std::vector<bp_dtype> first = representatives(dtypes);
      if (options_.brief) dtypes = first;
      if (dtypes.empty()) dtypes.push_back(BP_DTYPE_NONE);
      for (const bp_dtype dtype : dtypes) run_sample(sample, dtype);
    }
  }

 private:
  // Is the same call in the widest dtype what this one rounds?
  bool widens(bp_dtype dtype) const {
    return dtype != BP_DTYPE_NONE && dtype != widest(dtype) && entry_.compare != "distribution" &&
           !entry_.has("dynamic") && !entry_.exempt("dtypes");
  }

  CallResult reference(const Inputs& inputs, bp_dtype dtype) {
    const bool wide = widens(dtype);
    const bool same_kernel = subject_.is_reference() && !wide;
    Forced forced(same_kernel && entry_.decomposes && !entry_.has("composite") && !entry_.exempt("decompose"));
    return run_call(entry_, wide ? widened(inputs) : inputs, subject_.reference, {.as_sampled = false});
  }

  void run_sample(size_t sample, bp_dtype dtype) {
    const Inputs inputs =
        draw_inputs(entry_, sample, dtype, subject_.computes, !widens(dtype) && dtype == BP_DTYPE_NONE);
    CallResult expected;
    for (Variant& variant : variants_of(entry_, inputs, dtype)) {
      if (variant.check == "values" || !variant.same_inputs) {
        CallResult now = reference(variant.inputs, dtype);
        if (variant.same_inputs) expected = now;
        run_variant(sample, dtype, variant, now);
      } else {
        run_variant(sample, dtype, variant, expected);
      }
      if (outcomes_.back().verdict == Verdict::kUnsupported) break;  // in every way, for the same reason
    }
  }

  void run_variant(size_t sample, bp_dtype dtype, const Variant& variant, const CallResult& expected) {
    Outcome outcome{entry_.name, variant.check, dtype, sample, elements_of(variant.inputs)};
    const CallResult found = run_call(entry_, variant.inputs, subject_.device, variant.options);
    if (!found.ok() && (expected.ok() || found.status != expected.status)) {
      judge_failure(subject_, options_, found.status, found.message, outcome);
    } else if (found.ok()) {
      outcome.route = route_of(entry_, found.counts);
      outcome.text = !found.touched.empty() ? found.touched.front()
                     : !expected.ok()       ? "found a result, expected the error: " + expected.message
                                            : difference(entry_, found.results, expected.results);
      if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
    }
    outcomes_.push_back(std::move(outcome));
  }

  void run_error(size_t sample) {
    const std::string& error = entry_.samples[sample].error;
    const std::vector<bp_dtype> dtypes = dtypes_of(entry_, entry_.samples[sample]);
    const std::vector<bp_dtype> first = representatives(dtypes);
    const bp_dtype dtype = first.empty() ? bp_dtype{BP_DTYPE_NONE} : first.front();
    const Inputs inputs = draw_inputs(entry_, sample, dtype, subject_.computes, true);
    Outcome outcome{entry_.name, "error", dtype, sample, elements_of(inputs)};
    const CallResult found = run_call(entry_, inputs, subject_.device);
    const std::vector<bp_status> codes = codes_of(error);
    if (found.ok())
      outcome.text = "found a result, expected " + error;
    else if (!std::count(codes.begin(), codes.end(), found.status))
      outcome.text = "found the error \"" + found.message + "\", expected " + error;
    else if (found.message.find(entry_.name) == std::string::npos)
      outcome.text = "the message does not name the op: \"" + found.message + "\"";
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
    outcomes_.push_back(std::move(outcome));
  }

  const Subject& subject_;
  const Entry& entry_;
  const Options& options_;
  std::vector<Outcome>& outcomes_;
};

}  // namespace

void judge_failure(const Subject&, const Options& options, bp_status status, const std::string& message,
                   Outcome& outcome) {
  const bool lacking = message.find("does not compute in") != std::string::npos;
  const bool missing = status == BP_ERROR_NOT_IMPLEMENTED;
  outcome.verdict = lacking || (missing && options.partial) ? Verdict::kUnsupported : Verdict::kFail;
  outcome.text = message;
}

void run_tests(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
               const Progress& progress, std::vector<Outcome>& outcomes) {
  for (size_t i = 0; i < entries.size(); ++i) {
    progress(i, entries.size(), entries[i].name);
    if (!entries[i].has("higher_order")) EntryTest(subject, entries[i], options, outcomes).run();
  }
}

}  // namespace backplane::conformance
