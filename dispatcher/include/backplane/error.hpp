// The one exception type of the C++ interface, and the checks that throw it.
//
// A check's message is built only when the check fails. The contract defines the codes (abi/base.h); the Python layer
// maps each code to the exception that its users expect.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "backplane/abi/base.h"

namespace backplane {

class Error : public std::runtime_error {
 public:
  Error(bp_status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  bp_status code() const noexcept { return code_; }

 private:
  bp_status code_;
};

namespace detail {
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(bp_status code, const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw Error(code, text.str());
}
}  // namespace detail

}  // namespace backplane

// BP_CHECK(k <= n, SHAPE, "topk: k=", k, " exceeds axis size ", n);
#define BP_CHECK(condition, code, ...)                         \
  do {                                                         \
    if (!(condition)) [[unlikely]]                             \
      ::backplane::detail::fail(BP_ERROR_##code, __VA_ARGS__); \
  } while (false)
