// See trial.hpp.
#include "trial.hpp"

#include <algorithm>

#include "compare.hpp"

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

}  // namespace

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

bool has_kernel_to_compare(const Entry& entry) {
  return entry.decomposes && !entry.has("composite") && !entry.exempt("decompose") && !entry.name.starts_with("bp::");
}

void note_exceptions(const Entry& entry, std::initializer_list<const char*> laws, std::vector<Outcome>& outcomes) {
  for (const char* law : laws) {
    const auto found = entry.exempted.find(law);
    if (found == entry.exempted.end()) continue;
    Outcome outcome{entry.name, law};
    outcome.verdict = Verdict::kExcepted;
    outcome.text = found->second;
    outcomes.push_back(std::move(outcome));
  }
}

std::set<int64_t> sizes_of(const Sample& sample) {
  std::set<int64_t> sizes;
  for (const auto& [name, value] : sample.values)
    for (const auto& tensor : value.tensors)
      if (tensor) sizes.insert(tensor->shape.begin(), tensor->shape.end());
  return sizes;
}

Route route_of(const Entry& entry, const CallCounts& counts) {
  if (counts.host_fallbacks) return Route::kHost;
  if (counts.decompositions) return Route::kDecomposed;
  if (counts.kernels) return Route::kNative;
  return entry.has("view") || entry.has("maybe_view") ? Route::kView : Route::kDecomposed;
}

bool widens(const Entry& entry, bp_dtype dtype) {
  return dtype != BP_DTYPE_NONE && dtype != widest_taken(entry, dtype) && entry.compare != "distribution" &&
         !entry.has("dynamic") && !entry.exempt("dtypes");
}

Inputs inputs_of(const Subject& subject, const Entry& entry, size_t sample, bp_dtype dtype) {
  return draw_inputs(entry, sample, dtype, subject.computes, dtype == BP_DTYPE_NONE);
}

CallResult reference_call(const Subject& subject, const Entry& entry, const Inputs& inputs, bp_dtype dtype) {
  const bool wide = widens(entry, dtype);
  Forced forced(subject.is_reference() && entry.decomposes && !entry.has("composite") && !entry.exempt("decompose"));
  return run_call(entry, wide ? widened(entry, inputs) : inputs, subject.reference, {.as_sampled = false});
}

bool is_lacking(const std::string& message) { return message.find("does not compute in") != std::string::npos; }

void judge_failure(const Options& options, bp_status status, const std::string& message, Outcome& outcome) {
  const bool lacking = is_lacking(message);
  const bool missing = status == BP_ERROR_NOT_IMPLEMENTED;
  outcome.verdict = lacking || (missing && options.partial) ? Verdict::kUnsupported : Verdict::kFail;
  outcome.text = message;
  outcome.stated = outcome.verdict == Verdict::kFail &&
                   (status == BP_ERROR_DEVICE || status == BP_ERROR_DEVICE_LOST || status == BP_ERROR_MEMORY);
}

std::string nowhere_text(const std::string& message) {
  return "found the error \"" + message +
         "\", which the reference gives as well; if the call must fail, state `error` in the sample";
}

void judge(const Entry& entry, const Options& options, const CallResult& found, const CallResult& expected,
           Outcome& outcome) {
  if (!found.ok()) {
    judge_failure(options, found.status, found.message, outcome);
    if (outcome.verdict == Verdict::kFail && !expected.ok()) outcome.text = nowhere_text(found.message);
    return;
  }
  outcome.route = route_of(entry, found.counts);
  outcome.text = !found.touched.empty() ? found.touched.front()
                 : !expected.ok()       ? "found a result, but the reference fails: " + expected.message
                                        : difference(entry, found.results, expected.results);
  if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
}

}  // namespace backplane::conformance
