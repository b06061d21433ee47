// The report as one page without anything from elsewhere. See outcome.hpp.
#include <fmt/format.h>

#include <sstream>

#include "backplane/device.hpp"
#include "outcome.hpp"

namespace backplane::conformance {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Backplane conformance: {0}</title>
<style>
body {{ font: 15px/1.4 sans-serif; margin: 2em auto; max-width: 90em; padding: 0 1em; color: #222 }}
table {{ border-collapse: collapse; font-size: 13px }}
th {{ position: sticky; top: 0; background: #fff; text-align: left }}
td, th {{ padding: 2px 6px; border-bottom: 1px solid #ddd }}
td.native {{ background: #c9ecd0 }} td.decomposed, td.view {{ background: #e4f4d8 }} td.host {{ background: #fbeec2 }}
td.unsupported, td.not {{ background: #eee; color: #777 }} td.fail {{ background: #f6b9b9 }}
p.pass {{ color: #17692b }} p.fail {{ color: #a01818 }}
</style></head><body>
<h1>{0}</h1>
<p class="{1}"><b>{1}</b>: {2} passed, {3} failed, {4} unsupported, in {5:.1f} s. Mode {6}, contract {7}.{8}.</p>
<p>native: a kernel of the device; decomposed: kernels of the device for its parts; view: no kernel needed; host: on the
processor, by copies; not offered: what a device need not have. Point at a cell for its reason.</p>
<table>
)";

std::string escaped(const std::string& text) {
  std::string made;
  for (const char c : text) {
    if (c == '<')
      made += "&lt;";
    else if (c == '>')
      made += "&gt;";
    else if (c == '&')
      made += "&amp;";
    else if (c == '"')
      made += "&quot;";
    else
      made += c;
  }
  return made;
}

struct Cell {
  std::string text() const {
    return unsupported == 0 || unsupported == cases ? word
                                                    : fmt::format("{}, {} of {} unsupported", word, unsupported, cases);
  }

  std::string word, why;
  size_t cases = 0, unsupported = 0;
};

using Cells = std::map<bp_dtype, Cell>;

std::map<std::string, Cells> cells_of(const std::vector<Outcome>& outcomes) {
  std::map<std::string, Cells> rows;
  for (const Outcome& outcome : outcomes) {
    if (outcome.verdict == Verdict::kExcepted) continue;
    Cell& cell = rows[outcome.op][outcome.dtype];
    const bool failed = outcome.verdict == Verdict::kFail, refused = outcome.verdict == Verdict::kUnsupported;
    ++cell.cases, cell.unsupported += refused;
    if (refused && cell.why.empty()) cell.why = outcome.check + ": " + outcome.text;
    const bool settled = !cell.word.empty() && (refused || cell.word != kRouteNames[static_cast<size_t>(Route::kNone)]);
    if (cell.word == "fail" || (!failed && settled)) continue;
    const Route route = outcome.verdict == Verdict::kUnsupported ? Route::kNone : outcome.route;
    cell.word = failed                                                       ? "fail"
                : outcome.verdict == Verdict::kNotOffered                    ? "not offered"
                : route == Route::kNone && outcome.verdict == Verdict::kPass ? "pass"
                                                                             : kRouteNames[static_cast<size_t>(route)];
    if (failed) cell.why = outcome.check + ": " + outcome.text;
  }
  return rows;
}

}  // namespace

void write_html(const Options& options, const std::string& device, const std::vector<Outcome>& outcomes,
                double seconds) {
  size_t counts[5] = {};
  for (const Outcome& outcome : outcomes) ++counts[static_cast<size_t>(outcome.verdict)];
  std::ostringstream file;
  file << fmt::format(kHead, escaped(device), counts[1] == 0 && counts[0] > 0 ? "pass" : "fail", counts[0], counts[1],
                      counts[2], seconds, options.mode, BP_ABI_MAJOR, BP_ABI_MINOR);
  file << "<tr><th>op</th>";
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype) file << "<th>" << dtype_name(dtype) << "</th>";
  file << "<th>no dtype</th></tr>\n";
  for (const auto& [op, cells] : cells_of(outcomes)) {
    file << "<tr><td>" << escaped(op) << "</td>";
    for (int i = 0; i <= BP_DTYPE_COUNT; ++i) {
      const auto found = cells.find(i < BP_DTYPE_COUNT ? static_cast<bp_dtype>(i) : bp_dtype{BP_DTYPE_NONE});
      if (found == cells.end())
        file << "<td></td>";
      else
        file << "<td class=\"" << found->second.word << "\" title=\"" << escaped(found->second.why) << "\">"
             << found->second.text() << "</td>";
    }
    file << "</tr>\n";
  }
  file << "</table></body></html>\n";
  write_report(options.html, file.str());
}

}  // namespace backplane::conformance
