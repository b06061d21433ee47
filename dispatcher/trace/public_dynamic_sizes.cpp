// The public face of dynamic sizes.
#include "backplane/graph.hpp"

#include <algorithm>
#include <cctype>

#include "backplane/device.hpp"
#include "levels/level.hpp"
#include "trace/dynamic_sizes.hpp"

namespace backplane {

using namespace core;

namespace {

// A name that the text of a graph can hold.
void check_name(const std::string& name) {
  constexpr const char* kTaken[] = {"none", "true",   "false",   "inf",       "nan",   "draw",   "graph",
                                    "axis", "floats", "bools",   "values",    "float", "beyond", "complex",
                                    "of",   "device", "example", "divisible", "by"};
  const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) &&
              std::all_of(name.begin(), name.end(), fits) &&
              std::find(std::begin(kTaken), std::end(kTaken), name) == std::end(kTaken);
  for (bp_dtype d = 0; d < BP_DTYPE_COUNT; ++d) good = good && name != dtype_name(d);
  BP_CHECK(good, VALUE, "dynamic: found the name \"", name,
           "\" of a size; expected letters, digits and underscores, and no word of a graph's text, as \"batch\"");
}

}  // namespace

Graph with_dynamic_sizes(const Graph& traced, std::span<const DynamicSize> dynamic, const TraceAt& trace,
                         GraphOptions options, SizeNotes* notes) {
  SizeNotes none;
  const graph::Graph& first = *traced.get();
  std::vector<graph::NamedSize> named;
  std::vector<int64_t> example;
  for (const DynamicSize& size : dynamic) {
    check_name(size.name);
    BP_CHECK(!size.places.empty(), VALUE, "dynamic: the size \"", size.name, "\" does not belong to a tensor");
    for (const graph::NamedSize& other : named)
      BP_CHECK(other.name != size.name, VALUE, "dynamic: there are two sizes \"", size.name, "\"");
    graph::NamedSize& made = named.emplace_back();
    made.name = size.name;
    for (const auto& [input, axis] : size.places) {
      BP_CHECK(input < first.inputs().size() && axis < first.dims(first.inputs()[input].value).size(), INDEX,
               "dynamic: the size \"", size.name, "\" is declared for input ", input, " at axis ", axis,
               ", which does not exist");
      const int64_t here = first.dims(first.inputs()[input].value)[axis].number();
      if (made.places.empty()) example.push_back(here);
      BP_CHECK(here == example.back(), SHAPE, "dynamic: the size \"", size.name, "\" is ", example.back(), " in ",
               first.inputs()[made.places.empty() ? input : made.places[0].input].name, ", and ", here, " in ",
               first.inputs()[input].name, " at axis ", axis);
      made.places.push_back({input, axis});
    }
  }
  const TraceAtSizes at = [&](const std::vector<int64_t>& sizes) {
    TracedAt found = trace(sizes);
    return TraceOfSizes{found.graph ? found.graph.get() : nullptr, std::move(found.refusal), std::move(found.line),
                        std::move(found.uses)};
  };
  return Graph(trace_dynamic(traced.get(), named, example, at, notes ? notes : &none), std::move(options));
}

Graph make_graph(const Function& function, std::span<const Tensor> examples, std::span<const DynamicSize> dynamic) {
  check_function(function, "make_graph");
  std::vector<std::vector<int64_t>> shapes;
  for (const Tensor& t : examples) shapes.emplace_back(t.shape().begin(), t.shape().end());
  const auto trace = [&] {
    TraceScope scope("make_graph");
    std::vector<Tensor> entered;
    for (size_t i = 0; i < examples.size(); ++i)
      entered.push_back(scope.enter(examples[i], "x" + std::to_string(i), Shape(shapes[i])));
    return scope.leave(function(entered));
  };
  const Graph first = trace();
  if (dynamic.empty()) return first;
  return with_dynamic_sizes(first, dynamic, [&](std::span<const int64_t> sizes) {
    for (size_t s = 0; s < dynamic.size(); ++s)
      for (const auto& [input, axis] : dynamic[s].places) shapes[input][axis] = sizes[s];
    try {
      return TracedAt{trace(), "", {}, {}};
    } catch (const Error& error) {
      return TracedAt{{}, error.what(), {}, {}};
    }
  });
}

}  // namespace backplane
