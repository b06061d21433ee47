// Each variable is computed by the first pass that needs it; see kept_values.hpp.
#include "fuse/kept_values.hpp"

namespace backplane::vulkan {
namespace {

using plugin::FusedLevel;

class Keeping {
 public:
  Keeping(const plugin::FusedProgram& program, const plugin::FusedPasses& passes)
      : program_(program), passes_(passes), made_by_(program.uniform.size(), kNone) {}

  std::vector<LanePass> run() {
    made_.resize(passes_.passes.size());
    for (size_t p = 0; p < made_.size(); ++p) {
      const plugin::FusedPass& pass = passes_.passes[p];
      for (const size_t k : pass.loads)
        if (is_new(program_.loads[k].variable, p)) made_[p].loads.push_back(k);
      for (const size_t k : pass.calls)
        if (is_new(program_.calls[k].result, p)) made_[p].calls.push_back(k);
      for (const size_t k : made_[p].calls)
        for (const uint32_t arg : program_.calls[k].args) need(arg, p);
      for (const size_t k : pass.reductions) need(program_.reductions[k].operand, p);
      for (const size_t k : pass.stores) need(program_.stores[k].variable, p);
    }
    return std::move(made_);
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);

  bool is_new(uint32_t variable, size_t p) {
    if (made_by_[variable] != kNone) return false;
    made_by_[variable] = p;
    return true;
  }
  void need(uint32_t variable, size_t p) {
    if (passes_.levels[variable] != FusedLevel::kElement || made_by_[variable] == p) return;
    add(made_[p].known, variable);
    add(made_[made_by_[variable]].kept, variable);
  }
  static void add(std::vector<uint32_t>& to, uint32_t variable) {
    if (std::find(to.begin(), to.end(), variable) == to.end()) to.push_back(variable);
  }

  const plugin::FusedProgram& program_;
  const plugin::FusedPasses& passes_;
  std::vector<size_t> made_by_;  // per variable: the pass
  std::vector<LanePass> made_;
};

}  // namespace

std::vector<LanePass> lane_passes(const plugin::FusedProgram& program, const plugin::FusedPasses& passes, bool keeps) {
  if (keeps) return Keeping(program, passes).run();
  std::vector<LanePass> all;
  for (const plugin::FusedPass& pass : passes.passes) all.push_back({pass.loads, pass.calls, {}, {}});
  return all;
}

}  // namespace backplane::vulkan
