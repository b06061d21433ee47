// Binding a record's formulas to the ops that they call.
#pragma once

#include <cstdint>
#include <string_view>

namespace backplane::core {

struct OpRecord;

// Resolves names to handles with `find` (which gives BP_NO_OP for unknown ones). Throws Error naming an op that is
// not registered and not a builtin; linking may be tried again later.
void link(OpRecord& record, uint32_t (*find)(std::string_view));

}  // namespace backplane::core
