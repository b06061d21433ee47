// From options to a report. See conformance.hpp.
#include "conformance.hpp"

#include <fmt/format.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>

#include "backplane/checked.hpp"
#include "backplane/device.hpp"
#include "backplane/plugins.hpp"
#include "journal.hpp"
#include "own_process.hpp"
#include "running.hpp"
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
  const auto [outcomes, current] = journal.found();
  report(options, device, outcomes, seconds, true);
  fmt::print("stopped by {} while it tried {}; the table has the results so far.{}\n",
             signal == SIGINT ? "SIGINT" : "SIGTERM", current.empty() ? "the first work" : current,
             options.json.empty() ? "" : " Go on with the same options and --resume");
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

int run_here(const Options& options, Mode* mode) {
  StopSignals signals;
  const bool checked = check_kernels(false);  // on where the environment asks for it
  enable_checked_kernels();
  check_kernels(checked);  // else those of the calls that ask for it
  if (checked) check_every_call();
  report_crashes();
  for (const std::string& plugin : options.plugins) load_plugin(plugin);
  const Subject subject = subject_of(parse_device(options.device));
  warn_about_unused_rows();
  const std::string device = described(subject);
  Journal journal(options, device);
  std::vector<Entry> entries = entries_of(options);
  std::erase_if(entries, [&](const Entry& entry) { return journal.is_done(entry.name); });
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::vector<Outcome> outcomes = journal.restored();
  // The first failure of each op comes at once: a kernel may end the run, or not end, before the report.
  const Progress progress = [&, shown = outcomes.size(), ops = std::set<std::string>()](
                                size_t done, size_t all, const std::string& name) mutable {
    for (; shown < outcomes.size(); ++shown)
      if (outcomes[shown].verdict == Verdict::kFail && ops.insert(outcomes[shown].op).second)
        show_failure(outcomes[shown], terminal);
    journal.begin(name, outcomes);
    if (terminal) show_progress(done, all, name);
  };
  const auto start = std::chrono::steady_clock::now();
  const auto seconds_so_far = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  {
    const StopSignals::Watch watch(
        signals, [&](int signal) { report_stopped(options, device, journal, signal, seconds_so_far()); });
    if (work_ends(subject, outcomes)) mode(subject, entries, options, progress, outcomes);
  }
  const double seconds = seconds_so_far();
  if (terminal) fmt::print(stderr, "\r{:80}\r", "");
  if (!options.json.empty()) write_json(options, device, outcomes, seconds);
  if (!options.html.empty()) write_html(options, device, outcomes, seconds);
  journal.finish();
  return report(options, device, outcomes, seconds);
}

}  // namespace

int run(const Options& options) {
  const auto mode = std::find_if(std::begin(kModes), std::end(kModes), [&](auto& m) { return options.mode == m.name; });
  BP_CHECK(mode != std::end(kModes), VALUE, "conformance: found no mode \"", options.mode, "\"");
  return in_own_process([&] { return run_here(options, mode->run); });
}

}  // namespace backplane::conformance
