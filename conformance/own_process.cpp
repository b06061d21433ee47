// See own_process.hpp. The two processes share a page: whether the job is over, and the last case that it tried.
#include "own_process.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "backplane/op.hpp"

namespace backplane::conformance {
namespace {

struct Page {
  std::atomic<bool> over;
  char tried[256];  // ends with 0 whatever a thread writes at the same time: the last byte is never written
};
Page* page = nullptr;  // none where the job runs in the process of its caller

bool is_traced() {
  static constexpr const char* kTracer = "TracerPid:";
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(kTracer)) return std::atoi(line.c_str() + std::strlen(kTracer)) != 0;
  return false;
}

// Passes the signals that end the run on, until the child has ended.
int wait_for(pid_t child, const sigset_t& watched) {
  for (;;) {
    int status = 0, signal = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    BP_CHECK(ended == 0 || errno == EINTR, INTERNAL, "conformance: waitpid failed: ", std::strerror(errno));
    if (sigwait(&watched, &signal) == 0 && signal != SIGCHLD) kill(child, signal);
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

std::string tried() { return *page->tried ? std::string("in or after ") + page->tried : "before its first case"; }

int run_here(const std::function<int()>& job) {
  try {
    const int status = job();
    job_is_over();
    return status;
  } catch (...) {
    job_is_over();
    throw;
  }
}

}  // namespace

void job_is_over() {
  if (page) page->over = true;
}

void job_tries(const char* text) {
  if (page) std::strncpy(page->tried, text, sizeof page->tried - 1);
}

int in_own_process(const std::function<int()>& job) {
  if (is_traced()) return job();
  void* shared = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  BP_CHECK(shared != MAP_FAILED, MEMORY, "conformance: mmap failed: ", std::strerror(errno));
  page = new (shared) Page{};
  sigset_t watched, before;
  sigemptyset(&watched);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&watched, signal);
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &watched, &before);
  std::fflush(nullptr);
  const pid_t parent = getpid(), child = fork();
  BP_CHECK(child >= 0, INTERNAL, "conformance: fork failed: ", std::strerror(errno));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return run_here(job);
  }
  const int status = wait_for(child, watched);
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGKILL)
      std::fprintf(stderr, "backplane conformance: ended by SIGKILL %s. The system sends it where memory is short\n",
                   tried().c_str());
    std::fflush(nullptr);
    end_by(WTERMSIG(status));
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (page->over) return WEXITSTATUS(status);
  std::fprintf(
      stderr,
      "backplane conformance: FAIL: the process ended with status %d %s, before the run was over. A kernel, or "
      "a library that it calls, ended it with exit, _exit or exec. Fix: report an error instead\n",
      WEXITSTATUS(status), tried().c_str());
  return 1;
}

}  // namespace backplane::conformance
