// Types one formula over elements; see scalar.hpp. Numbers are weak: they take the dtype of the other operand.
#pragma once

#include "check/scalar.hpp"

namespace backplane::codegen {

class ScalarLibrary;

class ScalarCompiler {
 public:
  // `text` and `expr` of `function.entry`; false after a mistake.
  ScalarCompiler(ScalarLibrary& library, ScalarFunction& function, Diagnostics& diagnostics)
      : library_(library), function_(function), diagnostics_(diagnostics) {}
  bool compile(const Text& text, const Expr& expr);

 private:
  // What a name or an expression is while the formula is read: a node, a weak number, or a dtype.
  struct Value {
    enum class Kind : uint8_t { kNode, kInt, kFloat, kBool, kDtype, kList, kWeakChoice };
    Kind kind = Kind::kNode;
    uint32_t node = 0;
    double number = 0;
    int64_t integer = 0;      // of a bool and a dtype too
    std::vector<Value> list;  // of a choice between numbers: the condition and both

    bool is_number() const { return kind == Kind::kInt || kind == Kind::kFloat; }
    bool is_node() const { return kind == Kind::kNode; }
    double as_double() const { return kind == Kind::kInt ? static_cast<double>(integer) : number; }
  };
  using Maybe = std::optional<Value>;
  using Scope = std::vector<std::pair<std::string, Value>>;

  // scalar_compiler.cpp
  void drop_unused_locals();
  Maybe lower(const Expr& expr);
  Maybe name(const Expr& expr);
  Maybe attribute(const Expr& expr);
  Maybe unary(const Expr& expr);
  Maybe binary(const Expr& expr);
  Maybe logic(const Expr& expr, Value a, Value b);
  Maybe numbers(const Expr& expr, const Value& a, const Value& b);
  Maybe choose(const Expr& at, const Value& condition, Value a, Value b);
  Maybe let(const Expr& expr);
  Maybe fold(const Expr& expr);
  Maybe table(const Expr& expr);
  Maybe operator_call(const Expr& expr, std::vector<Value> operands);
  bool unify(const Expr& at, std::vector<Value*> values, bp_dtype wanted = BP_DTYPE_NONE);
  Maybe adopt(const Expr& at, const Value& value, bp_dtype dtype);

  // scalar_calls.cpp
  Maybe call(const Expr& expr);
  Maybe builtin(const Expr& expr, bool& known);
  Maybe of_dtype(const Expr& expr, const Value& dtype);
  Maybe part(const Expr& expr, Value value);
  Maybe cast(const Expr& expr, const Value& value, const Value& dtype);
  Maybe pair(const Expr& expr, Value re, Value im);
  Maybe intrinsic(const Expr& expr, std::vector<Value> args);
  Maybe definition(const Definition& definition, const Expr& expr);
  Maybe entry_call(const Expr& expr, const Entry& callee, std::vector<Maybe> args);
  bool lower_all(const Expr& expr, std::vector<Value>& out);

  std::nullopt_t error(const Expr& at, const std::string& message);
  Value add(ScalarNode node);
  Value named(Value value, std::string_view word);  // a node that is used more than once gets a local
  bp_dtype dtype_of(const Value& value) const { return function_.nodes[value.node].dtype; }
  static Value number(int64_t integer) { return {Value::Kind::kInt, 0, 0, integer, {}}; }
  static Value number(double value) { return {Value::Kind::kFloat, 0, value, 0, {}}; }
  static Value truth(bool value) { return {Value::Kind::kBool, 0, 0, value, {}}; }
  std::string described(const Value& value) const;
  std::string fresh(std::string_view word);

  ScalarLibrary& library_;
  ScalarFunction& function_;
  Diagnostics& diagnostics_;
  const Text* text_ = nullptr;
  Scope scope_;
  std::vector<const Definition*> running_;  // whose formulas are being lowered
  size_t names_ = 0;
  size_t steps_ = 0;
};

// The functions made so far. An entry's function is made when it is first asked for.
class ScalarLibrary {
 public:
  ScalarLibrary(const Registry& names, Diagnostics& mistakes) : names_(names), mistakes_(mistakes) {}

  // nullptr without one; `why` then gives the reason, for a call in a formula. `result` is asked for of entries whose
  // Dtype argument states it.
  const ScalarFunction* find(const Entry& entry, bp_dtype compute, bp_dtype result, std::string& why);
  void make_all(const Entry& entry);
  const Registry& names() const { return names_; }

  // One per formula, and part of one, that is open: a stranger's may nest through many entries.
  struct Level {
    explicit Level(ScalarLibrary& library) : library(library) { ++library.depth_; }
    ~Level() { --library.depth_; }
    bool too_deep() const { return library.depth_ > 2000; }
    ScalarLibrary& library;
  };
  std::vector<std::unique_ptr<ScalarFunction>> take() { return std::move(made_); }

 private:
  struct Known {
    bool open = false;
    const ScalarFunction* function = nullptr;
  };
  std::unique_ptr<ScalarFunction> make(const Entry& entry, bp_dtype compute, bp_dtype result, Diagnostics& diagnostics);

  const Registry& names_;
  Diagnostics& mistakes_;  // in what is stated
  std::map<std::string, Known> known_;
  int depth_ = 0;
  std::vector<std::unique_ptr<ScalarFunction>> made_;
};

// Why the entry is not over elements; "": it is.
std::string why_not_elementwise(const Entry& entry);
// The dtypes that it computes in, without the half floats.
bp_dtype_mask scalar_dtypes(const Entry& entry);
// The dtype of its argument `arg` where it computes in `compute`; BP_DTYPE_NONE where that is open.
bp_dtype param_dtype(const Entry& entry, size_t arg, bp_dtype compute);

}  // namespace backplane::codegen
