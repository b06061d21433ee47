// The batch rules of views.
#pragma once

#include "batch/batch_rules.hpp"

namespace backplane::core {

extern const DerivedRule kViewRules[];
extern const size_t kViewRuleCount;

}  // namespace backplane::core
