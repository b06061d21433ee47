// Mode test: every sample in every dtype and way against the reference in higher precision. See subject.hpp.
#include <algorithm>
#include <optional>

#include "backplane/plugins.hpp"
#include "compare.hpp"
#include "resized.hpp"
#include "running.hpp"
#include "stated_results.hpp"
#include "trial.hpp"
#include "variants.hpp"

namespace backplane::conformance {
namespace {

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

// A vector's function and a scalar's may round otherwise, and the scale of the tolerance is the greatest element.
constexpr double kElementSlack = 64;

class EntryTest {
 public:
  EntryTest(const Subject& subject, const Entry& entry, const Options& options, std::vector<Outcome>& outcomes)
      : subject_(subject), entry_(entry), options_(options), outcomes_(outcomes) {}

  void run() {
    note_exceptions(entry_, {"alias", "decompose", "dtypes", "layout"}, outcomes_);
    size_t tried = 0, tried_large = 0;
    std::optional<size_t> first_usual;
    for (size_t sample = 0; sample < entry_.samples.size(); ++sample) {
      if (!entry_.samples[sample].error.empty()) {
        run_error(sample);
        continue;
      }
      if (entry_.samples[sample].large) {
        if (!options_.brief || tried_large++ == 0) run_large(sample);
        continue;
      }
      if (!first_usual) first_usual = sample;
      if (options_.brief && tried++) continue;
      std::vector<bp_dtype> dtypes = dtypes_of(entry_, entry_.samples[sample]);
      const std::vector<bp_dtype> first = representatives(dtypes);
      if (options_.brief) dtypes = first;
      if (dtypes.empty()) dtypes.push_back(BP_DTYPE_NONE);
      for (const bp_dtype dtype : dtypes) run_sample(sample, dtype);
    }
    if (first_usual) run_sizes(*first_usual);
  }

 private:
  void run_sample(size_t sample, bp_dtype dtype) {
    const Inputs inputs = inputs_of(subject_, entry_, sample, dtype);
    const CallResult expected = reference_of(sample, dtype, "values", inputs);
    if (!expected.ok() && !entry_.samples[sample].varies.empty()) return;
    std::vector<Array> results;
    for (const Variant& variant : variants_of(entry_, inputs, dtype)) {
      if (variant.same_inputs) {
        CallResult found = run_variant(sample, dtype, variant, expected);
        if (!found.ok() && !expected.ok()) return;  // in every way, for the same reason
        if (variant.check == "values") results = std::move(found.results);
      } else {
        const CallResult other = reference_of(sample, dtype, variant.check, variant.inputs);
        const CallResult found = run_variant(sample, dtype, variant, other);
        // Arguments that the sample does not have, and that the op refuses, say nothing.
        if (!other.ok() && found.status == other.status) outcomes_.pop_back();
      }
      if (outcomes_.back().verdict == Verdict::kUnsupported) return;
    }
    for (const Resized& other : resized(subject_, entry_, sample, dtype)) {
      const CallResult wanted = reference_of(sample, dtype, other.check, other.inputs);
      if (wanted.ok()) run_variant(sample, dtype, {other.check, other.inputs, {.checked = true}}, wanted);
    }
    if (takes_outs(entry_) && !results.empty()) run_in_place(sample, dtype, inputs, results, expected);
    if (entry_.has("elementwise") && !results.empty() && entry_.is_repeatable() && !entry_.has_generator())
      run_elements(sample, dtype, inputs, results);
    if (entry_.has("moves") && !results.empty()) run_moves(sample, dtype, inputs, results);
    if (!results.empty() && states_results(entry_, sample, inputs))
      run_stated("expect", sample, dtype, inputs, unlike_stated(entry_, sample, results));
    if (!results.empty() && !entry_.padded.empty())
      run_stated("padding", sample, dtype, inputs, wrong_padding(entry_, results));
    if (!results.empty()) run_again(sample, dtype, inputs);
  }

  // What the entry says of the results themselves, whatever the reference gives.
  void run_stated(const char* check, size_t sample, bp_dtype dtype, const Inputs& inputs, std::string wrong) {
    Outcome outcome{entry_.name, check, dtype, sample, elements_of(inputs)};
    outcome.text = std::move(wrong);
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
    outcomes_.push_back(std::move(outcome));
  }

