// The CUDA backend's compiler, as the contract's extension: regions of elementwise ops become one kernel each, which
// NVRTC compiles.
#pragma once

#include "backplane/abi/extensions.h"

namespace backplane::cuda {

extern const bp_extension_compiler kCompiler;

}  // namespace backplane::cuda
