// In which passes over its elements a row of a fused region is computed: a reduction needs the whole row, so what
// depends on one comes a pass later. What a later pass needs again, it computes again.
//
// Of a program with rows (backplane/plugin/fused_program.hpp). Header-only; constant once it is made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "backplane/plugin/fused_program.hpp"

namespace backplane::plugin {

// How often a variable is computed: once in all, for each row, for each element.
enum class FusedLevel : uint8_t { kOnce, kRow, kElement };

inline FusedLevel level_of(const FusedOperand& operand, const FusedSpace& space) {
  if (operand.uniform()) return FusedLevel::kOnce;
  return operand.covers_none_from(space.outer()) ? FusedLevel::kRow : FusedLevel::kElement;
}

// Positions in the program's lists, in order.
struct FusedPass {
  std::vector<size_t> loads, calls;  // for each element
  std::vector<size_t> reductions;    // that this pass accumulates
  std::vector<size_t> stores;        // of elements
  std::vector<size_t> calls_behind;  // of the row, from what the pass has reduced
};

class FusedPasses {
 public:
  std::vector<FusedLevel> levels;            // per variable
  std::vector<size_t> row_loads, row_calls;  // before the first pass
  std::vector<size_t> row_stores;            // behind the last
  std::vector<size_t> stores_once;
  std::vector<FusedPass> passes;

  explicit FusedPasses(const FusedProgram& program)
      : levels(program.uniform.size(), FusedLevel::kOnce), program_(program), stages_(program.uniform.size(), 0) {
    find_stages();
    place_rows();
    for (size_t s = 0; s < passes.size(); ++s) fill(s);
  }

  // Is the element of a load read in no pass behind the one that writes the element of a store?
  bool is_last_read(size_t load, size_t store) const {
    const auto has = [](const std::vector<size_t>& list, size_t k) {
      return std::find(list.begin(), list.end(), k) != list.end();
    };
    for (size_t s = passes.size(); s-- > 0;) {
      if (has(passes[s].stores, store)) return true;
      if (has(passes[s].loads, load)) return false;
    }
    return false;
  }

 private:
  void find_stages() {
    for (size_t k = 0; k < program_.loads.size(); ++k) {
      const FusedOperand& load = program_.loads[k];
      levels[load.variable] = level_of(load, program_.space);
      if (levels[load.variable] == FusedLevel::kRow) row_loads.push_back(k);
    }
    size_t reduction = 0;
    const auto reduce_up_to = [&](uint32_t variable) {
      for (; reduction < program_.reductions.size() && program_.reductions[reduction].result < variable; ++reduction) {
        const FusedReduction& each = program_.reductions[reduction];
        levels[each.result] = FusedLevel::kRow;
        stages_[each.result] = stages_[each.operand] + 1;
        need_passes(stages_[each.result]);
      }
    };
    for (const FusedCall& call : program_.calls) {
      reduce_up_to(call.result);
      for (const uint32_t arg : call.args) {
        levels[call.result] = std::max(levels[call.result], levels[arg]);
        stages_[call.result] = std::max(stages_[call.result], stages_[arg]);
      }
    }
    reduce_up_to(static_cast<uint32_t>(levels.size()));
    for (const FusedOperand& store : program_.stores)
      if (level_of(store, program_.space) == FusedLevel::kElement) need_passes(stages_[store.variable] + 1);
  }
  void need_passes(size_t count) { passes.resize(std::max(passes.size(), count)); }

  void place_rows() {
    for (size_t k = 0; k < program_.calls.size(); ++k) {
      const uint32_t result = program_.calls[k].result;
      if (levels[result] != FusedLevel::kRow) continue;
      (stages_[result] == 0 ? row_calls : passes[stages_[result] - 1].calls_behind).push_back(k);
    }
    for (size_t k = 0; k < program_.stores.size(); ++k) {
      const FusedLevel level = level_of(program_.stores[k], program_.space);
      if (level == FusedLevel::kElement) continue;
      // One element in all is the row's own where there is one row.
      const bool once = level == FusedLevel::kOnce && levels[program_.stores[k].variable] == FusedLevel::kOnce;
      (once ? stores_once : row_stores).push_back(k);
    }
  }

  void fill(size_t stage) {
    FusedPass& pass = passes[stage];
    std::vector<bool> needed(levels.size(), false);
    for (size_t k = 0; k < program_.reductions.size(); ++k) {
      if (stages_[program_.reductions[k].operand] != stage) continue;
      pass.reductions.push_back(k);
      needed[program_.reductions[k].operand] = true;
    }
    for (size_t k = 0; k < program_.stores.size(); ++k) {
      const FusedOperand& store = program_.stores[k];
      if (level_of(store, program_.space) != FusedLevel::kElement || stages_[store.variable] != stage) continue;
      pass.stores.push_back(k);
      needed[store.variable] = true;
    }
    for (size_t k = program_.calls.size(); k-- > 0;) {
      const FusedCall& call = program_.calls[k];
      if (!needed[call.result] || levels[call.result] != FusedLevel::kElement) continue;
      pass.calls.push_back(k);
      for (const uint32_t arg : call.args) needed[arg] = true;
    }
    std::reverse(pass.calls.begin(), pass.calls.end());
    for (size_t k = 0; k < program_.loads.size(); ++k) {
      const uint32_t variable = program_.loads[k].variable;
      if (needed[variable] && levels[variable] == FusedLevel::kElement) pass.loads.push_back(k);
    }
  }

  const FusedProgram& program_;
  std::vector<size_t> stages_;  // per variable: the pass that can compute it
};

}  // namespace backplane::plugin
