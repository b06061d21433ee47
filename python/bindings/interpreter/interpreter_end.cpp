// Threads that ask for the interpreter lock once the interpreter is ending.
//
// CPython before 3.14 ends such a thread where it stands, by pthread_exit, and glibc unwinds its stack by force:
// through our frames, whose destructors would touch Python without the lock, and which are noexcept in part, so that
// the process would abort. It can happen in every function of Python's that may run Python code, so no list of our
// calls would be complete. Instead every C++ frame of this module answers such unwinding in the same way, before
// anything of the frame is unwound: the thread stays where it is until the process has gone, as CPython 3.14 has it for
// all threads.
//
// python/CMakeLists.txt makes the linker put __wrap___gxx_personality_v0, what the unwinder asks of a C++ frame, in the
// place of the compiler's.
#include <unistd.h>
#include <unwind.h>

#include "backplane/plugins.hpp"
#include "bindings/interpreter/interrupts.hpp"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// Without the state of a thread the interpreter is gone for that thread, too.
bool interpreter_gone() noexcept {
  return interpreter_ending() && !(on_main_thread() && PyGILState_GetThisThreadState());
}

}  // namespace backplane::python

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception, _Unwind_Context* context);

[[gnu::visibility("hidden")]] _Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions,
                                                                              _Unwind_Exception_Class kind,
                                                                              _Unwind_Exception* exception,
                                                                              _Unwind_Context* context) {
  if ((actions & _UA_FORCE_UNWIND) && backplane::python::interpreter_gone()) {
    backplane::abandon_calls();
    for (;;) pause();
  }
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
