// A call as a kernel's C++ sees it: the frame, the guard at the edge, and loops on the host's threads.
//
// Not the contract: header-only sugar over backplane/abi. No exception leaves `guard`, nor a body of parallel_for.
// A Context is valid until the kernel returns, and may be copied into bodies of parallel_for.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>

#include "backplane/abi/plugin.h"
#include "backplane/error.hpp"

namespace backplane::plugin {

// A call into the host has failed; the message is already with the host, so the guard adds none.
struct Failed {
  bp_status status;
};

inline void check_status(bp_status status) {
  if (status != BP_OK) [[unlikely]]
    throw Failed{status};
}

namespace detail {
// Inside a catch block: states the current exception to the host and returns its code.
[[gnu::cold, gnu::noinline]] inline bp_status report_current_exception(const bp_host* host) noexcept {
  try {
    throw;
  } catch (const Failed& failed) {
    return failed.status;
  } catch (const Error& error) {
    host->set_error(error.code(), error.what());
    return error.code();
  } catch (const std::bad_alloc&) {
    host->set_error(BP_ERROR_MEMORY, "out of host memory");
    return BP_ERROR_MEMORY;
  } catch (const std::exception& error) {
    host->set_error(BP_ERROR_INTERNAL, error.what());
    return BP_ERROR_INTERNAL;
  } catch (...) {
    host->set_error(BP_ERROR_INTERNAL, "the plugin threw something that is not a std::exception");
    return BP_ERROR_INTERNAL;
  }
}
}  // namespace detail

// Runs f, which returns void or a bp_status, and turns an exception into a status with its message at the host.
template <class F>
bp_status guard(const bp_host* host, F&& f) noexcept {
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return BP_OK;
    } else {
      return f();
    }
  } catch (...) {
    return detail::report_current_exception(host);
  }
}
template <class F>
bp_status guard(const bp_frame* frame, F&& f) noexcept {
  return guard(frame->host, static_cast<F&&>(f));
}

// Runs body(begin, end) or body(begin, end, worker) over pieces of at least `grain`, on the host's threads. The first
// failure, thrown or returned, is thrown here as Failed.
template <class Body>
void parallel_for(const bp_host* host, int64_t begin, int64_t end, int64_t grain, Body&& body) {
  struct Job {
    const bp_host* host;
    std::remove_reference_t<Body>* body;
  } job{host, &body};
  const auto run = [](void* context, int64_t first, int64_t last, int32_t worker) -> bp_status {
    const Job& job = *static_cast<const Job*>(context);
    return guard(job.host, [&] {
      if constexpr (std::is_invocable_v<Body&, int64_t, int64_t, int32_t>) {
        return (*job.body)(first, last, worker);
      } else {
        return (*job.body)(first, last);
      }
    });
  };
  check_status(host->parallel_for(begin, end, grain, run, &job));
}
template <class Body>
void parallel_for(const bp_frame* frame, int64_t begin, int64_t end, int64_t grain, Body&& body) {
  parallel_for(frame->host, begin, end, grain, static_cast<Body&&>(body));
}

struct Context {
  const bp_frame* frame;

  const bp_host* host() const { return frame->host; }
  const char* op_name() const { return frame->op->name; }
  bp_dtype compute() const { return frame->compute; }
  // What the kernel's row was registered with.
  template <class T>
  T* registered() const {
    return static_cast<T*>(frame->context);
  }
  // Device memory until the work of this call has ended; see bp_host::scratch.
  void* scratch(uint64_t bytes) const {
    void* data = nullptr;
    check_status(frame->host->scratch(frame, bytes, &data));
    return data;
  }
  template <class Body>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, Body&& body) const {
    plugin::parallel_for(frame, begin, end, grain, static_cast<Body&&>(body));
  }
};

}  // namespace backplane::plugin
