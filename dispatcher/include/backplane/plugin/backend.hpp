// A backend's device table in C++: slots as functions that take the backend itself and may throw.
//
// Not the contract: header-only sugar over bp_backend_def, whose `context` is then the backend.
#pragma once

#include "backplane/abi/backend.h"
#include "backplane/plugin/context.hpp"

namespace backplane::plugin {

namespace detail {
template <auto Function>
struct BackendSlot;
template <class Backend, class Result, class... Args, Result (*Function)(Backend&, Args...)>
struct BackendSlot<Function> {
  static bp_status BP_CALL call(void* context, Args... args) noexcept {
    Backend& backend = *static_cast<Backend*>(context);
    return guard(backend.host(), [&] { return Function(backend, args...); });
  }
};
}  // namespace detail

// The C function of the slot that `Function` fills: it unpacks the context, which is a Backend with a method host(),
// and turns an exception into a status. Function(Backend&, ...) has the slot's other parameters and returns void or a
// bp_status.
template <auto Function>
inline constexpr auto backend_slot = &detail::BackendSlot<Function>::call;

}  // namespace backplane::plugin
