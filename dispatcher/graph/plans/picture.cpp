#include "graph/plans/picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backplane/device.hpp"
#include "graph/cost.hpp"
#include "graph/text/print.hpp"
#include "memory/devices/device.hpp"
#include "registry/registry.hpp"

namespace backplane::core::graph {
namespace {

constexpr const char* kFills[] = {"#cfe3f6", "#d8efcf", "#f8ddc4", "#e4d6f0", "#f6cfd6", "#d0eeee"};

std::string dot_string(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

std::string shortened(std::string text) {
  constexpr size_t kLongest = 60;
  return text.size() <= kLongest ? text : text.substr(0, kLongest - 3) + "...";
}

class Drawing {
 public:
  Drawing(const PlanData& plan, GraphColors colors)
      : plan_(plan), graph_(*plan.graph), colors_(colors), costs_(costs(graph_, plan.symbols)) {
    const size_t n = graph_.nodes().size();
    devices_.assign(n, nullptr);
    regions_.assign(n, nullptr);
    for (const Step& step : plan.steps) {
      if (step.kind == Step::Kind::kCall) continue;
      devices_[step.node] = step.device;
      if (step.kind != Step::Kind::kRegion) continue;
      for (const NodeId id : step.region->nodes()) devices_[id] = step.device, regions_[id] = step.region;
    }
    for (NodeId id = 0; id < n; ++id) most_ = std::max(most_, amount(id));
  }

  std::string text() {
    out_ = "digraph " + dot_string(graph_.name) +
           " {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, fontname=Helvetica, "
           "fontsize=10];\n  edge [fontname=Helvetica, fontsize=8, color=\"#777777\"];\n";
    for (const Input& input : graph_.inputs()) value(input.value, input.name, "ellipse");
    for (const Constant& c : graph_.constants()) value(c.value, c.name.empty() ? "constant" : c.name, "note");
    for (NodeId id = 0; id < graph_.nodes().size(); ++id)
      if (!graph_.is_erased(id) && !regions_[id]) node(id, "  ");
    size_t number = 0;
    for (const auto& region : plan_.regions) {
      out_ += "  subgraph cluster_" + std::to_string(number++) + " {\n    style=rounded;\n    label=" +
              dot_string(name_of(region->device()) + ", its compiler: " + region->name()) + ";\n";
      for (const NodeId id : region->nodes()) node(id, "    ");
      out_ += "  }\n";
    }
    for (NodeId id = 0; id < graph_.nodes().size(); ++id)
      if (!graph_.is_erased(id))
        Graph::each_value(graph_.arguments(graph_.node(id)), [&](ValueId v) { edge(v, "n" + std::to_string(id)); });
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const std::string name = "o" + std::to_string(i);
      out_ += "  " + name + " [shape=ellipse, label=" + dot_string(name_of_output(i)) + "];\n";
      edge(graph_.outputs[i], name);
    }
    return out_ + "}\n";
  }

 private:
  std::string name_of_output(size_t i) const {
    const size_t n = graph_.n_results();
    if (i < n) return "result " + std::to_string(i);
    const Value& target = graph_.value(graph_.updates[i - n].target);
    if (target.kind == Value::Kind::kInput) return "new " + graph_.inputs()[target.index].name;
    const std::string& name = graph_.constants()[target.index].name;
    return "new " + (name.empty() ? "constant" : name);
  }
  std::string maker(ValueId v) const {
    const Value& value = graph_.value(v);
    return value.node == kNone ? "v" + std::to_string(v) : "n" + std::to_string(value.node);
  }
  void value(ValueId v, const std::string& name, const char* shape) {
    out_ += "  " + maker(v) + " [shape=" + shape +
            ", label=" + dot_string(name + "\n" + type_text(graph_, graph_.type(v))) + "];\n";
  }
  void edge(ValueId v, const std::string& to) {
    const bool made = graph_.value(v).node != kNone;
    out_ += "  " + maker(v) + " -> " + to;
    if (made) out_ += " [label=" + dot_string(type_text(graph_, graph_.type(v))) + "]";
    out_ += ";\n";
  }

  void node(NodeId id, const char* indent) {
    std::string label(graph_.node(id).op->record->name);
    for (const NamedText& argument : argument_texts(graph_, id))
      if (argument.text.find('%') == std::string::npos) label += "\n" + argument.name + "=" + shortened(argument.text);
    if (const std::string cost = text_of(costs_[id]); !cost.empty()) label += "\n" + cost;
    out_ += indent + ("n" + std::to_string(id)) + " [label=" + dot_string(label) +
            ", fillcolor=" + dot_string(fill(id)) + "];\n";
  }

  std::string fill(NodeId id) const {
    if (colors_ == GraphColors::kBackend)
      return devices_[id] ? kFills[devices_[id]->backend->index % std::size(kFills)] : "white";
    // From white to red, by the logarithm: from a thousandth of the most on.
    const uint64_t cost = amount(id);
    if (cost == 0) return "white";
    const double share = std::log(static_cast<double>(cost) * 1000 / static_cast<double>(most_)) / std::log(1000.0);
    const int rest = 255 - static_cast<int>(155 * std::clamp(share, 0.0, 1.0));
    char color[8];
    std::snprintf(color, sizeof color, "#ff%02x%02x", rest, rest);
    return color;
  }

  // Of what the colours show.
  uint64_t amount(NodeId id) const {
    return colors_ == GraphColors::kFlops ? costs_[id].flops.value_or(0) : costs_[id].bytes;
  }

  const PlanData& plan_;
  const Graph& graph_;
  const GraphColors colors_;
  const std::vector<NodeCost> costs_;
  std::vector<const Device*> devices_;  // per node; nullptr: a call or a view
  std::vector<const Region*> regions_;
  uint64_t most_ = 1;
  std::string out_;
};

}  // namespace

std::string picture(const PlanData& plan, GraphColors colors) { return Drawing(plan, colors).text(); }

}  // namespace backplane::core::graph