  // What moves elements and computes nothing gives elements of its arguments, to the bit, or numbers that it was given.
  void run_moves(size_t sample, bp_dtype dtype, const Inputs& inputs, const std::vector<Array>& results) {
    Outcome outcome{entry_.name, "moves", dtype, sample, elements_of(inputs)};
    const std::string strange = element_from_nowhere(entry_, inputs, results);
    if (strange.empty()) return;
    outcome.verdict = Verdict::kFail;
    outcome.text = strange + ", but the entry says `moves: true`. Fix: leave that out, or `moves: unless ARGUMENT`";
    outcomes_.push_back(std::move(outcome));
  }

  // In one dtype and way: what depends on the size alone depends on neither.
  void run_large(size_t sample) {
    const bool states_dtype =
        std::any_of(entry_.samples[sample].values.begin(), entry_.samples[sample].values.end(), [](const auto& value) {
          const auto& tensors = value.second.tensors;
          return std::any_of(tensors.begin(), tensors.end(),
                             [](auto& one) { return one && one->dtype != BP_DTYPE_NONE; });
        });
    const std::vector<bp_dtype> first = representatives(dtypes_of(entry_, entry_.samples[sample]));
    const bp_dtype dtype = states_dtype || first.empty() ? bp_dtype{BP_DTYPE_NONE} : first.front();
    const Inputs inputs = inputs_of(subject_, entry_, sample, dtype);
    run_variant(sample, dtype, {"large", inputs, {}, true}, reference_of(sample, dtype, "large", inputs));
  }

  // What depends on the number of elements, and what on the integers' width.
  void run_sizes(size_t sample) {
    const std::vector<bp_dtype> dtypes = dtypes_of(entry_, entry_.samples[sample]);
    if (const std::vector<bp_dtype> first = representatives(dtypes); !first.empty())
      if (const auto many = many_elements(entry_, inputs_of(subject_, entry_, sample, first.front())))
        run_size(sample, first.front(), "large", *many);
    for (const bp_dtype dtype : {BP_INT64, BP_UINT64})
      if (std::count(dtypes.begin(), dtypes.end(), dtype) && entry_.is_repeatable() && !entry_.has("dynamic"))
        if (const auto wide = with_large_integers(inputs_of(subject_, entry_, sample, dtype)))
          run_size(sample, dtype, "large integers", *wide, true);
  }

  // Arguments that the op refuses say nothing. `exact`: nor do floating results, which such integers are rounded to.
  void run_size(size_t sample, bp_dtype dtype, const char* check, const Inputs& inputs, bool exact = false) {
    const CallResult expected = reference_of(sample, dtype, check, inputs);
    const auto rounds = [](const Array& array) { return is_inexact(array.dtype); };
    if (!expected.ok() || (exact && std::any_of(expected.results.begin(), expected.results.end(), rounds))) return;
    run_variant(sample, dtype, {check, inputs, {.as_sampled = false, .checked = true}, true}, expected);
  }

  CallResult reference_of(size_t sample, bp_dtype dtype, const std::string& check, const Inputs& inputs) {
    const Running running({entry_.name, check + " of the reference", dtype, sample});
    return reference_call(subject_, entry_, inputs, dtype);
  }

  // One result is written into each argument of its shape and dtype; several into the arguments of their names.
  void run_in_place(size_t sample, bp_dtype dtype, const Inputs& inputs, const std::vector<Array>& results,
                    const CallResult& expected) {
    const auto fits = [&](size_t i, const Array& result) {
      if (inputs[i].is_list || inputs[i].arrays.size() != 1 || !inputs[i].arrays[0]) return false;
      return inputs[i].arrays[0]->shape == result.shape && inputs[i].arrays[0]->dtype == result.dtype;
    };
    const auto run = [&](std::vector<size_t> into) {
      run_variant(sample, dtype, {"in place", inputs, {.as_sampled = false, .into = std::move(into)}, true}, expected);
    };
    std::vector<size_t> named;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (results.size() == 1 && fits(i, results.front())) run({i});
    for (size_t r = 0; r < results.size(); ++r)
      for (size_t i = 0; i < inputs.size(); ++i)
        if (entry_.args[i].name == entry_.result_names[r] && fits(i, results[r])) named.push_back(i);
    if (results.size() > 1 && named.size() == results.size()) run(std::move(named));
  }

