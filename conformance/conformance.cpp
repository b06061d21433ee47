// From options to a report. See conformance.hpp.
#include "conformance.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "backplane/checked.hpp"
#include "backplane/device.hpp"
#include "backplane/plugins.hpp"
#include "journal.hpp"
#include "own_process.hpp"
#include "running.hpp"
#include "shared_cases.hpp"
#include "trial.hpp"

namespace backplane::conformance {
namespace {

namespace fs = std::filesystem;

// A pattern without "::" is one of short names.
bool matches(const std::string& pattern, const std::string& name) {
  const std::string what = pattern.find("::") == std::string::npos ? name.substr(name.find("::") + 2) : name;
  return fnmatch(pattern.c_str(), what.c_str(), 0) == 0;
}

constexpr const char* kUnnamedSamples = "samples.json";

// What the plugin's own entries are sampled with: NAME.samples.json, as backplane_add_plugin writes it, or
// samples.json, as codegen does. "" where there is neither.
std::string samples_beside(const PluginInfo& plugin) {
  const fs::path named = fs::path(plugin.path).replace_extension("samples.json");
  for (const fs::path& file : {named, named.parent_path() / kUnnamedSamples})
    if (fs::exists(file)) return file.string();
  return "";
}

// Of backplane's own ops, and of those that loaded plugins bring. `without_samples` gets the paths of the plugins that
// have no samples.
std::vector<Entry> all_entries(std::vector<std::string>* without_samples = nullptr) {
  std::vector<Entry> all = read_samples(base_samples_path());
  for (const PluginInfo& plugin : plugins()) {
    if (plugin.state != "loaded" || plugin.ops.empty()) continue;
    const std::string file = samples_beside(plugin);
    if (file.empty()) {
      if (without_samples) without_samples->push_back(plugin.path);
      continue;
    }
    std::vector<Entry> more = read_samples(file);
    if (fs::path(file).filename() == kUnnamedSamples)  // it may be that of another plugin of this folder
      std::erase_if(more,
                    [&](const Entry& entry) { return !std::count(plugin.ops.begin(), plugin.ops.end(), entry.name); });
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Entry> entries_of(const Options& options) {
  std::vector<std::string> without_samples;
  std::vector<Entry> all = all_entries(&without_samples);
  std::erase_if(all, [&](const Entry& entry) { return !matches(options.op, entry.name); });
  std::string reason = "; `backplane ops` lists them";
  if (!without_samples.empty())
    reason = fmt::format(
        ". The samples of {} are missing: expected {} beside it, which `backplane-codegen --emit samples` writes as "
        "samples.json",
        fmt::join(without_samples, ", "),
        fs::path(without_samples[0]).filename().replace_extension("samples.json").string());
  BP_CHECK(!all.empty() || wants_device_laws(options), VALUE, "conformance: no op matches \"", options.op, "\"",
           reason);
  return all;
}

Subject subject_of(bp_device device) {
  Subject subject{device, parse_device("cpu"), BP_MASK_ANY, ""};
  for (const DeviceInfo& info : devices()) {
    if (info.device.backend != subject.device.backend || info.device.ordinal != subject.device.ordinal) continue;
    subject.computes = BP_MASK_ANY & ~info.properties.lacks;
    subject.plugin = info.plugin;
  }
  return subject;
}

std::string described(const Subject& subject) {
  for (const DeviceInfo& info : devices())
    if (info.device.backend == subject.device.backend && info.device.ordinal == subject.device.ordinal)
      return fmt::format("{} ({}, plugin {})", info.name, info.description, info.plugin);
  return device_name(subject.device);
}

// Rows that nothing calls are in no table of outcomes.
void warn_about_unused_rows() {
  for (const PluginInfo& plugin : plugins())
    for (const std::string& backend : plugin.waits_for)
      fmt::print(
          "warning: plugin {} has kernel rows for {}, which no plugin provides: they are never called. Fix: correct "
          "the name, or load the plugin that brings it\n",
          plugin.name, backend);
}

void show_progress(size_t done, size_t all, const std::string& name) {
  constexpr size_t kWidth = 30;
  const size_t filled = kWidth * done / std::max<size_t>(all, 1);
  fmt::print(stderr, "\r[{:<{}}] {:>3}% {:<40.40}", std::string(filled, '#'), kWidth,
             100 * done / std::max<size_t>(all, 1), name);
  std::fflush(stderr);
}

void show_failure(const Outcome& outcome, bool terminal) {
  if (terminal) fmt::print(stderr, "\r{:80}\r", "");
  fmt::print(stderr, "FAIL {}, {}: {}\n", outcome.op, place_text(outcome), outcome.text);
  std::fflush(stderr);
}

void report_stopped(const Options& options, const std::string& device, const Journal& journal, int signal,
                    double seconds) {
  report(options, device, journal.found(), seconds, true);
  fmt::print("stopped by {} {}; the table has the results so far.{}\n", signal == SIGINT ? "SIGINT" : "SIGTERM",
             shared_cases::latest_text(), options.json.empty() ? "" : " Go on with the same options and --resume");
}

struct NamedMode {
  const char* name;
  Mode* run;
};
constexpr NamedMode kModes[] = {{"test", run_tests},      {"grad", run_gradients}, {"perf", run_timing},
                                {"support", run_support}, {"stress", run_stress},  {"async", run_async}};

}  // namespace

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const NamedMode& mode : kModes) names.emplace_back(mode.name);
  return names;
}

std::vector<Placement> placement_of(OpHandle op, bp_device device) {
  const std::vector<Entry> entries = all_entries();
  const auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& one) { return one.op == op; });
  const auto called = [](const Sample& one) { return one.is_usual(); };
  const bool found = entry != entries.end() && !entry->has("higher_order") &&
                     std::any_of(entry->samples.begin(), entry->samples.end(), called);
  BP_CHECK(found, VALUE, op_def(op).name, " has no sample that can be called from here");
  const auto sample = std::find_if(entry->samples.begin(), entry->samples.end(), called);
  const std::vector<bp_dtype> dtypes = representatives(dtypes_of(*entry, *sample));
  const Inputs inputs = inputs_of(subject_of(device), *entry, static_cast<size_t>(sample - entry->samples.begin()),
                                  dtypes.empty() ? bp_dtype{BP_DTYPE_NONE} : dtypes.front());
  Arguments arguments(*entry, inputs, device, {});
  PlacementScope scope;
  call_once(*entry, arguments);
  scope.end();
  return scope.rows();
}

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void write_files(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes,
                 double seconds) {
  if (!options.json.empty()) write_json(options, device, outcomes, seconds);
  if (!options.html.empty()) write_html(options, device, outcomes, seconds);
}

