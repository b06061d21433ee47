// Calls in formulas: which op or builtin a name means, and how values meet its parameters.
#include <algorithm>

#include "check/formula_compiler.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

using Kind = Type::Kind;

constexpr const char* kConj = "bp::conj";

bool is_tensor_like(const Value& value) { return value.type.is(Kind::kTensor) || value.type.is(Kind::kTensorList); }

}  // namespace

// Some names are both an op and a builtin (`max`, `prod`, `repeat`): tensors decide.
Value FormulaCompiler::call(const Expr& expr) {
  if (const Definition* definition = entry_.shared->find_definition(expr.name)) return expand(expr, *definition);
  const Entry* entry = registry_.find(expr.name, entry_.ns);
  const BuiltinSpec* spec = find_builtin(expr.name);
  if (!entry && !spec) return unknown_call(expr);
  std::vector<Value> positional;
  for (const ExprPtr& child : expr.children) positional.push_back(compile(*child));
  const bool tensors = std::any_of(positional.begin(), positional.end(), is_tensor_like);
  // `len(xs)`, `present(x)` and `default(x, y)` look at Tensors without being ops.
  if (spec && (!entry || (!tensors && expr.keywords.empty()))) return builtin(expr, *spec, std::move(positional));
  return op(expr, *entry, positional);
}

Value FormulaCompiler::unknown_call(const Expr& expr) {
  for (const ExprPtr& child : expr.children) compile(*child);
  for (const Keyword& keyword : expr.keywords) compile(*keyword.value);
  std::vector<std::string_view> names = registry_.names_for(entry_.ns);
  for (const std::string_view name : builtin_names()) names.push_back(name);
  for (const Definition& definition : entry_.shared->definitions) names.push_back(definition.word);
  // x.sum(), np.sin(x)
  const size_t dot = expr.name.find('.');
  const std::string word = expr.name.substr(dot == std::string::npos ? 0 : dot + 1), owner = expr.name.substr(0, dot);
  if (dot != std::string::npos && std::find(names.begin(), names.end(), word) != names.end())
    return fail(expr, "'" + expr.name + "' is not an op, and values have no methods; write " + word +
                          (entry_.signature.find_arg(owner) >= 0 ? "(" + owner + ", ...)" : "(...)"));
  return fail(expr, "unknown op '" + expr.name + "'" + suggestion(expr.name, names) +
                        "; it must be an entry of this file, of namespace bp, or a builtin");
}

// ---- builtins ----

bool FormulaCompiler::parameter(const Expr& expr, const BuiltinSpec& spec, size_t index, char letter, Value& arg) {
  if (arg.type.is(Kind::kAny)) return true;
  if (letter == '?') return true;
  const Expr& at = *expr.children[index];
  const bool lone_int = arg.type.is(Kind::kInt) && !arg.type.optional;
  if (letter == 'x') {
    if (arg.type.is(Kind::kNone) || arg.type.is(Kind::kInts) || arg.type.is(Kind::kInt)) return true;
  } else {
    require_there(at, arg);
    if (arg.type.is(Kind::kAny)) return true;
    if (letter == 'L' && lone_int) {
      arg = {program_.add(BP_NODE_LIST, 0, {arg.node}), Type::of(Kind::kInts)};
      return true;
    }
    const bool fits = letter == 'a' || (letter == 'i' && arg.type.is(Kind::kInt)) ||
                      (letter == 'n' && arg.type.is_number()) || (letter == 'b' && arg.type.is(Kind::kBool)) ||
                      (letter == 'd' && arg.type.is(Kind::kDtype)) ||
                      (letter == 'L' && (arg.type.is(Kind::kInts) || arg.type.is(Kind::kValues))) ||
                      (letter == 'l' && arg.type.is_list());
    if (fits) return true;
  }
  static const std::map<char, std::string> kWords = {{'i', "an int"},      {'n', "a number"},       {'b', "a bool"},
                                                     {'d', "a dtype"},     {'L', "a list of ints"}, {'l', "a list"},
                                                     {'x', "axes or none"}};
  error(at.offset,
        "the builtin '" + std::string(spec.name) + "' takes " + kWords.at(letter) + " here, not " + describe(arg.type));
  return false;
}

