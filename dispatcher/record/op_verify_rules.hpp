// What a record claims of its formulas, shapes and dtypes, checked after its signature was.
#pragma once

namespace backplane::core {

struct OpRecord;

// Throw Error(BP_ERROR_VALUE).
void verify_program(OpRecord& op);
void verify_rules(OpRecord& op);

}  // namespace backplane::core