// `kept`: the file of the outcomes so far.
int run_here(const Options& options, Mode* mode, const std::string& kept, Clock::time_point start, bool again) {
  StopSignals signals;
  const bool checked = check_kernels(false);  // on where the environment asks for it
  enable_checked_kernels();
  check_kernels(checked);  // else those of the calls that ask for it
  if (checked) check_every_call();
  report_crashes();
  for (const std::string& plugin : options.plugins) load_plugin(plugin);
  const Subject subject = subject_of(parse_device(options.device));
  if (!again) warn_about_unused_rows();
  const std::string device = described(subject);
  Journal journal(kept, options, device);
  std::vector<Entry> entries = entries_of(options);
  std::erase_if(entries, [&](const Entry& entry) { return journal.is_done(entry.name); });
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::vector<Outcome> outcomes = journal.restored();
  // The first failure of each op comes at once: a kernel may end the run, or not end, before the report.
  const Progress progress = [&, shown = outcomes.size(), ops = std::set<std::string>()](
                                size_t done, size_t all, const std::string& name) mutable {
    shared_cases::step();
    for (; shown < outcomes.size(); ++shown)
      if (outcomes[shown].verdict == Verdict::kFail && ops.insert(outcomes[shown].op).second)
        show_failure(outcomes[shown], terminal);
    journal.begin(name, outcomes);
    if (terminal) show_progress(done, all, name);
  };
  {
    const BeforeEachCase note([&] { journal.note(outcomes); });
    const StopSignals::Watch watch(signals, [&](int signal) {
      if (signal == SIGUSR1) return journal.write_found();  // the case hangs
      report_stopped(options, device, journal, signal, seconds_since(start));
    });
    if (work_ends(subject, outcomes)) mode(subject, entries, options, progress, outcomes);
  }
  const double seconds = seconds_since(start);
  if (terminal) fmt::print(stderr, "\r{:80}\r", "");
  write_files(options, device, outcomes, seconds);
  return report(options, device, outcomes, seconds);
}