Value FormulaCompiler::builtin(const Expr& expr, const BuiltinSpec& spec, std::vector<Value> args) {
  if (!expr.keywords.empty()) {
    error(expr.keywords[0].offset,
          "the builtin '" + std::string(spec.name) + "' takes no keywords; write its arguments in order");
    return reported();
  }
  if (args.size() < spec.least() || (!spec.any_number() && args.size() > spec.params.size()))
    return fail(expr, "the builtin '" + std::string(spec.name) + "' takes " + std::to_string(spec.least()) +
                          " arguments, not " + std::to_string(args.size()));
  bool ok = true;
  std::vector<uint32_t> nodes;
  for (size_t i = 0; i < args.size(); ++i) {
    ok = parameter(expr, spec, i, spec.letter(i), args[i]) && ok;
    nodes.push_back(args[i].node);
  }
  if (!ok) return reported();
  Type type;
  switch (spec.result) {
    case 'i':
      type.kind = Kind::kInt;
      break;
    case 'n':
      type.kind = Kind::kNumber;
      break;
    case 'b':
      type.kind = Kind::kBool;
      break;
    case 'd':
      type.kind = Kind::kDtype;
      break;
    case 'L':
      type.kind = Kind::kInts;
      break;
    case '=':
      type = args[0].type;
      break;
    case 'j':
      type = args[0].type;
      for (const Value& arg : args) type = join(type, arg.type, ok);
      break;
    case 'e':
      type = join(args[0].type, args[1].type, ok);
      type.optional = false;
      if (!ok)
        return fail(expr, "the fallback is " + describe(args[1].type) + ", the value " + describe(args[0].type) +
                              "; give a fallback of the same type");
      break;
    case 's':
      type.kind = args[0].type.is(Kind::kTensor) ? Kind::kTensorList
                  : args[0].type.is(Kind::kInt)  ? Kind::kInts
                  : args[0].type.is(Kind::kNone) ? Kind::kValues
                                                 : Kind::kNumbers;
      type.optional_elements = args[0].type.is(Kind::kNone) || args[0].type.optional;
      break;
    default:
      break;
  }
  return {program_.builtin(std::string(spec.name), std::move(nodes)), type};
}

// ---- ops ----

uint32_t FormulaCompiler::default_of(const Arg& param) {
  const Literal& value = param.default_value;
  switch (value.kind) {
    case Literal::Kind::kNone:
      return program_.absent();
    case Literal::Kind::kBool:
      return program_.constant({BP_TAG_BOOL, value.integer, 0, {}});
    case Literal::Kind::kInt:
      return program_.integer(value.integer);
    case Literal::Kind::kFloat:
      return program_.constant({BP_TAG_FLOAT, 0, value.number, {}});
    case Literal::Kind::kString:
      return program_.constant({BP_TAG_STRING, 0, 0, value.text});
    case Literal::Kind::kDtype:
      return program_.constant({BP_TAG_DTYPE, value.integer, 0, {}});
    default:
      break;
  }
  std::vector<uint32_t> elements;
  for (size_t i = 0; i < value.ints.size(); ++i)
    elements.push_back(value.kind == Literal::Kind::kInts ? program_.integer(value.ints[i])
                                                          : program_.constant({BP_TAG_FLOAT, 0, value.floats[i], {}}));
  return program_.add(BP_NODE_LIST, 0, std::move(elements));
}

// A text that stands in the formula is checked here, others where the op is called.
void FormulaCompiler::refuse_other_word(const Expr& at, const Entry& callee, const Arg& param, uint32_t value) {
  const Node& node = program_.nodes()[value];
  if (param.choices.empty() || node.kind != BP_NODE_CONST) return;
  const Const& word = program_.consts()[static_cast<size_t>(node.imm)];
  if (word.tag == BP_TAG_STRING && !param.may_be(word.text))
    error(at.offset, "'" + param.name + "' of '" + callee.name() + "' is " + listed_choices(param.choices) + ", not '" +
                         word.text + "'");
}

uint32_t FormulaCompiler::pass(const Expr& at, const Entry& callee, const Arg& param, const Value& value) {
  if (fits(value.type, param)) {
    refuse_other_word(at, callee, param, value.node);
    const std::optional<WideInt> known = known_int(value.node);
    if (known && *known > INT64_MAX && param.type > BP_TYPE_SCALAR)
      error(at.offset, "'" + param.name + "' of '" + callee.name() + "' is " + describe(param) +
                           ", which ends at 2**63 - 1; write a smaller one");
    return value.node;
  }
  const bool takes_list = param.has(BP_ARG_LIST) || param.type == BP_TYPE_AXES || param.type == BP_TYPE_SHAPE;
  if (takes_list && value.type.is(Kind::kInt) && !value.type.optional && param.type != BP_TYPE_TENSOR)
    return program_.add(BP_NODE_LIST, 0, {value.node});
  const Node& node = program_.nodes()[value.node];
  if (takes_list && node.kind == BP_NODE_LIST && node.inputs.empty()) return value.node;
  // A list of absent elements has no type of its own.
  const bool all_absent =
      node.kind == BP_NODE_LIST && std::all_of(node.inputs.begin(), node.inputs.end(), [&](uint32_t i) {
        return program_.nodes()[i].kind == BP_NODE_CONST &&
               program_.consts()[static_cast<size_t>(program_.nodes()[i].imm)].tag == BP_TAG_ABSENT;
      });
  if (takes_list && all_absent && param.has(BP_ARG_OPTIONAL_ELEMENTS)) return value.node;
  if (value.type.optional && [&] {
        Value there = value;
        there.type.optional = false;
        return fits(there.type, param);
      }()) {
    error(at.offset, "'" + param.name + "' of '" + callee.name() +
                         "' cannot be none, and this value may be; write it under `... if present(...) else ...`");
  } else {
    error(at.offset, "'" + param.name + "' of '" + callee.name() + "' is " + describe(param) + ", but this is " +
                         describe(value.type) +
                         (param.type == BP_TYPE_SCALAR && value.type.is(Kind::kTensor)
                              ? "; a Scalar is static, use an op that takes a Tensor"
                              : "; pass " + describe(param)));
  }
  return value.node;
}

