// The builtins on lists, shapes and axes, for the table in builtins.cpp alone. Their meaning is in
// docs/reference/ops-yaml.md.
#pragma once

#include "record/builtins.hpp"

namespace backplane::core::builtin {

#define BP_BUILTIN(name) bp_value name(const BuiltinCall& call)
BP_BUILTIN(len);
BP_BUILTIN(prod);
BP_BUILTIN(range);
BP_BUILTIN(repeat);
BP_BUILTIN(reverse);
BP_BUILTIN(contains);
BP_BUILTIN(insert);
BP_BUILTIN(replace);
BP_BUILTIN(without);
BP_BUILTIN(broadcast_shapes);
BP_BUILTIN(expanded_axes);
BP_BUILTIN(normalize_axis);
BP_BUILTIN(normalize_axes);
BP_BUILTIN(reduced_shape);
BP_BUILTIN(count);
BP_BUILTIN(inverse_permutation);
BP_BUILTIN(shift_axis);
BP_BUILTIN(shift_axes);
BP_BUILTIN(present);
BP_BUILTIN(default_value);
BP_BUILTIN(concat);
BP_BUILTIN(add);
BP_BUILTIN(getitem);
BP_BUILTIN(getslice);
#undef BP_BUILTIN

}  // namespace backplane::core::builtin
