// What checking makes of an entry: its formulas as nodes, its flags, its shape rules. Emitters read nothing else
// beside the entry itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/program.hpp"
#include "check/registry.hpp"
#include "check/rewrites.hpp"
#include "check/scalar.hpp"
#include "check/spellings.hpp"

namespace backplane::codegen {

struct CompiledFormula {
  uint16_t rule = 0;
  uint16_t flags = 0;
  std::vector<uint32_t> targets;
  std::vector<uint32_t> roots;
  uint32_t line = 0;
  std::string text;
};

struct CompiledShape {
  std::string name;            // a word, "expr" or "dynamic"
  std::vector<uint32_t> args;  // BP_NO_ARG where left out
};

struct CompiledOp {
  const Entry* entry = nullptr;
  Program program;
  std::vector<CompiledFormula> formulas;
  std::vector<CompiledShape> shapes;
  std::vector<Sample> derived;  // samples beside those that the entry states
  uint64_t flags = 0;
  uint64_t faults = 0;  // BP_FAULT_*; facts.hpp
  bool uses_fit = false;

  const CompiledFormula* find(uint16_t rule) const;
  const CompiledFormula* find(uint16_t rule, uint32_t target) const;
};

struct CompiledRegistry {
  std::vector<std::unique_ptr<RegistryFile>> files;
  std::unique_ptr<Registry> names;
  std::vector<CompiledOp> ops;                           // of the files that are emitted, in their order
  std::vector<CompiledRewrite> rewrites;                 // likewise
  std::vector<CompiledSpelling> spellings;               // likewise
  std::vector<std::unique_ptr<ScalarFunction>> scalars;  // those that one calls before it, imported ones too
};

// Checks everything; the result is worth emitting only if `diagnostics` stays empty.
CompiledRegistry check(std::vector<std::unique_ptr<RegistryFile>> files, Diagnostics& diagnostics);

// Can the argument, or the result, have an inexact dtype? Others have no derivative.
bool is_differentiable_arg(const Entry& entry, size_t index);
bool is_differentiable_result(const Entry& entry, size_t index);

}  // namespace backplane::codegen
