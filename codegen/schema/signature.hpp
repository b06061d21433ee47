// Reads `name(TYPE positional_only, /, TYPE arg=default, *, TYPE keyword_only) -> RESULTS`.
#pragma once

#include <optional>

#include "schema/model.hpp"

namespace backplane::codegen {

std::optional<Signature> parse_signature(const Text& text, Diagnostics& diagnostics);
// The same without `-> RESULTS`, as the spellings of an entry are written.
std::optional<Signature> parse_spelled_signature(const Text& text, Diagnostics& diagnostics);

}  // namespace backplane::codegen
