// What a run of a graph does to tensors beside giving results: the caller's tensors and constants that the function
// changes in place get their new values once all nodes have run. That is what the function itself does as long as none
// of these tensors shares memory with another one that the graph reads.
#pragma once

#include <string>
#include <vector>

#include "backplane/tensor.hpp"
#include "graph/graph.hpp"
#include "graph/view_chain.hpp"

namespace backplane::core::graph {

// "its argument x", for messages.
std::string name_of_target(const Graph& graph, const Update& update);

class Updates {
 public:
  // Of a graph that outlives it.
  explicit Updates(const Graph& graph);
  bool empty() const { return graph_.updates.empty(); }
  // Which tensor that is to be changed shares memory with another one; empty: none does.
  std::string shared_memory(std::span<const Tensor> inputs) const;
  // Throws where that is so.
  void check(std::span<const Tensor> inputs) const;
  // Takes what a run gave, and writes, at the active levels and on the tape; the results are left. Sizes are numbers.
  std::vector<Tensor> carry_out(std::span<const Tensor> inputs, std::vector<Tensor> outputs) const;

 private:
  // A result that is what an update changes, or a view of it.
  struct View {
    size_t result, update;
    ViewChain chain;
  };
  const Tensor& target(std::span<const Tensor> inputs, size_t update) const;
  std::string name_of_value(ValueId value) const;

  const Graph& graph_;
  std::vector<View> views_;
};

}  // namespace backplane::core::graph
