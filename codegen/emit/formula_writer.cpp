// See formula_writer.hpp. Semantics are those of dispatcher/record/evaluation.cpp, which a law compares bit for bit.
#include "emit/formula_writer.hpp"

#include <algorithm>
#include <map>

#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

const std::map<std::string, std::string>& dtype_tests() {
  static const std::map<std::string, std::string> tests = {{"is_floating", "BP_MASK_FLOATING"},
                                                           {"is_complex", "BP_MASK_COMPLEX"},
                                                           {"is_integer", "BP_MASK_INTEGER"},
                                                           {"is_bool", "BP_MASK_BOOL"}};
  return tests;
}

const std::map<std::string, std::string>& comparisons_of_ints() {
  static const std::map<std::string, std::string> operators = {{"eq", "=="}, {"ne", "!="}, {"lt", "<"},
                                                               {"le", "<="}, {"gt", ">"},  {"ge", ">="}};
  return operators;
}

}  // namespace

FormulaWriter::FormulaWriter(const CompiledRegistry& registry, const CompiledOp& op, const CompiledFormula& formula)
    : registry_(registry),
      op_(op),
      formula_(formula),
      expressions_(op.program.nodes().size()),
      uses_(op.program.nodes().size(), 0),
      temporary_(op.program.nodes().size(), -1) {
  const std::vector<bool> used = op.program.reachable(formula.roots);
  for (uint32_t i = 0; i < used.size(); ++i)
    if (used[i])
      for (const uint32_t input : node(i).inputs) ++uses_[input];
  for (const uint32_t r : formula.roots) ++uses_[r];
}

// Several targets may be wanted in part, which only the evaluator knows how to serve.
bool FormulaWriter::is_supported() const {
  if (formula_.roots.empty() || formula_.rule == BP_RULE_SHAPE || formula_.rule == BP_RULE_BATCH) return false;
  if (formula_.rule == BP_RULE_VJP && formula_.targets.size() != 1) return false;
  return !(formula_.flags & (BP_FORMULA_TUPLE | BP_FORMULA_PASS_ZEROS));
}

std::optional<std::string> FormulaWriter::write(const std::string& name) {
  if (!is_supported()) return std::nullopt;
  try {
    for (size_t i = 0; i < formula_.roots.size(); ++i) root(formula_.roots[i], i);
  } catch (const Refused&) {
    return std::nullopt;
  }
  std::string text =
      "bp_status BP_CALL " + name + "(const bp_frame* frame, const bp_formula_env* env, bp_value* results) {\n";
  text += "  bp_status status = BP_OK;\n";
  if (n_temporaries_) text += "  bp_value t[" + std::to_string(n_temporaries_) + "] = {{0}};\n";
  text += declarations_ + code_;
  if (n_temporaries_) text += "done:\n  bp_drop(frame, t, " + std::to_string(n_temporaries_) + ");\n";
  // What a formula does not read would be a warning in the generated file.
  return text + "  (void)frame;\n  (void)env;\n  return status;\n}\n";
}

void FormulaWriter::root(uint32_t index, size_t result) {
  const std::string expression = value(index);
  const std::string slot = "results[" + std::to_string(result) + "]";
  if (temporary_[index] >= 0 && uses_[index] == 1) {
    const std::string temporary = "t[" + std::to_string(temporary_[index]) + "]";
    code_ += line(slot + " = " + temporary + ";") + line(temporary + ".tag = BP_TAG_ABSENT;");
  } else {
    code_ += line(slot + " = bp_keep(frame, " + expression + ");");
  }
}

std::string FormulaWriter::value(uint32_t index) {
  if (expressions_[index].empty()) expressions_[index] = compute(index);
  return expressions_[index];
}

