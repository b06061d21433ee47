// What the kit found: an outcome per call, and the report over all.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backplane/abi/base.h"

namespace backplane::conformance {

// kNotOffered: of what a device need not have, and says nothing of. kExcepted: the entry says why it is not tried.
enum class Verdict : uint8_t { kPass, kFail, kUnsupported, kNotOffered, kExcepted };

// How the device runs an op: its own kernel, kernels of the parts, the host, a view's metadata, or not at all.
enum class Route : uint8_t { kNative, kDecomposed, kHost, kView, kNone };
inline constexpr const char* kRouteNames[] = {"native", "decomposed", "host", "view", "unsupported"};

struct Outcome {
  std::string op;     // or the law of the device that was tried
  std::string check;  // "values", "strided", "leak"
  bp_dtype dtype = BP_DTYPE_NONE;
  size_t sample = 0;
  size_t elements = 0;  // of the arguments: the smallest failing sample is shown
  Verdict verdict = Verdict::kPass;
  Route route = Route::kNone;
  std::string text{};   // of a failure or a refusal
  bool stated = false;  // a failure that the device itself states: it failed, or has no memory
  double seconds = 0;   // of one call, in perf mode
  double ratio = 0;     // to the CPU, in perf mode
};

// "values, sample 0, float32"
std::string place_text(const Outcome& outcome);
// "bp::add, check "values", sample 0, float32"
std::string case_text(const Outcome& outcome);

struct Options {
  std::string device = "cpu";
  std::vector<std::string> plugins;
  std::string op = "*";
  std::string mode = "test";
  std::string json, html;
  bool brief = false;     // one sample per op and class of dtypes
  bool partial = false;   // what the device has no kernel for is listed, not failed
  bool resume = false;    // after a run that was stopped
  double deadline = 300;  // seconds for one step of a case; 0: none
};

// Prints the table of the outcomes. The exit status: 0 when all passed. `stopped`: the run ended before all were tried.
int report(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes, double seconds,
           bool stopped = false);
void write_report(const std::string& path, const std::string& text);
void write_json(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes,
                double seconds);
void write_html(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes,
                double seconds);

// Counts and the failure to show, per op.
struct Row {
  size_t passed = 0, failed = 0, unsupported = 0;
  std::vector<const Outcome*> excepted, unoffered;
  std::map<bp_dtype, std::set<Route>> routes;  // what a device lacks may be met in some samples of a dtype alone
  const Outcome* worst = nullptr;              // the first that the device states, or that with the fewest elements
  const Outcome* refusal = nullptr;            // the first reason of the plugin
  double seconds = 0, ratio = 0;
};
std::map<std::string, Row> rows_of(const std::vector<Outcome>& outcomes);
// "native float32 float64; unsupported complex64"; "not offered"
std::string routes_text(const Row& row);

}  // namespace backplane::conformance
