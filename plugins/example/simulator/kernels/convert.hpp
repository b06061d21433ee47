// Conversion between any two of the simulator's dtypes, chosen at run time.
#pragma once

#include "../dtypes.hpp"

namespace sim {

using backplane::plugin::ConvertRun;
ConvertRun convert_run(bp_dtype out, bp_dtype in);

}  // namespace sim
