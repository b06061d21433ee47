// From a region's nodes to instructions: casts that the core would make are made explicit, and every value gets a slot.
#include <map>

#include "fuse/partition.hpp"
#include "fuse/program.hpp"
#include "fuse/schedule.hpp"

namespace backplane::cpu::fuse {
namespace {

constexpr uint32_t kNone = 0xffffffff;

bp_value float_number(double x) {
  bp_value value{};
  value.tag = BP_TAG_FLOAT;
  value.u.f = x;
  return value;
}

class Lowering {
 public:
  Lowering(const bp_host* host, bp_device device, const GraphView& graph)
      : graph_(graph),
        program_(std::make_unique<Program>()),
        slot_of_value_(graph.n_values(), kNone),
        input_of_value_(graph.n_values(), kNone) {
    program_->host = host;
    program_->n_inputs = static_cast<uint32_t>(graph.inputs().size());
    program_->n_outputs = static_cast<uint32_t>(graph.outputs().size());
    for (uint32_t i = 0; i < graph.n_nodes(); ++i) {
      plans_.push_back(plan_of(graph, i, device));
      BP_CHECK(plans_[i].kind != NodeKind::kNone, NOT_IMPLEMENTED, "the cpu's compiler does not take ",
               graph.node(i).op, ": ", plans_[i].reason);
    }
    for (uint32_t i = 0; i < program_->n_inputs; ++i) input_of_value_[graph.inputs()[i]] = i;
    program_->space = space_of(graph, plans_);
    output_slot_.assign(program_->n_outputs, kNone);
  }

  std::unique_ptr<Program> run() {
    for (uint32_t i = 0; i < graph_.n_nodes(); ++i) emit(i);
    for (uint32_t k = 0; k < program_->n_outputs; ++k)
      if (output_slot_[k] == kNone) copy_to_output(k);
    schedule(*program_, std::move(code_));
    return std::move(program_);
  }

 private:
  const Space& space() const { return program_->space; }
  Slot& slot(uint32_t i) { return program_->slots[i]; }
  uint32_t add(Slot added) {
    program_->widest = std::max(program_->widest, added.item());
    program_->slots.push_back(std::move(added));
    return static_cast<uint32_t>(program_->slots.size() - 1);
  }

  // ---- slots

  // Dims lie in the space from the right; those of prefix form in its rows.
  Slot tensor_slot(Slot::Kind kind, uint32_t at, int64_t value, bool prefix) {
    Slot result{kind, Extent::kUniform, graph_.value(value).dtype, at};
    const Dims dims = graph_.dims(value);
    const size_t span = prefix ? space().outer() : space().dims.size();
    size_t axis = 0;  // one element may have more dims than the space, all of size 1
    while (dims.size() - axis > span && dims[axis] == 1) ++axis;
    BP_CHECK(dims.size() - axis <= span, VALUE, "the cpu's compiler: value ", value, " has more dims than its region");
    result.axes.assign(space().dims.size(), -1);
    for (size_t d = span - (dims.size() - axis); d < span; ++d, ++axis) {
      if (dims[axis] == 1) continue;
      BP_CHECK(dims[axis] == space().dims[d], VALUE, "the cpu's compiler: value ", value,
               " does not broadcast to its region");
      result.axes[d] = static_cast<int32_t>(axis);
      const Extent extent = d >= space().outer() || space().reduced == 0 ? Extent::kFull : Extent::kRow;
      result.extent = std::max(result.extent, extent);
    }
    return result;
  }

  uint32_t operand(int64_t value, bool prefix) {
    if (slot_of_value_[value] != kNone) return slot_of_value_[value];
    const auto [found, fresh] = leaves_.try_emplace({value, prefix}, kNone);
    if (!fresh) return found->second;
    if (const uint32_t input = input_of_value_[value]; input != kNone)
      return found->second = add(tensor_slot(Slot::Kind::kInput, input, value, prefix));
    bp_tensor* constant = graph_.value(value).constant;
    BP_CHECK(constant != nullptr, VALUE, "the cpu's compiler: nothing in the region makes value ", value);
    program_->constants.push_back(constant);
    program_->host->retain(constant);
    const auto at = static_cast<uint32_t>(program_->constants.size() - 1);
    return found->second = add(tensor_slot(Slot::Kind::kConstant, at, value, prefix));
  }

  uint32_t number(bp_dtype dtype, const bp_value& value) {
    program_->numbers.emplace_back();
    store_number(dtype, value, program_->numbers.back().bytes);
    return add({Slot::Kind::kNumber, Extent::kUniform, dtype, static_cast<uint32_t>(program_->numbers.size() - 1)});
  }

