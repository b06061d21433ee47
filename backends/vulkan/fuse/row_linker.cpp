// The shader of a region with rows: pass by pass over the elements that a lane has of its row, between the passes what
// there is one of per row, on every lane alike. A pass is a loop, or, where a lane has few elements, is written once
// for each.
#include "fuse/kept_values.hpp"
#include "fuse/linker.hpp"
#include "fuse/region_writer.hpp"

namespace backplane::vulkan {
namespace {

using namespace spirv;
using plugin::FusedLevel;

constexpr uint32_t kPlain[] =
#include "region_rows.spv.inc"
    ;
constexpr uint32_t kWithFloat64[] =
#include "region_rows_float64.spv.inc"
    ;

const SpirvLibrary& library(bool float64) {
  static const SpirvLibrary plain{SpirvWords(kPlain)};
  static const SpirvLibrary with_float64{SpirvWords(kWithFloat64)};
  return float64 ? with_float64 : plain;
}

std::string with_dtype(std::string name, bp_dtype dtype) { return name + "_" + plugin::dtype_name(dtype); }

class RowWriter : public RegionWriter {
 public:
  RowWriter(const plugin::FusedProgram& program, const plugin::FusedPasses& passes, const RowLayout& layout,
            const SpirvLibrary& library)
      : RegionWriter(program, library, layout.outer.rows.size() + layout.inner.rows.size()),
        passes_(passes),
        layout_(layout),
        lane_passes_(lane_passes(program, passes, layout.each > 0)),
        bases_(layout.outer.reaches.size()),
        values_(program.uniform.size()),
        kept_(program.uniform.size(), std::vector<uint32_t>(layout.each, 0)) {}

  std::vector<uint32_t> run() {
    call(prepare_, layout_.grouped ? "share_to_groups" : "share_to_lanes", {slot(prepare_, slots_of(program_) - 1)});
    write_all_once();
    first_ = call(region_, "first_of_row", {});
    end_ = call(region_, "end_of_row", {});
    step_ = call(region_, "row_step", {});
    find_elements();
    for (size_t k = 0; k < bases_.size(); ++k)
      if (is_used(k)) bases_[k] = reached(region_, layout_.outer, k, slot(region_, k), position_, operand(k).dtype, 0);
    for (const size_t k : passes_.row_loads) values_[operand(k).variable] = load(region_, operand(k).dtype, bases_[k]);
    write_calls(passes_.row_calls);
    for (size_t p = 0; p < passes_.passes.size(); ++p) {
      write_pass(passes_.passes[p], lane_passes_[p]);
      write_calls(passes_.passes[p].calls_behind);
    }
    for (const size_t s : passes_.row_stores)
      if (is_used(program_.loads.size() + s)) store("store_row", s, bases_[program_.loads.size() + s]);
    return module();
  }

 private:
  const plugin::FusedOperand& operand(size_t k) const {
    return k < program_.loads.size() ? program_.loads[k] : program_.stores[k - program_.loads.size()];
  }
  bool is_used(size_t k) const { return layout_.outer.reaches[k] != kUnused; }

  void write_all_once() {
    std::vector<size_t> loads, stores;
    for (size_t k = 0; k < program_.loads.size(); ++k)
      if (passes_.levels[program_.loads[k].variable] == FusedLevel::kOnce) loads.push_back(k);
    for (const size_t s : passes_.stores_once)
      if (is_used(program_.loads.size() + s)) stores.push_back(s);
    write_once(loads, stores);
  }

  Value value(uint32_t variable) {
    return passes_.levels[variable] == FusedLevel::kOnce ? once(variable) : values_[variable];
  }
  void write_calls(const std::vector<size_t>& calls) {
    for (const size_t k : calls) {
      std::vector<Value> args;
      for (const uint32_t arg : program_.calls[k].args) args.push_back(value(arg));
      values_[program_.calls[k].result] = call(region_, program_.calls[k].function, args);
    }
  }
  void store(const char* function, size_t s, Value address) {
    const plugin::FusedOperand& stored = program_.stores[s];
    call(region_, with_dtype(function, stored.dtype), {address, value(stored.variable)});
  }

  void write_pass(const plugin::FusedPass& pass, const LanePass& own) {
    std::vector<Value> totals;  // their pointers and types
    for (const size_t r : pass.reductions) {
      const plugin::FusedReduction& each = program_.reductions[r];
      const Value start = call(region_, with_dtype("start_" + each.function, each.dtype), {});
      const SpirvFunction& join = library_.function(with_dtype("join_" + each.function, each.dtype));
      totals.push_back({new_variable(region_, join.parameter_types[0]), start.type});
      put(region_.code, kStore, {totals.back().id, start.id});
    }
    if (layout_.each == 0) write_loop([&](Value element) { write_element(pass, own, totals, element); });
    for (uint32_t e = 0; e < layout_.each; ++e) write_kept(pass, own, totals, e);
    for (size_t t = 0; t < totals.size(); ++t) {
      const plugin::FusedReduction& each = program_.reductions[pass.reductions[t]];
      values_[each.result] =
          call(region_, with_dtype((layout_.grouped ? "group_" : "lanes_") + each.function, each.dtype),
               {loaded(region_, totals[t].type, totals[t].id)});
    }
  }