Value FormulaCompiler::conjugate(const Value& value) {
  const Entry* conj = registry_.find_full(kConj);
  const auto& accepts = entry_.dtypes.accepts;
  const bool complex =
      std::any_of(accepts.begin(), accepts.end(), [](bp_dtype_mask mask) { return (mask & BP_MASK_COMPLEX) != 0; }) ||
      std::any_of(entry_.dtypes.results.begin(), entry_.dtypes.results.end(),
                  [](const bp_result_dtype& r) { return r.kind == BP_RESULT_DTYPE_COMPLEX; });
  const uint16_t kind = program_.nodes()[value.node].kind;
  const bool may_be_number = kind == BP_NODE_ARG || kind == BP_NODE_IF;
  if (!conj || !complex || kind == BP_NODE_CONST || value.type.is(Kind::kInt) || value.type.is(Kind::kBool))
    return value;
  const uint32_t dtype = value.type.is_number() ? program_.builtin("number_dtype", {value.node})
                                                : program_.add(BP_NODE_DTYPE, 0, {value.node});
  const uint32_t condition = program_.builtin("is_complex", {dtype});
  uint32_t conjugated = program_.call(kConj, {value.node});
  if (may_be_number) {  // which stays one, of the precision that its neighbours ask for
    const uint32_t number = program_.builtin("conj_of_number", {value.node});
    conjugated = program_.add(BP_NODE_IF, 0, {program_.builtin("present", {number}), number, conjugated});
  }
  Value result = value;
  result.node = program_.add(BP_NODE_IF, 0, {condition, conjugated, value.node});
  return result;
}

Value FormulaCompiler::op(const Expr& expr, const Entry& callee, const std::vector<Value>& positional) {
  const auto& params = callee.signature.args;
  std::vector<int64_t> nodes(params.size(), -1);
  size_t last = 0;
  for (size_t i = 0; i < positional.size(); ++i) {
    if (i >= params.size() || params[i].has(BP_ARG_KEYWORD_ONLY)) {
      const auto most =
          std::count_if(params.begin(), params.end(), [](const Arg& a) { return !a.has(BP_ARG_KEYWORD_ONLY); });
      return fail(*expr.children[i], "'" + callee.name() + "' takes at most " + std::to_string(most) +
                                         " positional arguments, not " + std::to_string(positional.size()) +
                                         "; its signature is " + callee.signature.text.value);
    }
    nodes[i] = pass(*expr.children[i], callee, params[i], positional[i]);
    last = std::max(last, i + 1);
  }
  for (const Keyword& keyword : expr.keywords) {
    const Value value = compile(*keyword.value);
    const int param = callee.signature.find_arg(keyword.name);
    if (param < 0) {
      std::vector<std::string_view> names;
      for (const Arg& arg : params) names.push_back(arg.name);
      error(keyword.offset, "'" + callee.name() + "' has no argument '" + keyword.name + "'" +
                                suggestion(keyword.name, names) + "; arguments are " + listed(names));
      continue;
    }
    if (nodes[static_cast<size_t>(param)] >= 0)
      error(keyword.offset, "'" + keyword.name + "' of '" + callee.name() + "' is given twice; keep one");
    nodes[static_cast<size_t>(param)] = pass(*keyword.value, callee, params[static_cast<size_t>(param)], value);
    last = std::max(last, static_cast<size_t>(param) + 1);
  }
  if (failed_) return reported();
  std::vector<uint32_t> inputs;
  for (size_t i = 0; i < params.size(); ++i) {
    if (nodes[i] < 0 && !params[i].has(BP_ARG_HAS_DEFAULT))
      return fail(expr, "'" + callee.name() + "' lacks its argument '" + params[i].name + "'; its signature is " +
                            callee.signature.text.value);
    if (i < last) inputs.push_back(nodes[i] < 0 ? default_of(params[i]) : static_cast<uint32_t>(nodes[i]));
  }
  // The rules of conj itself must reach it.
  if (callee.full_name == kConj && entry_.full_name != kConj && positional.size() == 1 &&
      positional[0].type.is(Kind::kTensor))
    return conjugate(positional[0]);
  Type type;
  if (callee.signature.results.size() > 1) {
    type.kind = Kind::kTuple;
    type.op = &callee;
  } else {
    type.kind = callee.signature.results[0].is_list ? Kind::kTensorList : Kind::kTensor;
  }
  return {program_.call(callee.full_name, std::move(inputs)), type};
}

}  // namespace backplane::codegen