  uint32_t temporary(Extent extent, bp_dtype dtype) {
    if (extent == Extent::kUniform) return add({Slot::Kind::kUniform, extent, dtype, program_->n_uniform++});
    return add({Slot::Kind::kBuffer, extent, dtype});
  }

  // How an output of this form is walked.
  Extent extent_of(Form form) const {
    return form == Form::kFull ? Extent::kFull : form == Form::kOnes ? Extent::kUniform : Extent::kRow;
  }

  // Where the result of a node goes: straight to the output that it is, if it has an element there for each of its own.
  uint32_t result_slot(int64_t value, Extent extent) {
    const Form form = space().form_of(graph_.dims(value));
    if (form == Form::kOnes || extent_of(form) == extent)
      for (uint32_t k = 0; k < program_->n_outputs; ++k)
        if (graph_.outputs()[k] == value) {
          Slot output = tensor_slot(Slot::Kind::kOutput, k, value, form == Form::kPrefix);
          output.extent = extent;
          return output_slot_[k] = add(std::move(output));
        }
    return temporary(extent, graph_.value(value).dtype);
  }

  void copy_to_output(uint32_t k) {
    const int64_t value = graph_.outputs()[k];
    const Form form = space().form_of(graph_.dims(value));
    BP_CHECK(form != Form::kOther, VALUE, "the cpu's compiler: output ", k, " does not fit the region");
    const uint32_t from = operand(value, form == Form::kPrefix);
    Slot output = tensor_slot(Slot::Kind::kOutput, k, value, form == Form::kPrefix);
    output.extent = std::max(extent_of(form), form == Form::kOnes ? slot(from).extent : Extent::kUniform);
    emit_cast(from, add(std::move(output)));
  }

  // ---- instructions

  Instruction& push(Instruction::Kind kind, Extent extent, std::initializer_list<uint32_t> slots) {
    Instruction& added = code_.emplace_back();
    added.kind = kind;
    added.extent = extent;
    added.weight = 1;
    for (const uint32_t each : slots) added.slots[added.n_slots++] = each;
    return added;
  }

  void emit_cast(uint32_t from, uint32_t to) {
    push(Instruction::Kind::kCast, slot(to).extent, {to, from}).in_place = true;
  }
  uint32_t cast_to(uint32_t from, bp_dtype dtype) {
    if (slot(from).dtype == dtype) return from;
    const auto [found, fresh] = casts_.try_emplace({from, dtype}, kNone);
    if (!fresh) return found->second;
    found->second = temporary(slot(from).extent, dtype);
    emit_cast(from, found->second);
    return found->second;
  }

  void emit(uint32_t i) {
    const int64_t result = graph_.node(i).results[0];
    const bool prefix = space().form_of(graph_.dims(result)) == Form::kPrefix;
    switch (plans_[i].kind) {
      case NodeKind::kMap:
        return emit_map(i, prefix);
      case NodeKind::kCast: {
        const uint32_t from = operand(plans_[i].operand, prefix);
        slot_of_value_[result] = result_slot(result, slot(from).extent);
        return emit_cast(from, slot_of_value_[result]);
      }
      case NodeKind::kReduce:
        return emit_reduction(i);
      case NodeKind::kColumns:
      case NodeKind::kWhole:
        return emit_over_tiles(i);
      default:
        slot_of_value_[result] =
            operand(plans_[i].operand, space().form_of(graph_.dims(plans_[i].operand)) == Form::kPrefix);
    }
  }

