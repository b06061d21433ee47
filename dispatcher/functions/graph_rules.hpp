// The rules that a function states, and what follows from them.
#pragma once

#include <memory>

#include "backplane/graph_function.hpp"

namespace backplane::core {

class Level;

// The function, or where it has forward rules alone, one whose backward is the transpose of its jvp.
// Throws where it has neither, naming the transform.
std::shared_ptr<GraphFunction> with_backward(GraphFunction& function, const char* transform);

// While one lives, and at the level of the thread at which it was made, calls of functions with rules of their own run
// the forward parts of those: so this level differentiates the ops of these, as where a level above it calls such a
// function by itself. One that is off ends that for calls inside a forward part, which may call its function again.
class ByForwardRules {
 public:
  explicit ByForwardRules(bool on = true) noexcept;
  ~ByForwardRules();
  ByForwardRules(const ByForwardRules&) = delete;
  static bool active() noexcept;

 private:
  const ByForwardRules* outer_;
  const Level* level_;
  bool on_;
};

[[noreturn]] void throw_missing_rule(const GraphFunction& function, const char* transform, const char* rule);

}  // namespace backplane::core