std::string FormulaWriter::compute(uint32_t index) {
  const Node& n = node(index);
  const std::string imm = "[" + std::to_string(n.imm) + "]";
  switch (n.kind) {
    case BP_NODE_CONST:
      return literal(index);
    case BP_NODE_ARG: {
      const Arg& arg = op_.entry->signature.args[static_cast<size_t>(n.imm)];
      if (arg.is_tensor() && arg.has(BP_ARG_LIST)) throw Refused{};
      return "env->args" + imm;
    }
    case BP_NODE_OUT:
      if (op_.entry->signature.results[static_cast<size_t>(n.imm)].is_list) throw Refused{};
      return "env->outs" + imm;
    case BP_NODE_COTANGENT:
      return "env->cotangents" + imm;
    case BP_NODE_TANGENT:
      return "env->tangents" + imm;
    case BP_NODE_NEEDS:
      return "bp_bool_value(" + condition(index) + ")";
    case BP_NODE_SHAPE:
      return "bp_shape_of(" + value(n.inputs[0]) + ")";
    case BP_NODE_NDIM:
      return "bp_int_value(" + integer(index) + ")";
    case BP_NODE_DTYPE:
      return "bp_dtype_of(" + value(n.inputs[0]) + ")";
    case BP_NODE_DEVICE:
      if (may_be_number(n.inputs[0])) throw Refused{};
      return "bp_device_of(" + value(n.inputs[0]) + ")";
    case BP_NODE_CALL:
      return call(index);
    case BP_NODE_SELECT: {
      if (node(n.inputs[0]).kind != BP_NODE_CALL) throw Refused{};
      value(n.inputs[0]);
      return "t[" + std::to_string(temporary_[n.inputs[0]] + static_cast<int>(n.imm)) + "]";
    }
    case BP_NODE_FIT:
      return fit(index);
    case BP_NODE_IF:
      return branch(index);
    case BP_NODE_LIST:
      return list(index);
    case BP_NODE_BUILTIN:
      if (name_of(index) == "default")
        return "bp_default_value(" + value(n.inputs[0]) + ", " + value(n.inputs[1]) + ")";
      if (name_of(index) == "conj_of_number") return conj_of_number(n.inputs[0]);
      return "bp_bool_value(" + condition(index) + ")";
    default:
      throw Refused{};
  }
}

std::string FormulaWriter::conj_of_number(uint32_t index) {
  const std::string number = std::to_string(n_variables_++);
  declarations_ += "  bp_value v" + number + ";\n  double parts" + number + "[2];\n";
  code_ += line("v" + number + " = bp_conj_of_number(" + value(index) + ", parts" + number + ");");
  return "v" + number;
}

std::string FormulaWriter::literal(uint32_t index) {
  const Const& c = constant(index);
  switch (c.tag) {
    case BP_TAG_ABSENT:
      return "bp_absent_value()";
    case BP_TAG_BOOL:
      return "bp_bool_value(" + std::to_string(c.integer) + ")";
    case BP_TAG_INT:
      if (c.large) throw Refused{};
      return "bp_int_value(" + c_int(c.integer) + ")";
    case BP_TAG_FLOAT:
      return "bp_float_value(" + c_double(c.number) + ")";
    case BP_TAG_DTYPE:
      return "bp_dtype_value(" + std::to_string(c.integer) + ")";
    case BP_TAG_STRING:
      return "bp_string_value(" + c_string(c.text) + ", " + std::to_string(c.text.size()) + ")";
    default:
      throw Refused{};
  }
}

bool FormulaWriter::is_int(uint32_t index) const {
  const Node& n = node(index);
  if (n.kind == BP_NODE_NDIM) return true;
  if (n.kind == BP_NODE_CONST) return constant(index).tag == BP_TAG_INT && !constant(index).large;
  if (n.kind != BP_NODE_ARG) return false;
  const Arg& arg = op_.entry->signature.args[static_cast<size_t>(n.imm)];
  const bool int_type = arg.type == BP_TYPE_AXIS || arg.type == BP_TYPE_SIZE || arg.type == BP_TYPE_INDEX;
  return int_type && !arg.has(BP_ARG_LIST) && !arg.has(BP_ARG_OPTIONAL);
}

std::string FormulaWriter::integer(uint32_t index) {
  const Node& n = node(index);
  if (!is_int(index)) throw Refused{};
  if (n.kind == BP_NODE_CONST) return c_int(constant(index).integer);
  if (n.kind == BP_NODE_ARG) return "env->args[" + std::to_string(n.imm) + "].u.i";
  return "bp_ndim_of(" + value(n.inputs[0]) + ")";
}

