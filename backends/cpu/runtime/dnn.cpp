// See dnn.hpp.
#ifdef BACKPLANE_ONEDNN

#include "runtime/dnn.hpp"

#include <csignal>
#include <cstdint>

namespace backplane::cpu {
namespace {

thread_local int32_t nested = 0;
thread_local sigset_t signals_before;

// All but what a fault of the thread itself raises.
sigset_t signals_of_others() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&set, fault);
  return set;
}
const sigset_t kOfOthers = signals_of_others();

}  // namespace

DnnCall::DnnCall() : threads_before_(omp_get_max_threads()) {
  if (nested++ == 0) pthread_sigmask(SIG_BLOCK, &kOfOthers, &signals_before);
  if (threads_before_ != 1) omp_set_num_threads(1);
}

DnnCall::~DnnCall() {
  if (threads_before_ != 1) omp_set_num_threads(threads_before_);
  if (--nested == 0) pthread_sigmask(SIG_SETMASK, &signals_before, nullptr);
}

}  // namespace backplane::cpu

#endif
