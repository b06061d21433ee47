// Turns one formula into the body of a C function, where its nodes are among those that plain C says well: calls, what
// they read, FIT, and branches on attributes. Formulas with list arithmetic, map or fold are the evaluator's.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/compiled.hpp"

namespace backplane::codegen {

class FormulaWriter {
 public:
  FormulaWriter(const CompiledRegistry& registry, const CompiledOp& op, const CompiledFormula& formula);
  // The function, named `name`; nullopt: this formula stays with the evaluator.
  std::optional<std::string> write(const std::string& name);

 private:
  struct Refused {};

  bool is_supported() const;
  const Node& node(uint32_t index) const { return op_.program.nodes()[index]; }
  const Const& constant(uint32_t index) const { return op_.program.consts()[static_cast<size_t>(node(index).imm)]; }
  const std::string& name_of(uint32_t index) const { return op_.program.names()[static_cast<size_t>(node(index).imm)]; }

  // C expressions. `value` is a bp_value; what must run first goes to `code_`.
  std::string value(uint32_t index);
  std::string compute(uint32_t index);
  std::string condition(uint32_t index);
  std::string integer(uint32_t index);
  std::string literal(uint32_t index);
  std::string call(uint32_t index);
  std::string fit(uint32_t index);
  std::string branch(uint32_t index);
  std::string conj_of_number(uint32_t index);
  std::string list(uint32_t index);
  void root(uint32_t index, size_t result);
  bool is_donated(uint32_t input) const;
  uint64_t donated_inputs(uint32_t index) const;
  void release_donated(uint32_t index, uint32_t input);

  bool is_int(uint32_t index) const;
  bool may_be_number(uint32_t index) const;
  uint64_t wanted(uint32_t index) const;
  size_t first_fit_name() const;
  std::string line(const std::string& text) { return std::string(indent_ * 2, ' ') + text + "\n"; }

  const CompiledRegistry& registry_;
  const CompiledOp& op_;
  const CompiledFormula& formula_;
  std::string code_;
  std::string declarations_;
  std::vector<std::string> expressions_;  // of nodes computed so far in this scope; "" : not yet
  std::vector<int> uses_;                 // of a node by the formula's other nodes and roots
  std::vector<int> temporary_;            // its slot in t[], -1: none
  size_t n_temporaries_ = 0;
  size_t n_variables_ = 0;
  size_t indent_ = 1;
};

}  // namespace backplane::codegen