  void emit_map(uint32_t i, bool prefix) {
    const bp_graph_node& node = graph_.node(i);
    const ElementwiseOp& op = plans_[i].map;
    const Elementwise& table = op.row->table;
    const bp_dtype loop = loop_dtype(table, node.compute);
    const auto args = graph_.args(i);
    uint32_t operands[kMostOperands];
    Extent extent = Extent::kUniform;
    for (int k = 0; k < op.tensors; ++k) {
      const bool condition = k == 0 && table.condition_first;
      const bp_dtype dtype = condition ? bp_dtype{BP_BOOL} : node.compute;
      operands[k] = args[k].tag == BP_TAG_REF ? cast_to(operand(args[k].u.i, prefix), dtype) : number(dtype, args[k]);
      if (!condition) operands[k] = cast_to(operands[k], loop);
      extent = std::max(extent, slot(operands[k]).extent);
    }
    for (int k = op.tensors; k < op.tensors + op.scalars; ++k)
      operands[k] = number(is_half(node.compute) ? bp_dtype{BP_FLOAT32} : node.compute, args[k]);
    const int64_t result = node.results[0];
    const uint32_t to = slot_of_value_[result] = result_slot(result, extent);
    const bool through_float = loop != node.compute && is_half(slot(to).dtype);
    const uint32_t made = through_float ? temporary(extent, loop) : to;
    const bool plain = extent == Extent::kFull && (loop == BP_FLOAT32 || loop == BP_FLOAT64);
    const ChainLink* link = plain ? ChainLink::find(node.op) : nullptr;
    if (link != nullptr && link->second != ChainLink::Second::kNone) {
      const uint32_t second = link->second == ChainLink::Second::kOperand ? operands[1]
                              : link->second == ChainLink::Second::kFirst ? operands[0]
                                                                          : number(loop, float_number(link->number));
      Instruction& chain = push(Instruction::Kind::kChain, extent, {made, operands[0], second});
      chain.links[0] = link->link;
      chain.in_place = true;
      chain.weight = kCheapGrain / table.grain;
      return;
    }
    Instruction& map = push(Instruction::Kind::kMap, extent, {made});
    for (int k = 0; k < op.tensors + op.scalars; ++k) map.slots[map.n_slots++] = operands[k];
    map.loop = table.inner[loop];
    if (link != nullptr) map.links[0] = link->link;
    map.weight = kCheapGrain / table.grain;
    map.in_place = (op.row->flags & BP_KERNEL_INPLACE) != 0;
    map.op = node.op;
    if (made != to) emit_cast(made, to);
  }

  void emit_reduction(uint32_t i) {
    const bp_graph_node& node = graph_.node(i);
    const uint32_t from = cast_to(operand(plans_[i].operand, false), reduced_dtype(graph_, i));
    const uint32_t to = slot_of_value_[node.results[0]] = result_slot(node.results[0], Extent::kRow);
    Instruction& reduction = push(Instruction::Kind::kReduce, Extent::kFull, {to, from});
    reduction.reduction = plans_[i].reduction;
    reduction.op = node.op;
    for (const bp_value& arg : graph_.args(i)) {
      const bool kept = arg.tag >= BP_TAG_BOOL && arg.tag <= BP_TAG_FLOAT;
      reduction.numbers.push_back(kept ? arg : bp_value{});
    }
    read_as_rows(from);
  }
  // What reads rows of neighbours may find something else.
  void read_as_rows(uint32_t from) {
    if (slot(from).kind != Slot::Kind::kBuffer || slot(from).extent != Extent::kFull)
      program_->spill_bytes = std::max(program_->spill_bytes, static_cast<uint32_t>(slot(from).item()));
  }

  // A reduction whose result is there when the last tile is.
  void emit_over_tiles(uint32_t i) {
    const bp_dtype dtype = reduced_dtype(graph_, i);
    const int64_t result = graph_.node(i).results[0];
    const bool whole = plans_[i].kind == NodeKind::kWhole;
    for (uint32_t k = 0; k < program_->n_outputs; ++k) {
      if (graph_.outputs()[k] != result) continue;
      const uint32_t from = cast_to(operand(plans_[i].operand, false), dtype);
      if (whole)
        program_->wholes.push_back({plans_[i].whole, dtype, k});
      else
        program_->columns.push_back({plans_[i].columns, dtype, k});
      const size_t at = (whole ? program_->wholes.size() : program_->columns.size()) - 1;
      output_slot_[k] =
          add({whole ? Slot::Kind::kWhole : Slot::Kind::kColumns, Extent::kFull, dtype, static_cast<uint32_t>(at)});
      push(whole ? Instruction::Kind::kWhole : Instruction::Kind::kColumns, Extent::kFull, {output_slot_[k], from}).op =
          graph_.node(i).op;
      read_as_rows(from);
    }
  }

  const GraphView& graph_;
  std::unique_ptr<Program> program_;
  std::vector<NodePlan> plans_;
  std::vector<Instruction> code_;
  std::vector<uint32_t> slot_of_value_;  // of what the region makes
  std::vector<uint32_t> input_of_value_;
  std::vector<uint32_t> output_slot_;                    // per output
  std::map<std::pair<int64_t, bool>, uint32_t> leaves_;  // by value and whether it lies in the rows alone
  std::map<std::pair<uint32_t, bp_dtype>, uint32_t> casts_;
};

}  // namespace

std::unique_ptr<Program> lower(const bp_host* host, bp_device device, const GraphView& region) {
  return Lowering(host, device, region).run();
}

}  // namespace backplane::cpu::fuse
