// See running.hpp. The handler calls what may be called there alone: write, raise, and reads of memory that is there.
#include "running.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

constinit thread_local const Running* mine = nullptr;
constinit thread_local const char* text_of_mine = nullptr;
thread_local std::function<void()> before_each_case;
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
  const char* text = text_of_mine ? text_of_mine : latest.load();
  put("\nbackplane conformance: ended by ");
  put(name_of(signal));
  put(text_of_mine || !text ? " in " : " on another thread, during or after ");
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

BeforeEachCase::BeforeEachCase(std::function<void()> call) { before_each_case = std::move(call); }
BeforeEachCase::~BeforeEachCase() { before_each_case = nullptr; }

Running::Running(const Outcome& outcome) : outcome_(outcome), text_(case_text(outcome)), before_(mine) {
  if (before_each_case) before_each_case();
  mine = this;
  text_of_mine = text_.c_str();
  latest = text_of_mine;
  shared_cases::begin(outcome_);
}

Running::~Running() {
  const char* here = text_of_mine;
  mine = before_;
  text_of_mine = before_ ? before_->text_.c_str() : nullptr;
  latest.compare_exchange_strong(here, text_of_mine);
  shared_cases::end(before_ ? std::optional(before_->outcome_) : std::nullopt);
}

}  // namespace backplane::conformance
