// See view_formulas.hpp.
#include "schema/view_formulas.hpp"

#include <algorithm>
#include <cassert>
#include <map>

namespace backplane::codegen {
namespace {

struct ViewWord {
  std::string_view word, op;
  size_t params;      // with the tensor
  const char* shape;  // a formula over `base` and p1, p2, ...; nullptr: slices, which are put together below
};
constexpr ViewWord kWords[] = {
    {"view.permute", "bp::permute_dims", 2, "map(axis in p1: base.shape[axis])"},
    {"view.expand", "bp::broadcast_to", 2, "p1"},
    {"view.reshape", "bp::reshape", 2,
     "map(size in p1: prod(base.shape) // max(1, 0 - prod(p1)) if size == 0 - 1 else size)"},
    {"view.select", "bp::select", 3, "without(base.shape, [normalize_axis(p1, base.ndim)])"},
    {"view.squeeze", "bp::squeeze", 2, "without(base.shape, normalize_axes(p1, base.ndim))"},
    {"view.unsqueeze", "bp::expand_dims", 2,
     "fold(shape = base.shape, at in range(0, base.ndim + len(p1)): "
     "insert(shape, at, 1) if contains(normalize_axes(p1, base.ndim + len(p1)), at) else shape)"},
    {"view.diagonal", "bp::diagonal", 4,
     "without(base.shape, normalize_axes([p2, p3], base.ndim)) + "
     "[max(0, min(base.shape[p2] + min(p1, 0), base.shape[p3] - max(p1, 0)))]"},
    {"view.unfold", "bp::unfold", 5,
     "replace(base.shape, normalize_axis(p1, base.ndim), "
     "(base.shape[p1] - p4 * (p2 - 1) - 1) // p3 + 1) + [p2]"},
    {"view.slice", "bp::slice", 5, nullptr},
};

// Of one axis: Python's start:stop:step over an axis of `size`.
constexpr const char* kSliced =
    "replace(shape, normalize_axis(p1, base.ndim), "
    "max(0, ((min(max(stop, 0), size) - min(max(start, 0), size) + step - 1) // step) if step > 0 else "
    "((min(max(start, 0 - 1), size - 1) - min(max(stop, 0 - 1), size - 1) - step - 1) // (0 - step))))";
constexpr const char* kFromFront = "(p2 + base.shape[p1] if p2 < 0 else p2)";
constexpr const char *kFirst = "(0 if p4 > 0 else base.shape[p1] - 1)",
                     *kBehindLast = "(base.shape[p1] if p4 > 0 else 0 - 1)";

using Pieces = std::map<std::string, const Expr*, std::less<>>;

// The formula `text` with pieces in place of names; all of it stands where the word does.
ExprPtr filled(const char* text, const Pieces& pieces, size_t offset);

void fill(ExprPtr& expr, const Pieces& pieces, size_t offset) {
  if (!expr) return;
  if (expr->kind == Expr::Kind::kName) {
    if (const auto piece = pieces.find(expr->name); piece != pieces.end()) {
      expr = copy(*piece->second);
      return;
    }
  }
  expr->offset = offset;
  for (ExprPtr& child : expr->children) fill(child, pieces, offset);
  for (Keyword& keyword : expr->keywords) fill(keyword.value, pieces, offset);
}

ExprPtr filled(const char* text, const Pieces& pieces, size_t offset) {
  static const Source source("view_formulas.cpp", "");
  Diagnostics none;
  Text formula;
  formula.value = text;
  formula.source = &source;
  ExprPtr expr = parse_formula(formula, none);
  assert(expr && "the formulas of this file are sound");
  fill(expr, pieces, offset);
  return expr;
}

bool is_absent(const Expr& expr) { return expr.kind == Expr::Kind::kName && expr.name == "none"; }

// nullptr with a diagnostic where the axes are not listed one by one.
ExprPtr sliced_shape(ValueReader& reader, const ShapeSpec& stated) {
  const Expr& call = *stated.expr;
  const size_t n = call.children[1]->children.size();
  for (size_t k = 1; k < call.children.size(); ++k) {
    const Expr& list = *call.children[k];
    if (list.kind == Expr::Kind::kList && list.children.size() == n) continue;
    reader.diagnostics().error(stated.text.location(list.offset),
                               "a slice with formulas lists its axes, starts, stops and steps, one per axis: "
                               "view.slice(x, [-1], [0], [none], [2])");
    return nullptr;
  }
  const Expr& base = *call.children[0];
  ExprPtr shape = filled("base.shape", {{"base", &base}}, call.offset);
  for (size_t i = 0; i < n; ++i) {
    const Expr &axis = *call.children[1]->children[i], &step = *call.children[4]->children[i];
    const ExprPtr size = filled("base.shape[p1]", {{"base", &base}, {"p1", &axis}}, call.offset);
    const auto end = [&](const Expr& given, const char* absent) {
      return filled(is_absent(given) ? absent : kFromFront,
                    {{"base", &base}, {"p1", &axis}, {"p2", &given}, {"p4", &step}}, call.offset);
    };
    const ExprPtr start = end(*call.children[2]->children[i], kFirst);
    const ExprPtr stop = end(*call.children[3]->children[i], kBehindLast);
    shape = filled(kSliced,
                   {{"base", &base},
                    {"shape", shape.get()},
                    {"p1", &axis},
                    {"size", size.get()},
                    {"start", start.get()},
                    {"stop", stop.get()},
                    {"step", &step}},
                   call.offset);
  }
  return shape;
}

ExprPtr shape_of(ValueReader& reader, const ViewWord& word, const ShapeSpec& stated) {
  if (!word.shape) return sliced_shape(reader, stated);
  Pieces pieces = {{"base", stated.expr->children[0].get()}};
  for (size_t i = 1; i < stated.expr->children.size(); ++i)
    pieces["p" + std::to_string(i)] = stated.expr->children[i].get();
  return filled(word.shape, pieces, stated.expr->offset);
}

bool has_formulas(const Entry& entry, const Expr& call) {
  return std::any_of(call.children.begin(), call.children.end(), [&](const ExprPtr& param) {
    return !is_absent(*param) && (param->kind != Expr::Kind::kName || entry.signature.find_arg(param->name) < 0);
  });
}

}  // namespace

void expand_view_formulas(ValueReader& reader, Entry& entry) {
  if ((!entry.view && !entry.maybe_view) || entry.shapes.size() != 1 || !entry.shapes[0].expr) return;
  ShapeSpec& stated = entry.shapes[0];
  const Expr& call = *stated.expr;
  const auto* word =
      std::find_if(std::begin(kWords), std::end(kWords), [&](auto& one) { return one.word == call.name; });
  if (call.kind != Expr::Kind::kCall || word == std::end(kWords) || !has_formulas(entry, call)) return;
  const auto error = [&](const std::string& message) {
    reader.diagnostics().error(stated.text.location(call.offset), message);
    stated.expr = nullptr;
  };
  const std::string name(word->word);
  if (call.children.size() != word->params || !call.keywords.empty())
    return error("the shape word '" + name + "' with formulas takes " + std::to_string(word->params) +
                 " arguments, not " + std::to_string(call.children.size() + call.keywords.size()));
  const Expr& base = *call.children[0];
  if (base.kind != Expr::Kind::kName || entry.signature.find_arg(base.name) != static_cast<int>(entry.alias))
    return error("'" + name + "' views the argument that 'alias' names, " + entry.signature.args[entry.alias].name);
  if (entry.put || entry.decompose || entry.states_vjp || entry.states_jvp || !entry.partial.empty())
    return error("a view with formulas has its rules from '" + std::string(word->op) +
                 "'; remove put, decompose, vjp, jvp and partial");
  ExprPtr shape = shape_of(reader, *word, stated);
  if (!shape) {
    stated.expr = nullptr;
    return;
  }
  Rule decompose;
  decompose.where = stated.text.location();
  decompose.text = stated.text;
  decompose.expr = std::move(stated.expr);
  decompose.expr->name = word->op;
  entry.decompose = std::move(decompose);
  stated.expr = std::move(shape);
  entry.composite = true;
  entry.view = entry.maybe_view = false;
}

}  // namespace backplane::codegen
