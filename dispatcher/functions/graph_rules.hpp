// The rules that a function states, and what follows from them.
#pragma once

#include <memory>

#include "backplane/graph_function.hpp"

namespace backplane::core {

// The function, or where it has forward rules alone, one whose backward is the transpose of its jvp.
// Throws where it has neither, naming the transform.
std::shared_ptr<GraphFunction> with_backward(GraphFunction& function, const char* transform);

// While one lives, this thread's calls of functions with rules of their own run the forward parts of those: so a level
// below differentiates the ops of these, as where a level above calls such a function by itself.
class ByForwardRules {
 public:
  explicit ByForwardRules(bool on = true) noexcept;
  ~ByForwardRules();
  ByForwardRules(const ByForwardRules&) = delete;
  static bool active() noexcept;

 private:
  bool before_;
};

[[noreturn]] void throw_missing_rule(const GraphFunction& function, const char* transform, const char* rule);

}  // namespace backplane::core
