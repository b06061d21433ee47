// A graph as a function whose transforms are graphs too: its derivatives and batches are traced when they are first
// asked for, kept, and run from plans. They are functions of the same kind, so any nesting ends in plans.
//
// A reverse pass is two graphs. What the results need is the forward one, with the values that the rest uses as further
// results; the rest is the backward one, with what a memory budget has computed again. Any thread, any number at once.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "control/structured.hpp"
#include "graph/plans/executable.hpp"

namespace backplane::core {

using DrawStates = std::vector<bp_generator_state>;

class DerivedGraphs {
 public:
  // Without live constants: it uses nothing but its inputs.
  DerivedGraphs(std::shared_ptr<const graph::Graph> graph, std::optional<uint64_t> memory_budget);

  const graph::Graph& graph() const { return executable_.graph(); }
  // A handle like each result, without data.
  const Tensors& result_examples() const { return results_; }
  Tensors run(Args args, const DrawStates& states) { return executable_.run(args, states); }

  struct Reverse {
    std::shared_ptr<DerivedGraphs> forward;   // the results, then further values
    std::shared_ptr<DerivedGraphs> backward;  // from arguments, those values and cotangents
    std::vector<size_t> arguments;            // that the backward graph takes
    std::vector<size_t> cotangents;           // which results' it takes, as its last inputs
    std::vector<std::string> refusals;        // per result: why it has no derivative; empty where it has one
    std::vector<bool> constant;               // per result: no wanted input moves it
    std::vector<uint64_t> moves;              // per input, as GraphFunction::Forward has it
  };
  // `wanted`, per input: a cotangent of it is.
  std::shared_ptr<const Reverse> reverse(const std::vector<bool>& wanted);
  // For a graph that is linear in its last inputs, if some are zero: it takes only the others, by `given`, and
  // nothing is multiplied by the zeros.
  std::shared_ptr<DerivedGraphs> linear_in(const std::vector<bool>& given);
  struct ForwardMode {
    std::shared_ptr<DerivedGraphs> graph;  // from the inputs and the tangents of those that move
    std::vector<size_t> tangents;          // the results that have one; they stand behind the results
  };
  std::shared_ptr<const ForwardMode> forward_mode(const std::vector<bool>& moving);
  // The results among `of` that no followed input moves. The graph computes them from the other inputs alone.
  struct Unmoved {
    std::vector<size_t> results, arguments;
    std::shared_ptr<DerivedGraphs> graph;  // nullptr: there are none
  };
  std::shared_ptr<const Unmoved> unmoved(const std::vector<bool>& followed, std::span<const size_t> of);
  // The batch stands at axis 0, of all results.
  std::shared_ptr<DerivedGraphs> batched(int64_t size, const std::vector<bool>& batched);

 private:
  // The newest first, by their keys.
  template <class Key, class Made>
  struct Cache {
    using List = std::vector<std::pair<Key, std::shared_ptr<Made>>>;
    template <class Make>
    std::shared_ptr<Made> get(const Key& key, Make make);
    std::atomic<std::shared_ptr<const List>> list;
  };
  using Traced = std::function<Tensors(Args, const DrawStates&)>;
  std::shared_ptr<graph::Graph> trace(const char* transform, Args examples, const Traced& function) const;
  Tensors input_examples() const;
  Reverse derive_reverse(const std::vector<bool>& wanted, const std::vector<size_t>& of_results);

  graph::Executable executable_;
  Tensors results_;
  Cache<std::vector<bool>, const Reverse> reverse_;
  Cache<std::vector<bool>, DerivedGraphs> linear_;
  Cache<std::vector<bool>, const Unmoved> unmoved_;
  Cache<std::vector<bool>, const ForwardMode> forward_mode_;
  Cache<std::pair<int64_t, std::vector<bool>>, DerivedGraphs> batched_;
};

// Calls it at the levels that are active, and on the tape.
Tensors call_derived(const std::shared_ptr<DerivedGraphs>& graphs, Args args,
                     const std::shared_ptr<const DrawStates>& states);

}  // namespace backplane::core
