// Looks up the names of one formula, checks its types, and adds its nodes to the op's program.
//
// One compiler serves one formula. Mistakes go to Diagnostics with the column inside the formula; after one, the
// value's type is kAny, which fits everywhere, so that one slip gives one message.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "check/known_ints.hpp"
#include "check/program.hpp"
#include "check/registry.hpp"
#include "check/types.hpp"

namespace backplane::codegen {

struct Value {
  uint32_t node = 0;
  Type type;
};

struct FormulaContext {
  uint16_t rule = 0;     // BP_RULE_*
  bool partial = false;  // of a `partial`: reads neither g nor t
  std::vector<uint32_t> targets;
  std::map<std::string, Value> given;  // names that mean something else here: a derived vjp's base and piece
};

class FormulaCompiler {
 public:
  // For `expr`, which was parsed from `text`; the lets of the entry that it uses are computed here.
  FormulaCompiler(const Registry& registry, const Entry& entry, Program& program, Diagnostics& diagnostics,
                  const Text& text, const Expr& expr, FormulaContext context);

  Value compile(const Expr& expr);
  // `count` values: a call with as many results, or a list of as many elements.
  std::vector<Value> compile_several(const Expr& expr, size_t count, const std::string& what);
  // conj(value), which vanishes on real dtypes without a call.
  Value conjugate(const Value& value);
  bool failed() const { return failed_; }
  // The int that the node is in every call; nullopt where that depends on the call.
  std::optional<WideInt> known_int(uint32_t node) const;
  void error(size_t offset, std::string message);

 private:
  struct Variable {
    std::string name;
    Value value;
    size_t offset;
    bool used;
    bool is_let;
    const Expr* given = nullptr;  // a parameter that stands for a name of its caller
  };
  // What names mean: in the formula, or in a definition that it calls.
  struct Scope {
    std::vector<Variable> variables;
    const Text* text;              // where offsets count
    const Definition* definition;  // only its parameters have a meaning; nullptr: the formula's own
  };

  void bind_lets(const Expr& expr);
  bool is_bound_later(const Expr& name) const;
  Value constant(Type::Kind kind, Const value);
  Value name(const Expr& expr);
  bool literal_word(const Expr& expr, Value& out);
  Value special(const Expr& expr);
  Value argument(size_t index);
  Value attribute(const Expr& expr);
  bool special_member(const Expr& expr, Value& out);
  Value member_of_results(const Expr& expr, uint16_t kind);
  Value member(const Expr& expr, const Value& base);
  Value transpose(const Expr& expr, const Value& base);
  Value call(const Expr& expr);
  Value builtin(const Expr& expr, const BuiltinSpec& spec, std::vector<Value> args);
  bool parameter(const Expr& expr, const BuiltinSpec& spec, size_t index, char letter, Value& arg);
  Value op(const Expr& expr, const Entry& callee, const std::vector<Value>& positional);
  uint32_t pass(const Expr& at, const Entry& callee, const Arg& param, const Value& value);
  void refuse_other_word(const Expr& at, const Entry& callee, const Arg& param, uint32_t value);
  uint32_t default_of(const Arg& param);
  Value unknown_call(const Expr& expr);
  Value unary(const Expr& expr);
  Value binary(const Expr& expr);
  Value arithmetic(const Expr& expr, const Value& a, const Value& b);
  void refuse_other_word(const Expr& at, const Value& argument, const Value& word);
  void refuse_index(const Expr& at, const Value& list, const Value& position);
  Value tensor_operator(const Expr& expr, std::string_view symbol, const std::vector<Value>& operands);
  Value conditional(const Expr& expr);
  Value list(const Expr& expr);
  Value index(const Expr& expr);
  Value slice(const Expr& expr);
  Value let(const Expr& expr);
  Value expand(const Expr& call, const Definition& definition);
  bool is_expanding(const Definition& definition) const;
  Value in_caller(const Expr& given);
  Value map(const Expr& expr);
  Value fold(const Expr& expr);

  Type element_type(const Expr& at, const Value& list);
  void collect_present(const Expr& condition, bool holds, std::set<uint32_t>& out);
  void require_there(const Expr& at, Value& value);
  void pop(size_t size);
  Value reported() { return {program_.absent(), Type{}}; }
  Value fail(const Expr& at, std::string message);
  std::vector<std::string_view> visible_names() const;

  const Registry& registry_;
  const Entry& entry_;
  Program& program_;
  Diagnostics& diagnostics_;
  const Expr& whole_;
  FormulaContext context_;
  Scope scope_;
  std::vector<Scope> callers_;  // of the definition that is being expanded, the innermost last
  size_t expansions_ = 0;
  std::set<uint32_t> present_;  // nodes known to be there
  std::map<uint32_t, WideInt> known_ints_;
  bool failed_ = false;
};

}  // namespace backplane::codegen
