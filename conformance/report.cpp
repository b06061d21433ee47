// The table that ends a run, and its JSON. See outcome.hpp.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backplane/device.hpp"
#include "backplane/plugin/whole_file.hpp"
#include "outcome.hpp"
#include "outcome_json.hpp"

namespace backplane::conformance {
namespace {

constexpr const char* kVerdicts[] = {"pass", "fail", "unsupported", "not offered", "excepted"};

std::string dtype_text(bp_dtype dtype) { return dtype == BP_DTYPE_NONE ? "-" : dtype_name(dtype); }

}  // namespace

std::string place_text(const Outcome& outcome) {
  return fmt::format("{}, sample {}, {}", outcome.check, outcome.sample, dtype_text(outcome.dtype));
}

std::string case_text(const Outcome& outcome) {
  return fmt::format("{}, check \"{}\", sample {}, {}", outcome.op, outcome.check, outcome.sample,
                     outcome.dtype == BP_DTYPE_NONE ? "no dtype" : dtype_name(outcome.dtype));
}

namespace {

// Wrong values may follow from a failure of the device, not the other way round.
bool explains_more(const Outcome& one, const Outcome& other) {
  if (one.stated != other.stated) return one.stated;
  return !one.stated && one.elements < other.elements;
}

}  // namespace

std::map<std::string, Row> rows_of(const std::vector<Outcome>& outcomes) {
  std::map<std::string, Row> rows;
  for (const Outcome& outcome : outcomes) {
    Row& row = rows[outcome.op];
    if (outcome.verdict == Verdict::kPass) ++row.passed;
    if (outcome.verdict == Verdict::kNotOffered) row.unoffered.push_back(&outcome);
    if (outcome.verdict == Verdict::kExcepted) row.excepted.push_back(&outcome);
    if (outcome.verdict == Verdict::kUnsupported && ++row.unsupported && !row.refusal) row.refusal = &outcome;
    if (outcome.verdict == Verdict::kFail && ++row.failed)
      if (!row.worst || explains_more(outcome, *row.worst)) row.worst = &outcome;
    // The first call of a dtype says how it runs: the sample as it is written.
    std::set<Route>& routes = row.routes[outcome.dtype];
    if (outcome.verdict == Verdict::kUnsupported)
      routes.insert(Route::kNone);
    else if (outcome.check == "values" && !outcome.stated && (routes.empty() || *routes.begin() == Route::kNone))
      routes.insert(outcome.route);
    if (routes.empty()) row.routes.erase(outcome.dtype);
    row.seconds = std::max(row.seconds, outcome.seconds);
    row.ratio = std::max(row.ratio, outcome.ratio);
  }
  return rows;
}

std::string routes_text(const Row& row) {
  if (!row.unoffered.empty()) return row.passed + row.failed > 0 ? "offered in part" : "not offered";
  std::map<Route, std::string> dtypes;
  for (const auto& [dtype, routes] : row.routes)
    for (const Route route : routes)
      dtypes[route] += dtype == BP_DTYPE_NONE ? "" : std::string(" ") + dtype_name(dtype);
  std::string text;
  for (const auto& [route, names] : dtypes)
    text += fmt::format("{}{}{}", text.empty() ? "" : "; ", kRouteNames[static_cast<size_t>(route)],
                        dtypes.size() == 1 ? "" : names);
  return text;
}

int report(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes, double seconds,
           bool stopped) {
  size_t passed = 0, failed = 0, unsupported = 0, excepted = 0, ops = 0, width = 4;
  const std::map<std::string, Row> rows = rows_of(outcomes);
  for (const auto& [op, row] : rows) width = std::max(width, op.size());
  fmt::print("{:<{}}  {:>6} {:>6} {:>6}  runs\n", "op", width, "pass", "fail", "unsup.");
  for (const auto& [op, row] : rows) {
    passed += row.passed, failed += row.failed, unsupported += row.unsupported;
    excepted += row.excepted.size();
    ops += row.passed + row.failed + row.unsupported > 0;
    fmt::print("{:<{}}  {:>6} {:>6} {:>6}  {}", op, width, row.passed, row.failed, row.unsupported, routes_text(row));
    if (row.ratio > 0) fmt::print("  {:.1f} us, {:.2f} of the CPU's time", row.seconds * 1e6, row.ratio);
    fmt::print("\n");
    if (row.worst) fmt::print("  FAIL {}: {}\n", place_text(*row.worst), row.worst->text);
    std::map<std::string, std::vector<std::string>> unoffered;  // by what they need
    for (const Outcome* law : row.unoffered) unoffered[law->text].push_back(law->check);
    for (const auto& [needs, checks] : unoffered) fmt::print("  not offered {}: {}\n", fmt::join(checks, ", "), needs);
    for (const Outcome* law : row.excepted) fmt::print("  excepted {}: {}\n", law->check, law->text);
    if (row.refusal) fmt::print("  unsupported {}: {}\n", place_text(*row.refusal), row.refusal->text);
  }
  // A synchronous device offers nothing that the mode async tries.
  const bool offers_nothing =
      !outcomes.empty() && std::all_of(outcomes.begin(), outcomes.end(),
                                       [](const Outcome& one) { return one.verdict == Verdict::kNotOffered; });
  const bool tries_nothing = options.mode == "grad" && passed + failed + unsupported == 0;
  if (tries_nothing && !stopped) fmt::print("nothing to try: the ops have no derivative and no batch rule\n");
  const bool good = failed == 0 && (passed > 0 || offers_nothing || tries_nothing) && !stopped;
  fmt::print("\nconformance {} of {}: {} in {:.1f} s: {} cases of {} ops, {} passed, {} failed, {} unsupported{}\n",
             options.mode, device,
             stopped ? "STOPPED"
             : good  ? "PASS"
                     : "FAIL",
             seconds, passed + failed + unsupported, ops, passed, failed, unsupported,
             excepted ? fmt::format(", {} laws excepted", excepted) : "");
  return good ? 0 : 1;
}

nlohmann::json json_of(const Outcome& outcome) {
  nlohmann::json row{{"op", outcome.op},
                     {"check", outcome.check},
                     {"dtype", dtype_text(outcome.dtype)},
                     {"sample", outcome.sample},
                     {"elements", outcome.elements},
                     {"verdict", kVerdicts[static_cast<size_t>(outcome.verdict)]}};
  if (outcome.route != Route::kNone || outcome.verdict == Verdict::kUnsupported)
    row["runs"] = kRouteNames[static_cast<size_t>(outcome.route)];
  if (!outcome.text.empty()) row["text"] = outcome.text;
  if (outcome.stated) row["stated"] = true;
  if (outcome.seconds > 0) row["seconds"] = outcome.seconds;
  if (outcome.ratio > 0) row["ratio"] = outcome.ratio;
  return row;
}

Outcome outcome_of(const nlohmann::json& row) {
  const auto index_of = [](const auto& names, const std::string& name) {
    return static_cast<size_t>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
  };
  Outcome made{row.at("op"), row.at("check")};
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    if (row.at("dtype") == dtype_name(dtype)) made.dtype = dtype;
  made.sample = row.at("sample");
  made.elements = row.at("elements");
  made.verdict = static_cast<Verdict>(index_of(kVerdicts, row.at("verdict")));
  made.route = static_cast<Route>(index_of(kRouteNames, row.value("runs", std::string("unsupported"))));
  made.text = row.value("text", std::string());
  made.stated = row.value("stated", false);
  made.seconds = row.value("seconds", 0.0);
  made.ratio = row.value("ratio", 0.0);
  return made;
}

void write_json(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes,
                double seconds) {
  nlohmann::json cases = nlohmann::json::array();
  for (const Outcome& outcome : outcomes) cases.push_back(json_of(outcome));
  const nlohmann::json document{{"device", device},
                                {"mode", options.mode},
                                {"contract", fmt::format("{}.{}", BP_ABI_MAJOR, BP_ABI_MINOR)},
                                {"seconds", seconds},
                                {"cases", std::move(cases)}};
  write_report(options.json, document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void write_report(const std::string& path, const std::string& text) {
  try {
    plugin::write_whole_file(path, text);
  } catch (const plugin::FileError& failure) {
    detail::fail(BP_ERROR_VALUE, "conformance: ", path, ": ", failure.what());
  }
}

}  // namespace backplane::conformance
