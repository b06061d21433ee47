// What a copied record claims is checked here, so that no later code asks again: a call trusts its record.
//
// Throws Error(BP_ERROR_VALUE) with the op's name and the first fault. Also fills what is derived from the checked
// parts (masks of arguments, resolved shape words and builtins) and normalises arguments (an optional one has a
// default; a default number in a tensor position carries its flag).
#include <algorithm>
#include <bit>

#include "core/builtins.hpp"
#include "core/loop.hpp"
#include "core/op_arena.hpp"
#include "core/shape_rules.hpp"

namespace backplane::core {
namespace {

template <class... Parts>
void require(const OpRecord& op, bool condition, const Parts&... parts) {
  if (!condition) [[unlikely]]
    detail::fail(BP_ERROR_VALUE, "op record '", op.name, "': ", parts...);
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

bool is_number_tag(uint16_t tag) { return tag >= BP_TAG_BOOL && tag <= BP_TAG_COMPLEX; }

uint16_t element_tag(uint16_t type) {
  switch (type) {
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return BP_TAG_INT;
    case BP_TYPE_BOOL:
      return BP_TAG_BOOL;
    case BP_TYPE_STR:
      return BP_TAG_STRING;
    case BP_TYPE_DTYPE:
      return BP_TAG_DTYPE;
    default:
      return BP_TAG_ABSENT;  // no constant of that type exists
  }
}

bool default_fits(const bp_arg_def& arg) {
  const bp_value& value = arg.default_value;
  if (value.tag == BP_TAG_ABSENT) return (arg.flags & BP_ARG_OPTIONAL) != 0;
  const bool takes_numbers = arg.type == BP_TYPE_SCALAR || arg.type == BP_TYPE_TENSOR;
  if (arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_SHAPE) return value.tag == BP_TAG_INT_LIST;
  if (!(arg.flags & BP_ARG_LIST)) {
    if (takes_numbers) return is_number_tag(value.tag);
    if (arg.type == BP_TYPE_SIZE && value.u.i < 0) return false;
    return value.tag == element_tag(arg.type) && value.tag != BP_TAG_ABSENT;
  }
  if (!(value.tag & BP_TAG_LIST)) return false;
  if (value.count == 0) return true;
  if (value.tag == BP_TAG_VALUE_LIST) {
    return std::all_of(value.u.values, value.u.values + value.count, [&](const bp_value& element) {
      if (element.tag == BP_TAG_ABSENT) return (arg.flags & BP_ARG_OPTIONAL_ELEMENTS) != 0;
      return takes_numbers ? is_number_tag(element.tag) : element.tag == element_tag(arg.type);
    });
  }
  const uint16_t element = value.tag & ~BP_TAG_LIST;
  return arg.type == BP_TYPE_SCALAR ? is_number_tag(element) : element == element_tag(arg.type);
}

void verify_arg(const OpRecord& op, bp_arg_def& arg) {
  require(op, is_identifier(arg.name), "the argument name '", arg.name, "' is not an identifier");
  require(op, arg.type >= BP_TYPE_TENSOR && arg.type <= BP_TYPE_GRAPH, "argument '", arg.name,
          "' has the unknown type ", arg.type);
  require(op, !(arg.flags & BP_ARG_LIST) || (arg.type != BP_TYPE_AXES && arg.type != BP_TYPE_SHAPE), "argument '",
          arg.name, "' is a list of lists");
  require(op, (arg.flags & BP_ARG_LIST) || !(arg.flags & BP_ARG_OPTIONAL_ELEMENTS), "argument '", arg.name,
          "' has optional elements but is no list");
  if (arg.flags & BP_ARG_HAS_DEFAULT) {
    require(op, default_fits(arg), "the default of argument '", arg.name, "' is not of the argument's type");
  } else if (arg.flags & BP_ARG_OPTIONAL) {
    arg.default_value = {};
    arg.flags |= BP_ARG_HAS_DEFAULT;
  }
  require(op, arg.since <= op.def.revision, "argument '", arg.name, "' is of revision ", arg.since,
          ", but the signature is of revision ", op.def.revision);
  require(op, arg.since == 0 || (arg.flags & BP_ARG_HAS_DEFAULT), "argument '", arg.name,
          "' was added later and has no default");
  if (arg.type == BP_TYPE_TENSOR && is_number_tag(arg.default_value.tag)) arg.default_value.flags |= BP_VALUE_NUMBER;
}

void verify_args(OpRecord& op) {
  bool keyword_only = false;
  bool has_default = false;
  uint32_t since = 0;
  for (uint32_t i = 0; i < op.args.size(); ++i) {
    bp_arg_def& arg = const_cast<bp_arg_def&>(op.args[i]);  // the arena's, and ours
    verify_arg(op, arg);
    for (uint32_t j = 0; j < i; ++j)
      require(op, std::string_view(arg.name) != op.args[j].name, "two arguments are named '", arg.name, "'");
    require(op, arg.since >= since, "argument '", arg.name, "' is older than the one before it");
    since = arg.since;
    const bool keyword = (arg.flags & BP_ARG_KEYWORD_ONLY) != 0;
    require(op, keyword || !keyword_only, "argument '", arg.name, "' is positional after a keyword-only one");
    keyword_only = keyword;
    if (arg.flags & BP_ARG_HAS_DEFAULT) {
      has_default = true;
    } else {
      require(op, keyword || !has_default, "argument '", arg.name, "' has no default but follows one that has");
      op.n_required = i + 1;
    }
    if (arg.type != BP_TYPE_TENSOR) continue;
    op.tensor_args |= uint64_t{1} << i;
    if (arg.flags & BP_ARG_LIST) op.simple_tensors = false;
  }
}

void verify_accepts(OpRecord& op) {
  const uint64_t all = op.args.size() == 64 ? ~uint64_t{0} : (uint64_t{1} << op.args.size()) - 1;
  require(op, (op.def.promote & ~all) == 0, "`promote` names an argument beyond the last");
  auto* accepts = const_cast<bp_dtype_mask*>(op.accepts.data());
  for (uint32_t i = 0; i < op.args.size(); ++i) {
    const bool tensor = (op.tensor_args >> i) & 1;
    const bool promoted = (op.def.promote >> i) & 1;
    require(op, tensor || op.args[i].type == BP_TYPE_SCALAR || (!accepts[i] && !promoted), "argument '",
            op.args[i].name, "' has a dtype rule but is neither a tensor nor a Scalar");
    if (tensor && !accepts[i]) accepts[i] = BP_MASK_ANY;
    if (!accepts[i]) continue;
    if (promoted) op.promote_accepts &= accepts[i];
    if (!promoted && accepts[i] != BP_MASK_ANY) op.checked_args |= uint64_t{1} << i;
  }
  if (op.checked_args || (op.def.promote != 1 && op.def.promote != 3)) return;
  op.n_alike = static_cast<uint8_t>(std::popcount(op.def.promote));
  op.alike_dtypes = op.promote_accepts;
  if (op.def.dtype_flags & BP_DTYPE_TO_FLOATING) op.alike_dtypes &= BP_MASK_FLOATING | BP_MASK_COMPLEX;
}

bool is_type(const OpRecord& op, uint32_t arg, uint16_t type) {
  return arg < op.args.size() && op.args[arg].type == type;
}

void verify_dtype_rule(const OpRecord& op, const bp_result_dtype& rule) {
  const auto known = [](uint32_t dtype) { return dtype < BP_DTYPE_COUNT; };
  switch (rule.kind) {
    case BP_RESULT_DTYPE_FIXED:
      require(op, known(rule.param), "a result has the unknown dtype ", rule.param);
      break;
    case BP_RESULT_DTYPE_OF_ARG:
      require(op, is_type(op, rule.param, BP_TYPE_TENSOR), "a result's dtype is that of argument ", rule.param,
              ", which is no tensor");
      break;
    case BP_RESULT_DTYPE_FROM_ARG:
      require(op, is_type(op, rule.param, BP_TYPE_DTYPE) && !(op.args[rule.param].flags & BP_ARG_LIST),
              "a result's dtype is given by argument ", rule.param, ", which is no Dtype");
      require(op,
              rule.fallback <= BP_RESULT_DTYPE_ACCUMULATE && rule.fallback != BP_RESULT_DTYPE_OF_ARG &&
                  rule.fallback != BP_RESULT_DTYPE_FROM_ARG,
              "a result's dtype has the fallback ", rule.fallback, ", which needs a parameter or is unknown");
      require(op, rule.fallback != BP_RESULT_DTYPE_FIXED || known(rule.fallback_param),
              "a result's dtype falls back to the unknown dtype ", rule.fallback_param);
      break;
    default:
      require(op, rule.kind <= BP_RESULT_DTYPE_ACCUMULATE, "a result has a dtype rule of the unknown kind ", rule.kind);
  }
}

// Letters of ShapeWord::params; see there.
bool param_fits(const bp_arg_def& arg, char letter) {
  const bool list = (arg.flags & BP_ARG_LIST) != 0;
  switch (letter) {
    case 't':
      return arg.type == BP_TYPE_TENSOR && !list;
    case 'l':
      return arg.type == BP_TYPE_TENSOR && list;
    case 'a':
      return arg.type == BP_TYPE_AXIS && !list;
    case 'x':
      return arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_AXIS;
    case 's':
      return arg.type == BP_TYPE_SHAPE || arg.type == BP_TYPE_SIZE ||
             (list && (arg.type == BP_TYPE_INDEX || arg.type == BP_TYPE_AXIS));
    case 'i':
      return (arg.type == BP_TYPE_INDEX || arg.type == BP_TYPE_SIZE) && list;
    case 'n':
      return (arg.type == BP_TYPE_SIZE || arg.type == BP_TYPE_INDEX) && !list;
    case 'b':
      return arg.type == BP_TYPE_BOOL && !list;
    default:
      return false;
  }
}

void verify_word(const OpRecord& op, const bp_shape_rule& rule, const ShapeWord& word) {
  require(op, rule.n_args >= word.min_args && (rule.n_args <= word.max_args || word.max_args == 255), "the shape rule ",
          rule.name, " reads ", rule.n_args, " arguments; it takes ", int{word.min_args}, " to ", int{word.max_args});
  for (uint32_t i = 0; i < rule.n_args; ++i) {
    const char letter = word.params[std::min<size_t>(i, word.params.size() - 1)];
    const bool may_lack = letter >= 'A' && letter <= 'Z';
    const uint32_t arg = rule.args[i];
    if (arg == BP_NO_ARG) {
      require(op, may_lack, "the shape rule ", rule.name, " needs its argument ", i);
      continue;
    }
    require(op, arg < op.args.size() && param_fits(op.args[arg], may_lack ? static_cast<char>(letter + 32) : letter),
            "the shape rule ", rule.name, " cannot read argument ", arg, " in its place ", i);
  }
  const bool view = (op.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  if (word.batch == BatchClass::kView)
    require(op, view && op.def.alias == rule.args[0], "the shape rule ", rule.name,
            " makes a view, but the op does not say that it aliases that argument");
}

void verify_shape_rule(OpRecord& op, const bp_shape_rule& rule) {
  const std::string_view name = rule.name;
  const ShapeWord* word = nullptr;
  if (name == "dynamic") {
    require(op, (op.def.flags & BP_OP_DYNAMIC) != 0, "a dynamic shape rule on an op that is not flagged dynamic");
  } else if (name == "function") {
    require(op, rule.fn != nullptr, "the shape rule `function` has no function");
  } else if (name == "expr") {
    op.shape_formula = op.find_formula(BP_RULE_SHAPE);
    require(op, op.shape_formula != nullptr, "the shape rule `expr` needs a SHAPE formula");
  } else {
    word = find_shape_word(name);
    require(op, word != nullptr, "there is no shape rule '", name, "'");
    verify_word(op, rule, *word);
  }
  op.shape_words.push_back(word);
}

void verify_flags(const OpRecord& op) {
  const uint64_t flags = op.def.flags;
  const bool view = (flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW)) != 0;
  if (view) {
    require(op, is_type(op, op.def.alias, BP_TYPE_TENSOR) && !(op.args[op.def.alias].flags & BP_ARG_LIST),
            "a view's `alias` must be a tensor argument");
    require(op, op.results.size() == 1, "a view has one result");
    require(op, op.shape_words[0] && op.shape_words[0]->batch == BatchClass::kView, "a view needs a view.* shape rule");
  }
  if (flags & (BP_OP_ELEMENTWISE | BP_OP_REDUCTION)) {
    const size_t operands = op.results.size() + static_cast<size_t>(std::popcount(op.tensor_args));
    require(op, op.simple_tensors && operands <= kMaxLoopOperands,
            "an elementwise op or reduction takes no tensor lists and at most ", kMaxLoopOperands, " operands");
    require(op, (flags & BP_OP_ELEMENTWISE) || op.tensor_args != 0, "a reduction needs a tensor");
  }
  require(op, !(flags & BP_OP_INPLACE) || op.tensor_args, "an in-place variant needs a tensor argument");
}

void verify_formula(const OpRecord& op, const bp_formula& formula) {
  const uint32_t n_nodes = op.def.program->n_nodes;
  require(op, formula.rule >= BP_RULE_VJP && formula.rule <= BP_RULE_SHAPE, "a formula has the unknown rule ",
          formula.rule);
  for (uint32_t i = 0; i < formula.n_targets; ++i)
    require(op, formula.targets[i] < op.args.size(), "a formula is for argument ", formula.targets[i],
            " beyond the last");
  for (uint32_t i = 0; i < formula.n_roots; ++i)
    require(op, formula.roots[i] < n_nodes, "a formula's root is node ", formula.roots[i], " of ", n_nodes);
  require(op, !(formula.flags & BP_FORMULA_REFUSED) || (formula.text && *formula.text),
          "a rule is refused without a reason");
  const uint16_t rootless = BP_FORMULA_ZERO | BP_FORMULA_REFUSED | BP_FORMULA_LOOP;
  uint32_t roots = formula.rule == BP_RULE_VJP ? formula.n_targets : static_cast<uint32_t>(op.results.size());
  if (formula.rule == BP_RULE_PUT || (formula.flags & BP_FORMULA_TUPLE)) roots = 1;
  const bool derived_batch = formula.rule == BP_RULE_BATCH && (formula.flags & BP_FORMULA_DERIVED) && !formula.n_roots;
  if ((formula.flags & rootless) || derived_batch) roots = 0;
  require(op, formula.n_roots == roots, "a formula of rule ", formula.rule, " has ", formula.n_roots,
          " roots; expected ", roots);
  require(op,
          !(formula.flags & BP_FORMULA_TUPLE) || roots == 0 ||
              (formula.rule != BP_RULE_PUT && formula.rule != BP_RULE_SHAPE),
          "only derivatives, decompositions and batch rules give tuples");
  if ((formula.flags & BP_FORMULA_TUPLE) && roots)
    require(op, op.def.program->nodes[formula.roots[0]].kind == BP_NODE_CALL,
            "a formula that gives a tuple must be the call of an op");
}

struct Arity {
  uint16_t least, most;
};
Arity arity(uint16_t kind) {
  switch (kind) {
    case BP_NODE_SHAPE:
    case BP_NODE_NDIM:
    case BP_NODE_DTYPE:
    case BP_NODE_DEVICE:
    case BP_NODE_SELECT:
    case BP_NODE_FIT:
      return {1, 1};
    case BP_NODE_CALL:
      return {0, kMaxArgs};
    case BP_NODE_BUILTIN:
      return {1, kMaxArgs};
    case BP_NODE_IF:
    case BP_NODE_FOLD:
      return {3, 3};
    case BP_NODE_LIST:
      return {0, kMaxNodes};
    case BP_NODE_MAP:
      return {2, 2};
    default:
      return {0, 0};
  }
}

// How many values an immediate may number.
int64_t bound_of_imm(const OpRecord& op, const bp_node& node) {
  const bp_program& program = *op.def.program;
  switch (node.kind) {
    case BP_NODE_CONST:
      return program.n_consts;
    case BP_NODE_ARG:
    case BP_NODE_TANGENT:
    case BP_NODE_NEEDS:
    case BP_NODE_BATCHED:
    case BP_NODE_FIT:
      return static_cast<int64_t>(op.args.size());
    case BP_NODE_OUT:
    case BP_NODE_COTANGENT:
      return static_cast<int64_t>(op.results.size());
    case BP_NODE_CALL:
    case BP_NODE_BUILTIN:
      return program.n_names;
    case BP_NODE_SELECT:
      return kMaxNodes;
    case BP_NODE_MAP:
    case BP_NODE_VAR:
      return 64;
    case BP_NODE_FOLD:
      return 63;  // imm + 1 is a slot too
    default:
      return INT64_MAX;
  }
}

void verify_node(OpRecord& op, uint32_t index) {
  const bp_program& program = *op.def.program;
  const bp_node& node = program.nodes[index];
  require(op, node.kind >= BP_NODE_CONST && node.kind <= BP_NODE_FIT, "node ", index, " has the unknown kind ",
          node.kind);
  const Arity allowed = arity(node.kind);
  require(op, node.n_inputs >= allowed.least && node.n_inputs <= allowed.most, "node ", index, " of kind ", node.kind,
          " has ", node.n_inputs, " inputs");
  require(op, uint64_t{node.first_input} + node.n_inputs <= program.n_inputs, "the inputs of node ", index,
          " lie beyond the last");
  for (uint32_t i = 0; i < node.n_inputs; ++i)
    require(op, program.inputs[node.first_input + i] < index, "node ", index, " reads node ",
            program.inputs[node.first_input + i], ", which is not an earlier one");
  const int64_t bound = bound_of_imm(op, node);
  require(op, bound == INT64_MAX || (node.imm >= 0 && node.imm < bound), "node ", index, " of kind ", node.kind,
          " has the immediate ", node.imm, "; it must be below ", bound);
  if (node.kind == BP_NODE_FIT)
    require(op, op.def.fit_names != nullptr && ((op.tensor_args >> node.imm) & 1), "node ", index,
            " is a FIT, which needs fit_names and a tensor argument");
  if (node.kind != BP_NODE_BUILTIN && node.kind != BP_NODE_CALL) return;
  const char* name = program.names[node.imm];
  const Builtin* builtin = find_builtin(name);
  if (node.kind == BP_NODE_CALL) {
    require(op, !builtin, "node ", index, " calls the builtin ", name, " as an op");
    return;
  }
  require(op, builtin != nullptr, "there is no builtin '", name, "'");
  require(op, node.n_inputs >= builtin->min_args && node.n_inputs <= builtin->max_args, "the builtin ", name, " takes ",
          int{builtin->min_args}, " to ", int{builtin->max_args}, " values, not ", node.n_inputs);
  op.builtins[static_cast<size_t>(node.imm)] = builtin;
}

}  // namespace

void verify_name(std::string_view name) {
  const size_t colons = name.find("::");
  std::string_view base = colons == std::string_view::npos ? std::string_view{} : name.substr(colons + 2);
  const size_t dot = base.find('.');
  const bool overload_fits = dot == std::string_view::npos || is_identifier(base.substr(dot + 1));
  if (dot != std::string_view::npos) base = base.substr(0, dot);
  BP_CHECK(
      colons != std::string_view::npos && is_identifier(name.substr(0, colons)) && is_identifier(base) && overload_fits,
      VALUE, "op record '", name, "': the name must be namespace::name or namespace::name.overload");
}

void verify_signature(OpRecord& op) {
  verify_args(op);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const bp_result_def& result = op.results[i];
    require(op, is_identifier(result.name), "the result name '", result.name, "' is not an identifier");
    require(op, result.type == BP_TYPE_TENSOR, "result '", result.name, "' has the type ", result.type,
            "; results are tensors");
    for (size_t j = 0; j < i; ++j)
      require(op, std::string_view(result.name) != op.results[j].name, "two results are named '", result.name, "'");
  }
  require(op, !op.results.empty(), "it has no result");
  verify_accepts(op);
  require(op, op.dtypes.size() == op.results.size(), "it has ", op.results.size(), " results but ", op.dtypes.size(),
          " dtype rules");
  for (const bp_result_dtype& rule : op.dtypes) verify_dtype_rule(op, rule);
}

void verify_program(OpRecord& op) {
  op.builtins.assign(op.def.program->n_names, nullptr);
  for (uint32_t i = 0; i < op.def.program->n_nodes; ++i) verify_node(op, i);
}

void verify_rules(OpRecord& op) {
  for (const bp_formula& formula : op.formulas) verify_formula(op, formula);
  require(op, op.shapes.size() == op.results.size(), "it has ", op.results.size(), " results but ", op.shapes.size(),
          " shape rules");
  for (const bp_shape_rule& rule : op.shapes) verify_shape_rule(op, rule);
  verify_flags(op);
}

}  // namespace backplane::core
