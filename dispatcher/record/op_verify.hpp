// What a record claims of its name and signature, checked after it was copied.
#pragma once

#include <string_view>

namespace backplane::core {

struct OpRecord;

// Throw Error(BP_ERROR_VALUE).
void verify_name(std::string_view name);
void verify_signature(OpRecord& op);

}  // namespace backplane::core
