// Compiles the rules of one entry: those that it states, those that follow from them, and the report of each hole.
#pragma once

#include "check/compiled.hpp"
#include "check/formula_compiler.hpp"

namespace backplane::codegen {

class OpCompiler {
 public:
  OpCompiler(const Registry& registry, const Entry& entry, Diagnostics& diagnostics);
  CompiledOp compile();

 private:
  // compile_shapes.cpp
  void compile_shapes();
  void compile_shape_word(const ShapeSpec& spec, CompiledShape& out);
  bool shape_param_fits(const Expr& at, const Text& text, char letter, uint32_t& arg);
  // choices.cpp
  void check_choices(std::vector<uint32_t>& roots);
  // compile_op.cpp
  void compile_flags();
  void compile_decompose();
  void compile_put();
  void check_unused_arguments(const CompiledFormula& formula, const Rule& rule);
  void prune();
  // facts.cpp
  void check_region();
  // roundings.cpp
  void widen_formulas();
  void check_nesting();
  // batch.cpp
  void compile_batch();
  bool stated_batch();
  bool shape_is_sound() const;
  // check_samples.cpp
  void check_samples();
  void check_samples(const std::vector<Sample>& samples);
  // derived_samples.cpp
  void derive_samples();
  void derive(const Sample& base, uint32_t arg, SampleValue value);
  void derive(const Sample& base, uint32_t arg, const Literal& literal);
  void derive_axis(const std::vector<const Sample*>& usual, uint32_t arg);
  void derive_axes(const Sample& base, uint32_t arg);
  void derive_tensor(const Sample& base, uint32_t arg);
  void derive_broadcasts(const std::vector<const Sample*>& usual, const Sample& base);
  void warn_of_lone_kernel();
  void warn_unset(uint32_t arg, const std::string& value);
  // derivatives.cpp
  void compile_derivatives();
  void compile_vjp(const Rule& rule);
  void compile_jvp(const Rule& rule);
  void compile_partial(const Rule& rule);
  void derive_view_vjp();
  void derive_linear_jvp(const Location& where);
  void check_holes();
  void refuse_unreachable_rules();
  void check_higher_order();
  bool reads(const CompiledFormula& formula, uint16_t kind) const;
  uint32_t fit(uint32_t node, uint32_t target);
  std::vector<uint32_t> differentiable_args() const;

  FormulaCompiler compiler(const Text& text, const Expr& expr, uint16_t rule, std::vector<uint32_t> targets = {});
  CompiledFormula formula(uint16_t rule, const Rule& stated) const;
  // The root of one value that must be a Tensor (or a list of them).
  uint32_t root(FormulaCompiler& compiler, const Expr& expr, const Value& value, bool list, bool may_be_none);
  void error(const Location& where, std::string message) { diagnostics_.error(where, std::move(message)); }

  const Registry& registry_;
  const Entry& entry_;
  Diagnostics& diagnostics_;
  CompiledOp op_;
  bool fit_refused_ = false;
};

}  // namespace backplane::codegen
