// See names.hpp.
#include "check/names.hpp"

#include <algorithm>
#include <set>

namespace backplane::codegen {
namespace {

using Words = std::set<std::string, std::less<>>;

// The names in `expr` that it does not bind itself.
void add_free_names(const Expr& expr, const std::vector<std::string_view>& bound, Words& out) {
  const auto add = [&](const ExprPtr& child, const std::vector<std::string_view>& names) {
    if (child) add_free_names(*child, names, out);
  };
  if (expr.kind == Expr::Kind::kName && !std::count(bound.begin(), bound.end(), expr.name)) out.insert(expr.name);
  const bool binds = expr.kind == Expr::Kind::kLet || expr.kind == Expr::Kind::kMap || expr.kind == Expr::Kind::kFold;
  for (size_t i = 0; i < expr.children.size(); ++i) {
    if (!binds || i + 1 < expr.children.size()) {
      add(expr.children[i], bound);
      continue;
    }
    std::vector<std::string_view> inner = bound;
    inner.push_back(expr.name);
    if (expr.kind == Expr::Kind::kFold) inner.push_back(expr.element);
    add(expr.children[i], inner);
  }
  for (const Keyword& keyword : expr.keywords) add(keyword.value, bound);
}

void add_callees(const Expr& expr, Words& out) {
  if (expr.kind == Expr::Kind::kCall) out.insert(expr.name);
  for (const ExprPtr& child : expr.children)
    if (child) add_callees(*child, out);
  for (const Keyword& keyword : expr.keywords) add_callees(*keyword.value, out);
}

// The definitions that are used where `callees` are called, directly or through others.
std::vector<const Definition*> needed_definitions(const SharedNames& shared, Words callees) {
  std::vector<const Definition*> needed;
  for (bool more = true; more;) {
    more = false;
    for (const Definition& definition : shared.definitions) {
      if (!callees.count(definition.word) || std::count(needed.begin(), needed.end(), &definition)) continue;
      needed.push_back(&definition);
      if (definition.expr) add_callees(*definition.expr, callees);
      more = true;
    }
  }
  return needed;
}

template <class Visit>
void for_each_formula(const Entry& entry, Visit visit) {
  const auto rule = [&](const Rule& r) {
    if (r.expr) visit(*r.expr);
    for (const auto& [text, expr] : r.per_result)
      if (expr) visit(*expr);
  };
  for (const ShapeSpec& shape : entry.shapes)
    if (shape.expr) visit(*shape.expr);
  for (const auto* rules : {&entry.partial, &entry.vjp, &entry.jvp}) std::for_each(rules->begin(), rules->end(), rule);
  for (const auto* one : {&entry.batch, &entry.decompose, &entry.put})
    if (*one) rule(**one);
  for (const ScalarRule& scalar : entry.scalars)
    if (scalar.expr) visit(*scalar.expr);
}

}  // namespace

std::vector<const Let*> needed_lets(const Entry& entry, const Expr& expr) {
  std::vector<const Let*> needed;
  if (entry.lets.empty()) return needed;
  Words names;
  add_free_names(expr, {}, names);
  for (auto let = entry.lets.rbegin(); let != entry.lets.rend(); ++let) {
    if (!names.count(let->name.value)) continue;
    needed.push_back(&*let);
    if (let->expr) add_free_names(*let->expr, {}, names);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

std::string whole_text(const Entry& entry, const Text& text, const Expr* expr) {
  std::string whole;
  const auto add = [&](std::string_view piece) {
    whole += piece;
    while (!whole.empty() && (whole.back() == '\n' || whole.back() == ' ')) whole.pop_back();
  };
  Words callees;
  if (expr) {
    for (const Let* let : needed_lets(entry, *expr)) {
      add((whole.empty() ? "let " : " let ") + let->name.value + " = " + let->text.value);
      add(";");
      if (let->expr) add_callees(*let->expr, callees);
    }
    add_callees(*expr, callees);
  }
  add((whole.empty() ? "" : " ") + text.value);
  for (const Definition* definition : needed_definitions(*entry.shared, callees))
    add("\nwhere " + definition->name.value + " = " + definition->text.value);
  return whole;
}

namespace {

// What the formulas of a file, and the definitions and lets that they use, name and call.
struct Used {
  Words names, callees;
  std::set<const char*> lets;  // the place of the formula in the file: the same for all entries that share it

  void add(const Expr& expr) {
    add_free_names(expr, {}, names);
    add_callees(expr, callees);
  }
};

const char* place(const Text& text) { return text.source->text().data() + text.begin; }

Used used_in(const RegistryFile& file) {
  Used used;
  for (const Entry& entry : file.entries) {
    for_each_formula(entry, [&](const Expr& expr) {
      used.add(expr);
      for (const Let* let : needed_lets(entry, expr)) {
        used.lets.insert(place(let->text));
        if (let->expr) used.add(*let->expr);
      }
    });
  }
  for (const Definition* definition : needed_definitions(file.shared, used.callees))
    if (definition->expr) used.add(*definition->expr);
  return used;
}

}  // namespace

void refuse_unused_names(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) {
  for (const auto& file : files) {
    const Used used = used_in(*file);
    const auto refuse = [&](const Text& name, const std::string& message) {
      diagnostics.error(name.location(), message);
    };
    for (const auto& [name, table] : file->shared.tables)
      if (!used.names.count(name)) refuse(table.name, "table '" + name + "' is never used; remove it");
    for (const Definition& definition : file->shared.definitions) {
      if (!used.callees.count(definition.word))
        refuse(definition.name, "definition '" + definition.word + "' is never used; remove it");
      Words names;
      if (definition.expr) add_free_names(*definition.expr, {}, names);
      for (const std::string& param : definition.params)
        if (!names.count(param)) refuse(definition.name, "parameter '" + param + "' is never used; remove it");
    }
    for (const Entry& entry : file->entries)
      for (const Let& let : entry.lets)
        if (!used.lets.count(place(let.text)))
          refuse(let.name, "'" + let.name.value + "' is used by no rule; remove the let");
  }
}

}  // namespace backplane::codegen
