// Rules that are functions of the record. They see shapes, dtypes and attributes, and no data.
#pragma once

#include "record/shape_rules.hpp"

namespace backplane::core {

void shape_by_function(const OpRecord& op, const bp_shape_rule& rule, const bp_value* args, int32_t n_args,
                       int32_t index, ShapeResult& out);
bp_dtype dtype_by_function(const OpRecord& op, const bp_value* args, int32_t n_args, int32_t index);

}  // namespace backplane::core
