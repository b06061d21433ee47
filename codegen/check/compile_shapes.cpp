// Shape rules of one entry: words with their arguments, or formulas that give a list of ints. See op_compiler.hpp.
#include <algorithm>

#include "backplane/abi/vocabulary.h"
#include "check/names.hpp"
#include "check/op_compiler.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

bool param_fits(const Arg& arg, char letter) { return bp_shape_param_fits(arg.type, arg.flags, letter) != 0; }

std::string letter_word(char letter) {
  switch (letter) {
    case 't':
      return "a Tensor argument";
    case 'l':
      return "a Tensor[] argument";
    case 'a':
      return "an Axis argument";
    case 'x':
      return "an Axes or Axis argument";
    case 's':
      return "a Shape, Size or Size[] argument";
    case 'i':
      return "an Index[] argument";
    case 'n':
      return "a Size or Index argument";
    case 'd':
      return "a Dtype argument";
    default:
      return "a bool argument";
  }
}

// Sizes that are invalid in every call.
void refuse_sizes(FormulaCompiler& compiler, const Program& program, const Expr& expr, uint32_t at) {
  const Node& node = program.nodes()[at];
  const bool joined = expr.kind == Expr::Kind::kBinary && node.kind == BP_NODE_BUILTIN;
  if ((!joined && (expr.kind != Expr::Kind::kList || node.kind != BP_NODE_LIST)) ||
      node.inputs.size() != expr.children.size())
    return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (joined) {
      refuse_sizes(compiler, program, *expr.children[i], node.inputs[i]);
      continue;
    }
    const std::optional<WideInt> size = compiler.known_int(node.inputs[i]);
    if (!size || (*size >= 0 && *size <= INT64_MAX)) continue;
    const std::string found =
        *size < 0 ? std::to_string(static_cast<int64_t>(*size)) : std::to_string(static_cast<uint64_t>(*size));
    compiler.error(expr.children[i]->offset, "a size is " + found + " in every call; it has to be from 0 to 2**63 - 1");
  }
}

}  // namespace

void OpCompiler::compile_shapes() {
  CompiledFormula shape;
  shape.rule = BP_RULE_SHAPE;
  bool any = false;
  for (const ShapeSpec& spec : entry_.shapes) {
    CompiledShape out;
    if (!spec.expr) {
      out.name = "damaged";
    } else if (spec.expr->kind == Expr::Kind::kCall &&
               (find_shape_word(spec.expr->name) ||
                (!find_builtin(spec.expr->name) && !entry_.shared->find_definition(spec.expr->name)))) {
      compile_shape_word(spec, out);
    } else if (spec.expr->kind == Expr::Kind::kName && spec.expr->name == "dynamic") {
      out.name = "dynamic";
    } else {
      out.name = "expr";
      FormulaCompiler expression = compiler(spec.text, *spec.expr, BP_RULE_SHAPE);
      const Value value = expression.compile(*spec.expr);
      if (!value.type.is(Type::Kind::kAny) && (!value.type.is(Type::Kind::kInts) || value.type.optional))
        expression.error(spec.expr->offset,
                         "the shape is " + describe(value.type) + "; it must be a list of ints, e.g. x.shape + [n]");
      else if (!expression.failed())
        refuse_sizes(expression, op_.program, *spec.expr, value.node);
      shape.roots.resize(op_.shapes.size(), value.node);
      shape.roots.push_back(value.node);
      shape.text = whole_text(entry_, spec.text, spec.expr.get());
      shape.line = spec.text.location().line;
      any = true;
    }
    op_.shapes.push_back(std::move(out));
  }
  if (!any) return;
  shape.roots.resize(op_.shapes.size(), shape.roots.back());
  const std::vector<bool> used = op_.program.reachable(shape.roots);
  for (size_t i = 0; i < used.size(); ++i) {
    const Node& node = op_.program.nodes()[i];
    if (used[i] && node.kind == BP_NODE_CALL)
      error(entry_.shapes[0].text.location(),
            "the shape calls an op; it may use attributes, builtins and arithmetic only");
    if (used[i] && node.kind == BP_NODE_BUILTIN &&
        op_.program.names()[static_cast<size_t>(node.imm)] == "device_computes")
      error(entry_.shapes[0].text.location(), "the shape asks for the device; it must be the same on every device");
  }
  check_choices(shape.roots);
  op_.formulas.push_back(std::move(shape));
}

void OpCompiler::compile_shape_word(const ShapeSpec& spec, CompiledShape& out) {
  const Expr& call = *spec.expr;
  out.name = "damaged";
  const ShapeWordSpec* word = find_shape_word(call.name);
  if (!word) {
    std::vector<std::string_view> names = {"dynamic"};
    for (const ShapeWordSpec& w : shape_words()) names.push_back(w.name);
    error(spec.text.location(call.offset),
          "unknown shape word '" + call.name + "'" + suggestion(call.name, names) + "; words are " + listed(names));
    return;
  }
  const bool any_number = word->params.ends_with('*');
  const auto required =
      static_cast<size_t>(std::count_if(word->params.begin(), word->params.end(), [](char c) { return c >= 'a'; }));
  if (call.children.size() < required || (!any_number && call.children.size() > word->params.size()) ||
      !call.keywords.empty()) {
    error(spec.text.location(call.offset),
          "the shape word '" + call.name + "' takes " +
              (any_number ? "one argument or more"
               : required == word->params.size()
                   ? std::to_string(required)
                   : std::to_string(required) + " to " + std::to_string(word->params.size())) +
              (any_number ? "" : " arguments") + ", not " +
              std::to_string(call.children.size() + call.keywords.size()) + "; see docs/reference/ops-yaml.md");
    return;
  }
  for (size_t i = 0; i < call.children.size(); ++i) {
    uint32_t arg = BP_NO_ARG;
    if (!shape_param_fits(*call.children[i], spec.text, word->params[any_number ? 0 : i], arg)) return;
    out.args.push_back(arg);
  }
  out.name = call.name;
  if (word->name.substr(0, 5) == "view." && entry_.alias != out.args[0])
    error(spec.text.location(call.offset), "'" + call.name + "' makes a view of '" + call.children[0]->name +
                                               "'; write alias: " + call.children[0]->name);
}

bool OpCompiler::shape_param_fits(const Expr& at, const Text& text, char letter, uint32_t& arg) {
  const bool may_lack = letter < 'a';
  const char lower = may_lack ? static_cast<char>(letter + ('a' - 'A')) : letter;
  if (at.kind == Expr::Kind::kName && at.name == "none" && may_lack) return true;
  const int index = at.kind == Expr::Kind::kName ? entry_.signature.find_arg(at.name) : -1;
  if (index >= 0 && param_fits(entry_.signature.args[static_cast<size_t>(index)], lower)) {
    arg = static_cast<uint32_t>(index);
    return true;
  }
  std::vector<std::string_view> names;
  for (const Arg& a : entry_.signature.args)
    if (param_fits(a, lower)) names.push_back(a.name);
  error(text.location(at.offset),
        "a shape word takes " + letter_word(lower) + (may_lack ? " or none" : "") + " here" +
            (names.empty() ? "; '" + entry_.name() + "' has no such argument" : "; e.g. " + std::string(names[0])));
  return false;
}

}  // namespace backplane::codegen
