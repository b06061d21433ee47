#include "node_call.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "backplane/abi/op.h"

namespace backplane::jax {
namespace {

bool read_int(const std::string& text, int64_t& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end && !text.empty();
}

bool read_number(const std::string& text, bp_value& number) {
  int64_t integer = 0;
  if (read_int(text, integer)) {
    number = value(integer);
    return true;
  }
  char* stop = nullptr;
  const double real = std::strtod(text.c_str(), &stop);
  if (text.empty() || *stop != '\0') return false;
  number = value(real);
  return true;
}

// How a graph's nodes refer to its inputs, in their order: "%0". The names that inputs have for callers differ.
std::vector<std::string> input_places(const Graph& graph) {
  constexpr std::string_view kInput = "\n  input ";
  const std::string text = graph.text();
  std::vector<std::string> places;
  for (size_t at = text.find(kInput); at != std::string::npos; at = text.find(kInput, at)) {
    at += kInput.size();
    places.push_back(text.substr(at, text.find(' ', at) - at));
  }
  return places;
}

}  // namespace

bool NodeCall::read_ints(const std::string& text, bp_value& list) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  std::vector<int64_t>& ints = lists_.emplace_back();
  for (size_t at = 1; at + 1 < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size() - 1);
    if (!read_int(text.substr(at, end - at), ints.emplace_back())) return false;
    at = text.find_first_not_of(", ", end);
  }
  list = value(Shape(ints));
  return true;
}

bool NodeCall::read(const std::string& text, const bp_arg_def& arg, bp_value& found) {
  const bool is_list = (arg.flags & BP_ARG_LIST) != 0;
  switch (arg.type) {
    case BP_TYPE_TENSOR: {
      if (is_list) return false;
      const auto input = std::find(names_.begin(), names_.end(), text);
      if (input != names_.end()) {
        inputs_.back() = static_cast<int>(input - names_.begin());
        return true;
      }
      if (!read_number(text, found)) return false;
      found = number(found);
      return true;
    }
    case BP_TYPE_SCALAR:
      return !is_list && read_number(text, found);
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX: {
      if (is_list) return !(arg.flags & BP_ARG_OPTIONAL_ELEMENTS) && read_ints(text, found);
      int64_t integer = 0;
      if (!read_int(text, integer)) return false;
      found = value(integer);
      return true;
    }
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      return read_ints(text, found);
    case BP_TYPE_BOOL:
      found = value(text == "true");
      return text == "true" || text == "false";
    default:
      return false;
  }
}

std::optional<NodeCall> NodeCall::of(const Graph& graph) {
  if (graph.size() != 1 || graph.is_dynamic() || !graph.constants().empty() || !graph.generators().empty()) return {};
  const Graph::Node node = graph.node(0);
  const std::vector<Graph::Value> outputs = graph.outputs();
  if (outputs.size() != node.results.size()) return {};
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name != node.results[i].name) return {};
  NodeCall made;
  made.op_ = node.op;
  made.def_ = hold_op_def(node.op);
  if (made.def_->flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW | BP_OP_COMPOSITE)) return {};
  made.names_ = input_places(graph);
  const bp_array& parameters = made.def_->args;
  for (uint32_t i = 0; i < parameters.count; ++i) {
    const auto& arg =
        *reinterpret_cast<const bp_arg_def*>(static_cast<const char*>(parameters.data) + size_t{i} * parameters.stride);
    made.args_.push_back(arg.default_value);
    made.inputs_.push_back(-1);
    const auto stated = std::find_if(node.arguments.begin(), node.arguments.end(),
                                     [&](const auto& argument) { return argument.first == arg.name; });
    if (stated != node.arguments.end() && !made.read(stated->second, arg, made.args_.back())) return {};
    if (stated == node.arguments.end() && !(arg.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL))) return {};
  }
  return made;
}

void NodeCall::call(const bp_value* inputs, bp_value* outputs, size_t n_outputs) const {
  constexpr size_t kMost = 16;
  BP_CHECK(args_.size() <= kMost, NOT_IMPLEMENTED, "backplane.jax: found ", args_.size(),
           " arguments of an op, expected at most ", kMost);
  bp_value args[kMost];
  for (size_t i = 0; i < args_.size(); ++i) args[i] = inputs_[i] < 0 ? args_[i] : inputs[inputs_[i]];
  for (size_t i = 0; i < n_outputs; ++i) outputs[i].flags = BP_VALUE_GIVEN;
  if (const bp_status status =
          call_packed(op_, args, static_cast<int32_t>(args_.size()), outputs, static_cast<int32_t>(n_outputs)))
    throw_last_error(status);
}

}  // namespace backplane::jax
