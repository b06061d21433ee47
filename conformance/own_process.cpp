// See own_process.hpp.
#include "own_process.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "backplane/op.hpp"
#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

constexpr double kLook = 0.5;    // seconds between two looks at the cases
constexpr double kTell = 30;     // seconds between two lines about a slow run
constexpr double kPatience = 5;  // seconds that a process has to end after a signal
using Clock = std::chrono::steady_clock;

bool is_traced(const std::string& process) {
  static constexpr const char* kTracer = "TracerPid:";
  std::ifstream file("/proc/" + process + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kTracer)) return std::atoi(line.c_str() + std::strlen(kTracer)) != 0;
  return false;
}

class Child {
 public:
  Child(pid_t id, const sigset_t& watched) : id_(id), watched_(watched) {}

  // Its status, or none after so many seconds. Passes the signals that end the run on.
  std::optional<int> wait(double seconds) {
    const auto whole = static_cast<time_t>(seconds);
    const timespec time{whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
    int status = 0;
    for (bool waited = false;; waited = true) {
      const pid_t ended = waitpid(id_, &status, WNOHANG);
      if (ended == id_) return status;
      BP_CHECK(ended == 0 || errno == EINTR, INTERNAL, "conformance: waitpid failed: ", std::strerror(errno));
      if (waited) return std::nullopt;
      if (const int signal = sigtimedwait(&watched_, nullptr, &time); signal > 0 && signal != SIGCHLD)
        kill(id_, signal);
    }
  }

  // Whether it has ended: a driver may hold it in the system's kernel.
  bool end() {
    for (const int signal : {SIGUSR1, SIGKILL}) {
      kill(id_, signal);
      const auto start = Clock::now();
      while (Clock::now() - start < std::chrono::duration<double>(kPatience))
        if (wait(kLook)) return true;
    }
    return false;
  }

  pid_t id() const { return id_; }

 private:
  pid_t id_;
  const sigset_t& watched_;
};

// Tells of a slow run, which prints nothing else: a device may need seconds for each call.
class Teller {
 public:
  void look(const Outcome& now, double quiet, double passed) {
    const bool terminal = isatty(STDERR_FILENO) != 0;  // it has a bar of progress
    if ((silent_ += passed) < kTell || (terminal && quiet < kTell)) return;
    silent_ = 0;
    fmt::print(stderr, "{}still running: {}{}\n", terminal ? "\n" : "",
               now.op.empty() ? "between two cases" : case_text(now),
               quiet < kTell ? "" : fmt::format(", {:.0f} s in one step", quiet));
    std::fflush(stderr);
  }

 private:
  double silent_ = 0;
};

// Its status, or the case that hangs.
std::optional<int> watch(Child& child, double deadline, Outcome& hung) {
  shared_cases::Watch cases;
  Teller teller;
  const double look = deadline > 0 ? std::min(kLook, deadline / 4) : kLook;
  for (auto before = Clock::now();;) {
    if (const auto status = child.wait(look)) return status;
    const auto now = Clock::now();
    // Where this process did not run either, as when both were stopped, nobody hung.
    const double passed = std::min(std::chrono::duration<double>(now - before).count(), 2 * look);
    before = now;
    auto [slowest, quiet] = cases.look(passed);
    teller.look(slowest, quiet, passed);
    if (deadline <= 0 || quiet < deadline || is_traced(std::to_string(child.id()))) continue;
    hung = std::move(slowest);
    return std::nullopt;
  }
}

// As the child was ended; its memory was written to a core file, if to any.
void end_by(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::signal(signal, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  raise(signal);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
}

int status_of(int status) {
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGKILL)
      fmt::print(stderr, "backplane conformance: ended by SIGKILL {}. The system sends it where memory is short\n",
                 shared_cases::latest_text());
    std::fflush(nullptr);
    end_by(WTERMSIG(status));
  }
  if (shared_cases::is_over()) return WEXITSTATUS(status);
  fmt::print(stderr,
             "backplane conformance: FAIL: the process ended with status {} {}, before the run was over. A kernel, or "
             "a library that it calls, ended it with exit, _exit or exec. Fix: report an error instead\n",
             WEXITSTATUS(status), shared_cases::latest_text());
  return 1;
}

int run_here(const std::function<int(bool)>& job, bool again) {
  try {
    const int status = job(again);
    shared_cases::set_over();
    return status;
  } catch (...) {
    shared_cases::set_over();
    throw;
  }
}

}  // namespace

int in_own_process(const std::function<int(bool again)>& job, const HangPolicy& policy) {
  if (is_traced("self")) return job(false);
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&watched, signal);
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &watched, &before);
  for (bool again = false;; again = true) {
    shared_cases::share();
    std::fflush(nullptr);
    const pid_t parent = getpid(), id = fork();
    BP_CHECK(id >= 0, INTERNAL, "conformance: fork failed: ", std::strerror(errno));
    if (id == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      return run_here(job, again);
    }
    Child child(id, watched);
    Outcome hung;
    if (const auto status = watch(child, policy.deadline, hung)) {
      const int result = status_of(*status);
      sigprocmask(SIG_SETMASK, &before, nullptr);
      return result;
    }
    const bool ended = child.end();
    if (!ended)
      fmt::print(stderr,
                 "backplane conformance: process {} cannot be ended: its device's driver holds it in the system's "
                 "kernel. Nothing else is tried\n",
                 id);
    if (policy.go_on(hung) && ended) continue;
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return policy.stop();
  }
}

}  // namespace backplane::conformance
