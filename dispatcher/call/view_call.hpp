// Calls of views: metadata work of the core, which never reaches a backend.
#pragma once

#include "call/dispatch.hpp"

namespace backplane::core {

void call_view(const Call& call);

}  // namespace backplane::core