std::string FormulaWriter::condition(uint32_t index) {
  const Node& n = node(index);
  if (n.kind == BP_NODE_CONST && constant(index).tag == BP_TAG_BOOL) return constant(index).integer ? "1" : "0";
  if (n.kind == BP_NODE_NEEDS) return "((env->needs >> " + std::to_string(std::min<int64_t>(n.imm, 63)) + ") & 1)";
  if (n.kind == BP_NODE_ARG && op_.entry->signature.args[static_cast<size_t>(n.imm)].type == BP_TYPE_BOOL &&
      op_.entry->signature.args[static_cast<size_t>(n.imm)].flags ==
          (op_.entry->signature.args[static_cast<size_t>(n.imm)].flags & (BP_ARG_KEYWORD_ONLY | BP_ARG_HAS_DEFAULT)))
    return "(env->args[" + std::to_string(n.imm) + "].u.i != 0)";
  if (n.kind != BP_NODE_BUILTIN) throw Refused{};
  const std::string& name = name_of(index);
  if (name == "present") return "(" + value(n.inputs[0]) + ".tag != BP_TAG_ABSENT)";
  if (name == "not") return "!" + condition(n.inputs[0]);
  // A condition's parts must not have code of their own: the right side may be skipped.
  if (name == "and" || name == "or") {
    const std::string left = condition(n.inputs[0]);
    const std::string before = code_;
    const std::string right = condition(n.inputs[1]);
    if (code_ != before) throw Refused{};
    return "(" + left + (name == "and" ? " && " : " || ") + right + ")";
  }
  if (const auto test = dtype_tests().find(name);
      test != dtype_tests().end() && node(n.inputs[0]).kind == BP_NODE_DTYPE)
    return "((" + test->second + " >> " + value(n.inputs[0]) + ".u.i) & 1)";
  const auto comparison = comparisons_of_ints().find(name);
  if (comparison == comparisons_of_ints().end()) throw Refused{};
  return "(" + integer(n.inputs[0]) + " " + comparison->second + " " + integer(n.inputs[1]) + ")";
}

std::string FormulaWriter::list(uint32_t index) {
  const Node& n = node(index);
  if (n.inputs.empty()) return "bp_int_list(0, 0)";
  if (!std::all_of(n.inputs.begin(), n.inputs.end(), [&](uint32_t i) { return is_int(i); })) throw Refused{};
  const std::string name = "list" + std::to_string(n_variables_++);
  declarations_ += "  int64_t " + name + "[" + std::to_string(n.inputs.size()) + "];\n";
  for (size_t i = 0; i < n.inputs.size(); ++i)
    code_ += line(name + "[" + std::to_string(i) + "] = " + integer(n.inputs[i]) + ";");
  return "bp_int_list(" + name + ", " + std::to_string(n.inputs.size()) + ")";
}

bool FormulaWriter::may_be_number(uint32_t index) const {
  switch (node(index).kind) {
    case BP_NODE_ARG:  // what is differentiated is a tensor
      return !((formula_.rule == BP_RULE_VJP || formula_.rule == BP_RULE_JVP) && formula_.targets.size() == 1 &&
               formula_.targets[0] == node(index).imm);
    case BP_NODE_CALL:
    case BP_NODE_SELECT:
    case BP_NODE_FIT:
    case BP_NODE_OUT:
      return false;
    default:
      return true;
  }
}

// Bit per result that is selected somewhere in this formula.
uint64_t FormulaWriter::wanted(uint32_t index) const {
  const std::vector<bool> used = op_.program.reachable(formula_.roots);
  uint64_t mask = 0;
  for (uint32_t i = 0; i < used.size(); ++i)
    if (used[i] && node(i).kind == BP_NODE_SELECT && node(i).inputs[0] == index) mask |= uint64_t{1} << node(i).imm;
  return mask;
}

std::string FormulaWriter::call(uint32_t index) {
  const Node& n = node(index);
  const Entry* callee = registry_.names->find_full(name_of(index));
  const size_t n_results = callee->signature.results.size();
  if (n_results > 63 || std::any_of(callee->signature.results.begin(), callee->signature.results.end(),
                                    [](const auto& r) { return r.is_list; }))
    throw Refused{};
  std::string args;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    const Arg& param = callee->signature.args[i];
    if (param.is_tensor() && param.has(BP_ARG_LIST)) throw Refused{};
    const std::string expression = value(n.inputs[i]);
    args += (i ? ", " : "") +
            (param.is_tensor() && may_be_number(n.inputs[i]) ? "bp_as_tensor(" + expression + ")" : expression);
  }
  const size_t slot = n_temporaries_;
  n_temporaries_ += n_results;
  temporary_[index] = static_cast<int>(slot);
  const std::string out = "t[" + std::to_string(slot) + "]";
  if (n_results > 1)
    for (size_t r = 0; r < n_results; ++r)
      if (!(wanted(index) >> r & 1)) code_ += line("t[" + std::to_string(slot + r) + "].flags = BP_VALUE_NOT_WANTED;");
  const std::string array = "args" + std::to_string(n_variables_++);
  const std::string count = std::to_string(n.inputs.size());
  code_ += line("{");
  if (!n.inputs.empty()) code_ += line("  const bp_value " + array + "[] = {" + args + "};");
  const uint64_t donated = n_results == 1 ? donated_inputs(index) : 0;
  const std::string operands = "(frame, env->calls[" + std::to_string(n.imm) + "], " +
                               (n.inputs.empty() ? "0" : array) + ", " + count + ", &" + out + ", ";
  code_ += donated ? line("  status = bp_call_donating" + operands + std::to_string(donated) + ");")
                   : line("  status = frame->host->call_op" + operands + std::to_string(n_results) + ");");
  code_ += line("  if (status) goto done;") + line("}");
  for (const uint32_t input : n.inputs) release_donated(index, input);
  return out;
}

