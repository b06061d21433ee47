// Errors of calls: from a plugin's status to an exception, and from an exception to the thread's message.
#pragma once

#include <string>
#include <string_view>

#include "memory/process/epoch.hpp"
#include "registry/registry.hpp"

namespace backplane::core {

// Is the op's name, without its namespace, a word of the message?
bool names_op(std::string_view message, const OpEntry& op);
// If the message is about a formula's steps: the same fault in terms of the given arguments; else empty.
std::string in_terms_of_call(std::string_view message, const OpEntry& op, const bp_value* args, int32_t n_args);
// Throws the failure of a formula that is not a decomposition, under the name of the op whose rule it is.
[[noreturn, gnu::cold]] void fail_rule(const Error& error, const OpEntry& op, uint16_t rule, const bp_value* args);
// Of a kernel that gave BP_OK and left no tensor in a slot: keeps the message, and gives the status.
[[gnu::cold]] bp_status fail_stored(const bp_value& slot, int32_t index);
// What the call fails with. A kernel loses the device if its plugin brings the device: no other one can know.
[[gnu::cold]] bp_status status_of_kernel(Device& device, const PluginRecord* owner, bp_status status);
// Turns a failing status of a plugin's function into an Error with the thread's message.
[[noreturn]] void throw_status(bp_status status, const OpEntry& op, const char* who);
// Of the exception in flight, at an edge: its status, with the op that was called, where it is known, named in the
// thread's message. `guard` is the edge's.
[[gnu::cold]] bp_status fail_call(const CallGuard& guard, const OpEntry* op, const bp_value* args,
                                  int32_t n_args) noexcept;

}  // namespace backplane::core
