// Calls of functions from a plugin or a program. Their exceptions end here, as a status with a message.
#pragma once

#include <exception>
#include <string>

#include "memory/process/epoch.hpp"

namespace backplane::core {

// `what` begins the message: "register_all". The thread's message becomes the message of the current exception.
template <class Function>
bp_status call_foreign(const char* what, Function function) {
  try {
    return function();
  } catch (const std::exception& error) {
    keep_error(std::string(what) + " threw an exception: " + error.what());
  } catch (...) {
    keep_error(std::string(what) + " threw something that is not a std::exception");
  }
  return cold().error_code = BP_ERROR_INTERNAL;
}

}  // namespace backplane::core
