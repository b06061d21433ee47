// A graph of one op as a call of that op, whose results go to memory of the caller.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "backplane/graph.hpp"

namespace backplane::jax {

class NodeCall {
 public:
  // Nothing where the graph is more than one op on its inputs, or an argument is of a kind that this does not read.
  static std::optional<NodeCall> of(const Graph& graph);

  // Tensors of the graph's inputs, and tensors for its results.
  void call(const bp_value* inputs, bp_value* outputs, size_t n_outputs) const;

 private:
  bool read(const std::string& text, const bp_arg_def& arg, bp_value& value);
  bool read_ints(const std::string& text, bp_value& value);

  OpHandle op_ = BP_NO_OP;
  std::shared_ptr<const bp_op_def> def_;  // owns the defaults
  std::vector<bp_value> args_;            // of tensors: empty
  std::vector<int> inputs_;               // per argument: which input it is, or -1
  std::deque<std::vector<int64_t>> lists_;
  std::vector<std::string> names_;  // of the graph's inputs
};

}  // namespace backplane::jax
