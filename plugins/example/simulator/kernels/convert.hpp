// Conversion between any two of the simulator's dtypes, chosen at run time.
#pragma once

#include "../dtypes.hpp"

namespace sim {

// Converts n elements; steps in bytes.
using ConvertRun = void (*)(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n);
ConvertRun convert_run(bp_dtype out, bp_dtype in);

}  // namespace sim