  void write_element(const plugin::FusedPass& pass, const LanePass& own, const std::vector<Value>& totals,
                     Value element) {
    for (const size_t k : own.loads)
      values_[operand(k).variable] = load(region_, operand(k).dtype, address(k, element));
    write_calls(own.calls);
    for (size_t t = 0; t < totals.size(); ++t) {
      const plugin::FusedReduction& each = program_.reductions[pass.reductions[t]];
      const Value so_far = loaded(region_, totals[t].type, totals[t].id);
      const Value joined =
          call(region_, with_dtype("join_" + each.function, each.dtype), {so_far, value(each.operand)});
      put(region_.code, kStore, {totals[t].id, joined.id});
    }
    for (const size_t s : pass.stores)
      if (is_used(program_.loads.size() + s)) store("store", s, address(program_.loads.size() + s, element));
  }

  // Element e of the lane, where there is one.
  void write_kept(const plugin::FusedPass& pass, const LanePass& own, const std::vector<Value>& totals, uint32_t e) {
    const uint32_t body = new_id(), behind = new_id();
    put(region_.code, kSelectionMerge, {behind, 0});
    put(region_.code, kBranchConditional, {is_there_[e], body, behind});
    put(region_.code, kLabel, {body});
    for (const uint32_t variable : own.known)
      values_[variable] = loaded(region_, values_[variable].type, kept_[variable][e]);
    write_element(pass, own, totals, elements_[e]);
    for (const uint32_t variable : own.kept) {
      const uint32_t pointer_type = library_.type(kTypePointer, {kInFunction, values_[variable].type});
      kept_[variable][e] = new_variable(region_, pointer_type);
      put(region_.code, kStore, {kept_[variable][e], values_[variable].id});
    }
    put(region_.code, kBranch, {behind});
    put(region_.code, kLabel, {behind});
  }

  void find_elements() {
    Value element = first_;
    for (uint32_t e = 0; e < layout_.each; ++e) {
      if (e > 0) element = add(element, step_);
      elements_.push_back(element);
      is_there_.push_back(is_below(element, end_));
    }
  }
  Value add(Value a, Value b) {
    const Value sum{new_id(), uint_};
    put(region_.code, kIAdd, {uint_, sum.id, a.id, b.id});
    return sum;
  }
  uint32_t is_below(Value a, Value b) {
    const uint32_t result = new_id();
    put(region_.code, kULessThan, {library_.type(kTypeBool, {}), result, a.id, b.id});
    return result;
  }

  Value address(size_t k, Value element) {
    return reached(region_, layout_.inner, k, bases_[k], element, operand(k).dtype, layout_.outer.rows.size());
  }

  // The lane's elements of the row, one after the other.
  template <class Write>
  void write_loop(Write&& body_of) {
    const uint32_t counter = new_variable(region_, library_.type(kTypePointer, {kInFunction, uint_}));
    const uint32_t header = new_id(), check = new_id(), body = new_id(), next = new_id(), behind = new_id();
    std::vector<uint32_t>& code = region_.code;
    put(code, kStore, {counter, first_.id});
    put(code, kBranch, {header});
    put(code, kLabel, {header});
    put(code, kLoopMerge, {behind, next, 0});
    put(code, kBranch, {check});
    put(code, kLabel, {check});
    const Value element = loaded(region_, uint_, counter);
    put(code, kBranchConditional, {is_below(element, end_), body, behind});
    put(code, kLabel, {body});
    body_of(element);
    put(code, kBranch, {next});
    put(code, kLabel, {next});
    put(code, kStore, {counter, add(element, step_).id});
    put(code, kBranch, {header});
    put(code, kLabel, {behind});
  }

  const plugin::FusedPasses& passes_;
  const RowLayout& layout_;
  const std::vector<LanePass> lane_passes_;
  std::vector<Value> bases_;   // per operand: the address of its row, of its one element where it has no more
  std::vector<Value> values_;  // per variable of the program, of the row and of the element at hand
  std::vector<std::vector<uint32_t>> kept_;  // likewise, of each element of a lane: the pointer
  Value first_, end_, step_;
  std::vector<Value> elements_;     // of a lane, where they are few
  std::vector<uint32_t> is_there_;  // are they elements of the row?
};

}  // namespace

std::vector<uint32_t> link_rows(const plugin::FusedProgram& program, const plugin::FusedPasses& passes,
                                const RowLayout& layout, bool float64) {
  return RowWriter(program, passes, layout, library(float64)).run();
}

}  // namespace backplane::vulkan