  // An elementwise op gives one element alone the result that the element has among others.
  void run_elements(size_t sample, bp_dtype dtype, const Inputs& inputs, const std::vector<Array>& results) {
    const std::vector<int64_t>& shape = results.front().shape;
    const size_t count = results.front().count();
    if (count < 2) return;
    for (const size_t at : {size_t{0}, count / 2, count - 1}) {
      const Inputs alone = element_of(inputs, shape, at);
      Outcome outcome{entry_.name, "elements", dtype, sample, elements_of(alone)};
      const Running running(outcome);
      const CallResult found = run_call(entry_, alone, subject_.device, {.as_sampled = false});
      std::vector<Array> expected;
      for (const Array& result : results) {
        expected.emplace_back(result.dtype, found.ok() ? found.results.front().shape : std::vector<int64_t>{1});
        expected.back().set(0, result.at(at));
      }
      const std::string wrong = found.ok() ? difference(entry_, found.results, expected, kElementSlack) : found.message;
      if (!wrong.empty()) {
        outcome.verdict = Verdict::kFail;
        outcome.text = "element " + std::to_string(at) + " of the result alone: " + wrong +
                       ". `shape: broadcast(...)` says that each element of the result depends on the elements at its "
                       "place alone; state the shape by another word, as `same(x)`, where it does not";
      }
      outcomes_.push_back(std::move(outcome));
    }
  }

  CallResult run_variant(size_t sample, bp_dtype dtype, const Variant& variant, const CallResult& expected) {
    Outcome outcome{entry_.name, variant.check, dtype, sample, elements_of(variant.inputs)};
    const Running running(outcome);
    CallResult found = run_call(entry_, variant.inputs, subject_.device, variant.options);
    judge(entry_, options_, found, expected, outcome);
    if (const std::string& varies = entry_.samples[sample].varies; !varies.empty() && !outcome.text.empty())
      outcome.text = "on a derived sample, of another \"" + varies + "\": " + outcome.text;
    outcomes_.push_back(std::move(outcome));
    return found;
  }

  // What a call leaves behind besides its results, it leaves behind each time.
  void run_again(size_t sample, bp_dtype dtype, const Inputs& inputs) {
    constexpr int kCalls = 4;
    Outcome outcome{entry_.name, "leak", dtype, sample, elements_of(inputs)};
    const Running running(outcome);
    const auto tensors_alive = [&] {
      for (int i = 0; i < kCalls; ++i)
        if (const CallResult found = run_call(entry_, inputs, subject_.device); !found.ok() && outcome.text.empty())
          judge_failure(options_, found.status, found.message, outcome);
      uint64_t leases = 0;
      for (const PluginInfo& plugin : plugins())
        if (plugin.name == subject_.plugin) leases = plugin.leases;
      return leases;
    };
    const uint64_t before = tensors_alive(), after = tensors_alive();
    if (outcome.text.empty() && after >= before + kCalls) {
      outcome.verdict = Verdict::kFail;
      outcome.text = std::to_string(kCalls) + " calls left " + std::to_string(after - before) +
                     " tensors of the device alive; a kernel must release what it retains";
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
    const Running running(outcome);
    const CallResult found = run_call(entry_, inputs, subject_.device);
    const std::vector<bp_status> codes = codes_of(error);
    const bool stated = std::count(codes.begin(), codes.end(), found.status) != 0;
    if (!found.ok() && (!stated || is_lacking(found.message))) {
      judge_failure(options_, found.status, found.message, outcome);
      if (outcome.verdict == Verdict::kUnsupported) {
        outcomes_.push_back(std::move(outcome));
        return;
      }
    }
    if (found.ok())
      outcome.text = "found a result, expected " + error;
    else if (!stated)
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

void run_tests(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
               const Progress& progress, std::vector<Outcome>& outcomes) {
  if (wants_device_laws(options)) run_device_laws(subject, options, progress, outcomes);
  for (size_t i = 0; i < entries.size(); ++i) {
    progress(i, entries.size(), entries[i].name);
    if (!entries[i].has("higher_order")) EntryTest(subject, entries[i], options, outcomes).run();
  }
}

}  // namespace backplane::conformance
