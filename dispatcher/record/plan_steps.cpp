#include "record/plan_steps.hpp"

namespace backplane::core {
namespace {

constexpr uint32_t kMostDepth = 200;  // of one node below another: the walk is recursive

class Stepper {
 public:
  explicit Stepper(const FormulaPlan& plan) : plan_(plan), done_(plan.nodes.size(), false) {}

  // False: the list is too long, or the nodes too deep.
  bool add(uint32_t root) { return emit(root, 0); }
  std::vector<PlanStep> take() { return std::move(steps_); }

 private:
  uint32_t input(const PlanNode& node, uint32_t k) const { return plan_.inputs[node.first_input + k] & ~kLastUse; }
  size_t put(PlanStep::Kind kind, uint32_t node, uint32_t other = 0) {
    steps_.push_back({kind, node, other});
    return steps_.size() - 1;
  }
  void land(size_t jump) { steps_[jump].other = static_cast<uint32_t>(steps_.size()); }

  // What a branch computes is not known after it.
  bool branch(uint32_t node, uint32_t depth) {
    const std::vector<bool> before = done_;
    const bool fits = emit(node, depth);
    done_ = before;
    return fits;
  }

  bool emit(uint32_t i, uint32_t depth) {
    if (done_[i]) return true;
    if (depth > kMostDepth || steps_.size() > 4 * plan_.nodes.size() + 16) return false;
    const PlanNode& node = plan_.nodes[i];
    bool fits = true;
    switch (node.kind) {
      case BP_NODE_IF:
        fits = decide(i, node, depth + 1);
        break;
      case kPlanAnd:
      case kPlanOr: {
        fits = emit(input(node, 0), depth + 1);
        const size_t skip = put(node.kind == kPlanOr ? PlanStep::kIfTrue : PlanStep::kIfFalse, input(node, 0));
        fits = fits && branch(input(node, 1), depth + 1);
        land(skip);
        put(PlanStep::kCompute, i);
        break;
      }
      default: {
        // MAP and FOLD demand their bodies, the last input, for each element.
        const bool loops = node.kind == BP_NODE_MAP || node.kind == BP_NODE_FOLD;
        for (uint32_t k = 0; fits && k + loops < node.n_inputs; ++k) fits = emit(input(node, k), depth + 1);
        put(PlanStep::kCompute, i);
      }
    }
    done_[i] = true;
    return fits;
  }

  bool decide(uint32_t i, const PlanNode& node, uint32_t depth) {
    if (!emit(input(node, 0), depth)) return false;
    const size_t other = put(PlanStep::kIfFalse, input(node, 0));
    if (!branch(input(node, 1), depth)) return false;
    put(PlanStep::kTake, i, input(node, 1));
    const size_t end = put(PlanStep::kGo, i);
    land(other);
    if (!branch(input(node, 2), depth)) return false;
    put(PlanStep::kTake, i, input(node, 2));
    land(end);
    return true;
  }

  const FormulaPlan& plan_;
  std::vector<bool> done_;
  std::vector<PlanStep> steps_;
};

}  // namespace

void find_steps(bool each_root, FormulaPlan& plan) {
  if (plan.straight && (!each_root || plan.roots.size() == 1)) return;
  std::vector<std::vector<PlanStep>> lists;
  if (each_root) {
    for (uint32_t root : plan.roots) {
      Stepper stepper(plan);
      if (!stepper.add(root)) return;
      lists.push_back(stepper.take());
    }
  } else {
    Stepper stepper(plan);
    for (uint32_t root : plan.roots)
      if (!stepper.add(root)) return;
    lists.push_back(stepper.take());
  }
  plan.steps = std::move(lists);
}

}  // namespace backplane::core
