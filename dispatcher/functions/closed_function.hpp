// Functions that use nothing but their arguments: no tensor from outside, at no level.
//
// So a level has nothing to follow in one but its arguments: where those are none of its own to differentiate or to
// batch, the function goes down to the next level as it is.
#pragma once

#include "backplane/graph_function.hpp"

namespace backplane::core {

class ClosedFunction : public GraphFunction {
 public:
  using GraphFunction::GraphFunction;
  bool takes_empty_zeros() const noexcept override { return true; }
  // Per argument, the results that it moves, as GraphFunction::Forward has it. Empty: all may be moved.
  virtual std::vector<uint64_t> moves() const { return {}; }
  virtual std::vector<uint64_t> forward_moves() const { return {}; }  // in forward mode, which goes through no_grad
  // Before `forward`: which arguments the caller differentiates. Without it, all.
  virtual void follow(std::vector<bool> /*arguments*/) {}
  // Handles of the results' forms, without data, for arguments of these forms. Throws Error where the function does not
  // take these, or the functions that it is made of do not fit each other. Of graphs and of control flow alone.
  virtual std::vector<Tensor> result_forms(std::span<const Tensor> args) const;
};

// Has arguments, behind those that its author knows, for what it uses from outside, which its rules do not cover.
class CoversSome {
 public:
  virtual ~CoversSome() = default;
  virtual bool covers(size_t argument) const = 0;
};
inline bool covers(const GraphFunction& function, size_t argument) {
  const auto* some = dynamic_cast<const CoversSome*>(&function);
  return !some || some->covers(argument);
}

// A function with rules of its own that was traced: like a closed function it uses nothing but its arguments.
class TracedRules : public GraphFunction, public CoversSome {
 public:
  using GraphFunction::GraphFunction;
};

// A function that a level makes of another one for the levels below, around which it pushes itself again.
class DerivedFunction : public GraphFunction, public CoversSome {
 public:
  using GraphFunction::GraphFunction;
};

// Is it what its author wrote, with the rules that were stated for it?
inline bool is_authors_own(const GraphFunction& function) {
  return !dynamic_cast<const ClosedFunction*>(&function) && !dynamic_cast<const DerivedFunction*>(&function);
}

inline bool is_closed(const GraphFunction& function) {
  return dynamic_cast<const ClosedFunction*>(&function) != nullptr;
}

inline bool uses_only_arguments(const GraphFunction& function) {
  return is_closed(function) || dynamic_cast<const TracedRules*>(&function);
}

// Makes the function of a call of an op that has several Graph arguments, or whose Graph argument brings no rules of
// its own: those are the op's. By tag of the op; added by static initialisers. nullptr if the op has no such tag.
struct Call;
using MakeFunction = std::shared_ptr<GraphFunction> (*)(const Call& call);
void add_function_maker(const char* tag, MakeFunction make);
MakeFunction function_maker(const bp_op_def& def);

}  // namespace backplane::core
