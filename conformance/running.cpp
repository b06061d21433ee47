// See running.hpp. The handler calls what may be called there alone: write, raise, and reads of memory that is there.
#include "running.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "backplane/device.hpp"
#include "own_process.hpp"

namespace backplane::conformance {
namespace {

constinit thread_local const char* mine = nullptr;
constinit std::atomic<const char*> latest{nullptr};  // a device's own threads try nothing
constinit bool checked = false;

void put(const char* text) {
  if (write(STDERR_FILENO, text, std::strlen(text)) < 0) return;
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

void report_running_op(int signal) {
  const char* text = mine ? mine : latest.load();
  put("\nbackplane conformance: ended by ");
  put(name_of(signal));
  put(mine || !text ? " in " : " on another thread, during or after ");
  put(text ? text : "no case");
  put(checked ? "\n"
              : ". The fault may be in a kernel that ran before. Fix: run it again with BACKPLANE_CHECKED=1 in the "
                "environment, which looks around every call and names the kernel that writes where it must not\n");
  raise(signal);  // SA_RESETHAND: what the system does for it
}

}  // namespace

void report_crashes() {
  const char* wanted = std::getenv("BACKPLANE_CHECKED");
  checked = wanted && std::strcmp(wanted, "1") == 0;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    struct sigaction now {};
    if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
    now.sa_handler = report_running_op;
    now.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &now, nullptr);
  }
}

Running::Running(const Outcome& outcome) : before_(mine) {
  std::snprintf(text_, sizeof text_, "%s, check \"%s\", sample %zu, %s", outcome.op.c_str(), outcome.check.c_str(),
                outcome.sample, outcome.dtype == BP_DTYPE_NONE ? "no dtype" : dtype_name(outcome.dtype));
  mine = text_;
  latest = text_;
  job_tries(text_);
}

Running::~Running() {
  mine = before_;
  const char* here = text_;
  latest.compare_exchange_strong(here, before_);
}

}  // namespace backplane::conformance
