// Modes support, stress and perf. See subject.hpp.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "backplane/checked.hpp"
#include "backplane/device.hpp"
#include "compare.hpp"
#include "running.hpp"
#include "same_op.hpp"
#include "trial.hpp"
#include "variants.hpp"

namespace backplane::conformance {
namespace {

// Samples that are to succeed, in each dtype that `choose` leaves of theirs.
template <class Choose, class Each>
void each_case(const std::vector<Entry>& entries, const Progress& progress, const Choose& choose, const Each& each) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    progress(i, entries.size(), entry.name);
    for (size_t sample = 0; !entry.has("higher_order") && sample < entry.samples.size(); ++sample) {
      // The op may refuse a derived sample.
      if (!entry.samples[sample].is_usual() || !entry.samples[sample].varies.empty()) continue;
      std::vector<bp_dtype> dtypes = choose(dtypes_of(entry, entry.samples[sample]));
      if (dtypes.empty()) dtypes.push_back(BP_DTYPE_NONE);
      for (const bp_dtype dtype : dtypes) each(entry, sample, dtype);
    }
  }
}

struct Task {
  const Entry* entry;
  Inputs inputs;
  CallResult expected;
  Outcome outcome;
};

// No memory for a tensor is an error of the call, and of nothing after it.
void run_out_of_memory(const Subject& subject, std::vector<Outcome>& outcomes) {
  Outcome outcome;
  outcome.op = kDeviceLaws;
  outcome.check = "a tensor too large";
  const int64_t huge[] = {int64_t{1} << 50};
  try {
    empty(huge, BP_INT8, subject.device);
    outcome.text = "a tensor of 2^50 bytes was made";
  } catch (const Error& error) {
    if (error.code() != BP_ERROR_MEMORY) outcome.text = std::string("found another error: ") + error.what();
  }
  if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
  outcomes.push_back(std::move(outcome));
}

double seconds_of(const Entry& entry, const Inputs& inputs, bp_device device) {
  using Clock = std::chrono::steady_clock;
  constexpr double kEnough = 2e-3;
  Arguments arguments(entry, inputs, device, {.as_sampled = false});
  const auto repeat = [&](int calls) {
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) call_once(entry, arguments);
    synchronize(device);
    return std::chrono::duration<double>(Clock::now() - start).count() / calls;
  };
  const double once = repeat(1);
  const int calls = static_cast<int>(std::clamp(kEnough / std::max(once, 1e-9), 1.0, 1000.0));
  return std::min({repeat(calls), repeat(calls), repeat(calls)});
}

}  // namespace

void run_support(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
                 const Progress& progress, std::vector<Outcome>& outcomes) {
  Options listed = options;
  listed.partial = true;
  const auto all = [](std::vector<bp_dtype> dtypes) { return dtypes; };
  each_case(entries, progress, all, [&](const Entry& entry, size_t sample, bp_dtype dtype) {
    const Inputs inputs = inputs_of(subject, entry, sample, dtype);
    Outcome outcome{entry.name, "values", dtype, sample, elements_of(inputs)};
    const Running running(outcome);
    const CallResult found = run_call(entry, inputs, subject.device);
    if (found.ok())
      outcome.route = route_of(entry, found.counts);
    else
      judge_failure(listed, found.status, found.message, outcome);
    outcomes.push_back(std::move(outcome));
  });
}

void run_stress(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
                const Progress& progress, std::vector<Outcome>& outcomes) {
  if (wants_device_laws(options)) {
    run_device_laws(subject, options, progress, outcomes);
    run_out_of_memory(subject, outcomes);
  }
  std::vector<Task> tasks;
  each_case(entries, progress, representatives, [&](const Entry& entry, size_t sample, bp_dtype dtype) {
    Task task{&entry, inputs_of(subject, entry, sample, dtype), {}, {entry.name, "threads", dtype, sample, 0}};
    task.outcome.elements = elements_of(task.inputs);
    task.expected = reference_call(subject, entry, task.inputs, dtype);
    tasks.push_back(std::move(task));
  });
  // Each thread calls all, from a place of its own, so that different ops meet; every call has its own memory. Where
  // the device has streams, those of every other thread's calls are the thread's own.
  const bool has_streams = (backend_table(subject.device).flags & BP_BACKEND_SYNCHRONOUS) == 0;
  const unsigned count = std::max(4u, std::thread::hardware_concurrency());
  std::vector<std::vector<Outcome>> found(count);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      std::optional<backplane::Stream> own;
      CallOptions call;
      if (has_streams && t % 2 == 1) call.stream = &own.emplace(subject.device);
      for (size_t i = 0; i < tasks.size(); ++i) {
        const Task& task = tasks[(i + t * tasks.size() / count) % tasks.size()];
        Outcome outcome = task.outcome;
        if (call.stream) outcome.check = "streams";
        const Running running(outcome);
        judge(*task.entry, options, run_call(*task.entry, task.inputs, subject.device, call), task.expected, outcome);
        found[t].push_back(std::move(outcome));
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::vector<Outcome>& of_thread : found)
    std::move(of_thread.begin(), of_thread.end(), std::back_inserter(outcomes));
  if (!has_streams) run_same_op(subject, entries, progress, outcomes);
}

void run_timing(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
                const Progress& progress, std::vector<Outcome>& outcomes) {
  const auto usual = [](const std::vector<bp_dtype>& dtypes) {
    std::vector<bp_dtype> first = representatives(dtypes);
    first.resize(std::min<size_t>(first.size(), 1));
    return first;
  };
  each_case(entries, progress, usual, [&](const Entry& entry, size_t sample, bp_dtype dtype) {
    std::vector<Variant> variants = variants_of(entry, inputs_of(subject, entry, sample, dtype), dtype);
    const auto longer =
        std::find_if(variants.begin(), variants.end(), [](const Variant& v) { return v.check == "long"; });
    const Inputs& inputs = longer == variants.end() ? variants.front().inputs : longer->inputs;
    Outcome outcome{entry.name, "values", dtype, sample, elements_of(inputs)};
    const Running running(outcome);
    try {
      outcome.route = route_of(entry, run_call(entry, inputs, subject.device).counts);
      outcome.seconds = seconds_of(entry, inputs, subject.device);
      outcome.ratio = outcome.seconds / seconds_of(entry, inputs, subject.reference);
    } catch (const Error& error) {
      judge_failure(options, error.code(), error.what(), outcome);
    }
    outcomes.push_back(std::move(outcome));
  });
}

}  // namespace backplane::conformance
