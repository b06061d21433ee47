// Which of the names that are stated once, `let` of an entry, `tables` and `define` of a file, formulas use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "schema/model.hpp"

namespace backplane::codegen {

// The lets that `expr` needs, directly or through others, in their order.
std::vector<const Let*> needed_lets(const Entry& entry, const Expr& expr);

// The formula with all that it names: the lets that it needs stand before it, the definitions after it.
std::string whole_text(const Entry& entry, const Text& text, const Expr* expr);

// Reports lets, tables, definitions and parameters that no rule uses. An entry may leave some of a shared list of lets
// to others.
void refuse_unused_names(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics);

}  // namespace backplane::codegen
