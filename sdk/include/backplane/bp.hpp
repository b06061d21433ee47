// bp: Backplane for C++ programs, with libtorch's names. Link Backplane::backplane. docs/guides/cpp.md is its guide.
#pragma once

#include "backplane/bp/compile.hpp"
#include "backplane/bp/creation.hpp"
#include "backplane/bp/nn/containers.hpp"
#include "backplane/bp/optim.hpp"
#include "backplane/bp/printing.hpp"
#include "backplane/bp/serialize.hpp"
