#include "trace/size_traces.hpp"

#include <variant>

#include "graph/size_expressions.hpp"
#include "levels/level.hpp"

namespace backplane::core {

SizeTraces::SizeTraces(std::shared_ptr<const graph::Graph> first, std::span<const graph::NamedSize> named,
                       Sizes example, const TraceAtSizes& trace, const SizeNotes& notes)
    : named_(named), example_(std::move(example)), trace_(trace), step_(named.size(), 1), leader_(named.size()) {
  for (size_t i = 0; i < leader_.size(); ++i) leader_[i] = i;
  known_[example_] = {std::move(first), "", {}, notes.uses};
}

const TraceOfSizes& SizeTraces::at(const Sizes& sizes) {
  const auto known = known_.find(sizes);
  return known != known_.end() ? known->second : known_[sizes] = trace_(sizes);
}

Sizes SizeTraces::with(Sizes sizes, size_t i, int64_t size) const {
  for (size_t k = 0; k < sizes.size(); ++k)
    if (leader_[k] == i) sizes[k] = size;
  return sizes;
}

std::string SizeTraces::text(const Sizes& sizes) const {
  std::string all;
  for (size_t i = 0; i < sizes.size(); ++i) all += (i ? ", " : "") + named_[i].name + " = " + std::to_string(sizes[i]);
  return all;
}

TraceDifference SizeTraces::refusal_of(const TraceOfSizes& trace) {
  return {trace.refusal, {trace.line.file, trace.line.function, trace.line.line}};
}

std::optional<TraceDifference> SizeTraces::unlike(std::vector<Sizes> choices, GraphPointer* found) {
  choices.insert(choices.begin(), example_);
  std::vector<std::shared_ptr<const graph::Graph>> traces;
  std::vector<std::span<const SizeUse>> uses;
  for (const Sizes& sizes : choices) {
    const TraceOfSizes& trace = at(sizes);
    if (!trace.graph) return said_at(sizes, refusal_of(trace));
    traces.push_back(trace.graph);
    uses.push_back(trace.uses);
    if (traces.size() == 1) continue;
    try {
      graph::compare(*traces[0], {}, *trace.graph);
    } catch (const graph::Unlike& other) {
      return said_at(sizes, other.difference);
    }
    if (auto other = graph::difference_of_uses(uses[0], trace.uses)) return said_at(sizes, std::move(*other));
  }
  if (!found) return {};
  auto made = graph::unify(traces, named_, choices, uses);
  if (auto* why = std::get_if<TraceDifference>(&made)) return std::move(*why);
  *found = std::move(std::get<GraphPointer>(made));
  return {};
}

std::optional<TraceDifference> SizeTraces::wrong_at(const Sizes& sizes) {
  const TraceOfSizes& trace = at(sizes);
  if (!trace.graph) return said_at(sizes, refusal_of(trace));
  auto found = graph::difference(*graph_, graph::all_symbols(*graph_, sizes), *trace.graph);
  if (!found) found = graph::difference_of_uses(known_.at(example_).uses, trace.uses);
  return found ? said_at(sizes, std::move(*found)) : found;
}

std::optional<TraceDifference> SizeTraces::said_at(const Sizes& sizes, TraceDifference difference) const {
  difference.what = "at " + text(sizes) + ": " + difference.what;
  return difference;
}

bool SizeTraces::has_new_equals(const Sizes& sizes) const {
  for (size_t i = 0; i < sizes.size(); ++i)
    for (size_t k = i + 1; k < sizes.size(); ++k)
      if (sizes[i] == sizes[k] && example_[i] != example_[k]) return true;
  return false;
}

void SizeTraces::refuse(size_t i, const TraceDifference& why) const {
  const std::string at = why.where.line == 0 ? "" : " (" + why.where.file + ":" + std::to_string(why.where.line) + ")";
  const char* small =
      example_[i] > 1 ? "" : "; an example of size 0 or 1 is a special case for many ops, so try 2 or more";
  detail::fail(BP_ERROR_SHAPE, known_.at(example_).graph->name, ": the size \"", named_[i].name,
               "\" cannot be dynamic, because the function depends on its value ", example_[i], ". ", why.what, at,
               ". Fix: leave it out of `dynamic`, or write the function for any size", small);
}

}  // namespace backplane::core
