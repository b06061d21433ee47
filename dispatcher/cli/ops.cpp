// `backplane ops`, `ops --coverage` and `explain`.
#include "cli/ops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "backplane/plugins.hpp"
#include "cli/coverage.hpp"
#include "conformance.hpp"

namespace backplane::cli {
namespace {

std::vector<OpHandle> sorted_ops() {
  std::vector<OpHandle> ops = all_ops();
  std::sort(ops.begin(), ops.end(),
            [](OpHandle a, OpHandle b) { return std::string_view(op_def(a).name) < op_def(b).name; });
  return ops;
}

// Opens all found plugins, so that the tables show every kernel that loads here.
void open_everything() {
  for (const PluginInfo& plugin : backplane::plugins()) {
    if (plugin.state != "found") continue;
    try {
      load_plugin(plugin.path);
    } catch (const Error& error) {
      fmt::print(stderr, "backplane: {}\n", error.what());
    }
  }
}

std::vector<std::string> backend_columns(const std::vector<OpHandle>& ops) {
  std::vector<std::string> names;
  if (!ops.empty())
    for (const BackendRule& rule : backend_rules(ops[0])) names.push_back(rule.backend);
  return names;
}

void print_row(const std::string& name, size_t width, const std::vector<std::string>& cells) {
  fmt::print("{:<{}}", name, width);
  for (const std::string& cell : cells) fmt::print("  {:<13}", cell);
  fmt::print("\n");
}

using Counts = std::map<std::string, int>;

std::string counts_line(const Counts& counts) {
  std::string text;
  for (const auto& [word, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, word);
  return text;
}

// The first line of the help text of an op.
std::string_view summary(const bp_op_def& def) {
  const std::string_view doc = def.doc ? def.doc : "";
  return doc.substr(0, doc.find('\n'));
}

// The part of a name after "::", up to an overload's dot.
std::string_view short_name(std::string_view name) {
  const size_t colons = name.rfind("::");
  const std::string_view rest = colons == std::string_view::npos ? name : name.substr(colons + 2);
  return rest.substr(0, rest.find('.'));
}

}  // namespace

int list_ops() {
  const std::vector<OpHandle> ops = sorted_ops();
  for (const OpHandle op : ops) fmt::print("{:<32}  {}\n", op_def(op).name, summary(op_def(op)));
  fmt::print("{} ops\n", ops.size());
  return 0;
}

int coverage() {
  open_everything();
  const std::vector<OpHandle> ops = sorted_ops();
  size_t width = 4;
  for (const OpHandle op : ops) width = std::max(width, std::string_view(op_def(op).name).size());
  std::vector<std::string> columns(std::begin(kRules), std::end(kRules));
  for (const std::string& backend : backend_columns(ops)) columns.push_back(backend);
  print_row("op", width, columns);
  std::vector<Counts> counts(columns.size());
  bool whole = true;
  for (const OpHandle op : ops) {
    std::vector<std::string> cells;
    for (size_t rule = 0; rule < kRuleCount; ++rule) {
      const Cell cell = rule_cell(op_def(op), rule);
      whole = whole && cell != Cell::kMissing;
      cells.push_back(kCellNames[static_cast<size_t>(cell)]);
    }
    for (const BackendRule& rule : backend_rules(op)) cells.push_back(rule.rule);
    print_row(op_def(op).name, width, cells);
    for (size_t i = 0; i < cells.size(); ++i) ++counts[i][cells[i]];
  }
  fmt::print("\n{} ops\n", ops.size());
  for (size_t i = 0; i < columns.size(); ++i) fmt::print("{:<10} {}\n", columns[i], counts_line(counts[i]));
  return whole ? 0 : 1;
}

namespace {
// By its full name, or all of that short one.
std::vector<OpHandle> ops_named(const std::string& name) {
  std::vector<OpHandle> wanted;
  if (const OpHandle exact = find_op(name); exact != BP_NO_OP) wanted.push_back(exact);
  if (wanted.empty())
    for (const OpHandle op : sorted_ops())
      if (short_name(op_def(op).name) == name) wanted.push_back(op);
  BP_CHECK(!wanted.empty(), VALUE, "explain: found no op ", name, "; `backplane ops` lists them");
  return wanted;
}

void print_placement(const Placement& row) {
  fmt::print("  {:<28}  {:<8}  {:<14}  {:<16}  {:>5}\n", row.op, row.device, row.how, row.plugin, row.calls);
}
}  // namespace

int explain_op(const std::string& name) {
  open_everything();
  for (const OpHandle op : ops_named(name)) fmt::print("{}\n", explain(op));
  return 0;
}

int explain_placement(const std::string& op_name, const std::vector<std::string>& wanted) {
  open_everything();
  std::vector<std::string> names = wanted;
  if (names.empty())
    for (const DeviceInfo& info : devices())
      if (info.device.ordinal == 0) names.push_back(info.name);
  for (const OpHandle op : ops_named(op_name)) {
    for (const std::string& name : names) {
      const bp_device device = parse_device(name);
      fmt::print("{} on {}\n", op_def(op).name, name);
      try {
        const std::vector<Placement> rows = conformance::placement_of(op, device);
        for (const Placement& row : rows) print_placement(row);
        if (rows.empty()) fmt::print("  a view: nothing is computed\n");
      } catch (const Error& error) {
        fmt::print("  refused: {}\n", error.what());
      }
    }
  }
  return 0;
}

}  // namespace backplane::cli