// Is it a value that nothing else reads, and that owns its memory?
bool FormulaWriter::is_donated(uint32_t input) const {
  if (temporary_[input] < 0 || uses_[input] != 1 || node(input).kind == BP_NODE_SELECT) return false;
  const Entry* callee = node(input).kind == BP_NODE_CALL ? registry_.names->find_full(name_of(input)) : nullptr;
  return !callee || callee->signature.results.size() == 1;
}

// Bit per input of a call: it is dropped after the call, and the result may take its memory.
uint64_t FormulaWriter::donated_inputs(uint32_t index) const {
  const auto& inputs = node(index).inputs;
  uint64_t bits = 0;
  for (size_t i = 0; i < inputs.size() && i < 64; ++i)
    if (is_donated(inputs[i])) bits |= uint64_t{1} << i;
  return bits;
}

// Memory of a value that nothing else reads goes back before the next call, as in the evaluator.
void FormulaWriter::release_donated(uint32_t index, uint32_t input) {
  if (is_donated(input) && node(index).kind == BP_NODE_CALL)
    code_ += line("bp_drop(frame, &t[" + std::to_string(temporary_[input]) + "], 1);");
}

// The three names stand together at the end; see OpCompiler::prune.
size_t FormulaWriter::first_fit_name() const { return op_.program.names().size() - std::size(kFitNames); }

std::string FormulaWriter::fit(uint32_t index) {
  const Node& n = node(index);
  if (op_.entry->signature.args[static_cast<size_t>(n.imm)].has(BP_ARG_LIST) || may_be_number(n.inputs[0])) {
    const uint16_t kind = node(n.inputs[0]).kind;
    if (kind != BP_NODE_COTANGENT && kind != BP_NODE_TANGENT) throw Refused{};
  }
  if (op_.entry->signature.args[static_cast<size_t>(n.imm)].has(BP_ARG_LIST)) throw Refused{};
  const std::string expression = value(n.inputs[0]);
  const size_t slot = n_temporaries_++;
  temporary_[index] = static_cast<int>(slot);
  const std::string out = "t[" + std::to_string(slot) + "]";
  const uint32_t from = n.inputs[0];
  const bool moves = node(from).kind == BP_NODE_CALL && temporary_[from] >= 0 && uses_[from] == 1;
  code_ += line("status = bp_fit(frame, env->calls + " + std::to_string(first_fit_name()) + ", " +
                (moves ? "bp_move(&" + expression + "), 1" : expression + ", 0") + ", &env->args[" +
                std::to_string(n.imm) + "], &" + out + ");");
  code_ += line("if (status) goto done;");
  return out;
}

// Nodes that only a branch needs are computed inside it; earlier values stay known in it.
std::string FormulaWriter::branch(uint32_t index) {
  const Node& n = node(index);
  const std::string test = condition(n.inputs[0]);
  const std::string result = "v" + std::to_string(n_variables_++);
  declarations_ += "  bp_value " + result + ";\n";
  const std::vector<std::string> outer = expressions_;
  const std::vector<int> outer_temporaries = temporary_;
  code_ += line("if (" + test + ") {");
  for (const size_t side : {size_t{1}, size_t{2}}) {
    ++indent_;
    const std::string expression = value(n.inputs[side]);
    code_ += line(result + " = " + expression + ";");
    --indent_;
    code_ += line(side == 1 ? "} else {" : "}");
    expressions_ = outer;
    temporary_ = outer_temporaries;
  }
  return result;
}

}  // namespace backplane::codegen