// What becomes of a run whose cases hang.
class Hangs {
 public:
  Hangs(const Options& options, std::string kept, Clock::time_point start)
      : options_(options), kept_(std::move(kept)), start_(start) {}

  bool go_on(Outcome hung) {
    ++in_a_row_;
    if (hung.op.empty()) {
      hung.op = kDeviceLaws;
      hung.check = kBetween;
    }
    hung.verdict = Verdict::kFail;
    hung.stated = true;
    hung.text = fmt::format(
        "did not end: {:g} seconds passed without a step (--deadline). Its process was ended, and the op's other cases "
        "were not tried. Fix: run the same command with --op '{}' under a debugger, which has no deadline, and look "
        "what waits",
        options_.deadline, hung.op.starts_with('(') ? hung.op : hung.op.substr(hung.op.find("::") + 2));
    show_failure(hung, isatty(STDERR_FILENO) != 0);
    append_last(kept_, hung);
    const size_t passed = passed_so_far();
    if (passed != std::exchange(passed_, passed)) in_a_row_ = 1;
    works_ = hung.check != kFirstWork && hung.check != kBetween;
    return works_ && in_a_row_ < kMost;
  }

  int stop() const {
    const Kept kept = read_kept(kept_);
    const std::string device = kept.device.empty() ? options_.device : kept.device;
    write_files(options_, device, kept.outcomes, seconds_since(start_));
    report(options_, device, kept.outcomes, seconds_since(start_), true);
    fmt::print("stopped: {}. Nothing else was tried\n",
               works_ ? fmt::format("{} times in a row, a case did not end and none passed", kMost)
                      : "the device does not work outside of the ops' cases");
    return 1;
  }

 private:
  static constexpr int kMost = 3;
  static constexpr const char* kBetween = "between cases";

  size_t passed_so_far() const {
    const Kept kept = read_kept(kept_);
    return static_cast<size_t>(std::count_if(kept.outcomes.begin(), kept.outcomes.end(),
                                             [](const Outcome& one) { return one.verdict == Verdict::kPass; }));
  }

  const Options& options_;
  std::string kept_;
  Clock::time_point start_;
  bool works_ = true;
  int in_a_row_ = 0;
  size_t passed_ = 0;
};

// Without a name, if no report is asked for.
std::string kept_path(const Options& options) {
  if (!options.json.empty()) return options.json + ".partial";
  const int file = memfd_create("outcomes", 0);
  BP_CHECK(file >= 0, INTERNAL, "conformance: memfd_create failed: ", std::strerror(errno));
  return "/proc/self/fd/" + std::to_string(file);
}

}  // namespace

int run(const Options& options) {
  const auto mode = std::find_if(std::begin(kModes), std::end(kModes), [&](auto& m) { return options.mode == m.name; });
  BP_CHECK(mode != std::end(kModes), VALUE, "conformance: found no mode \"", options.mode, "\"");
  BP_CHECK(!options.resume || !options.json.empty(), VALUE,
           "conformance: --resume needs --json FILE; the outcomes so far are in FILE.partial");
  const Clock::time_point start = Clock::now();
  const std::string kept = kept_path(options);
  if (!options.resume) std::ofstream(kept, std::ios::trunc);  // a run may hang before it writes there
  Hangs hangs(options, kept, start);
  const auto job = [&](bool again) {
    Options mine = options;
    mine.resume = options.resume || again;
    const int status = run_here(mine, mode->run, kept, start, again);
    std::error_code error;
    if (!options.json.empty()) fs::remove(kept, error);
    return status;
  };
  return in_own_process(
      job, {options.deadline, [&](const Outcome& hung) { return hangs.go_on(hung); }, [&] { return hangs.stop(); }});
}

}  // namespace backplane::conformance
