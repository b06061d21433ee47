#include "interpreter.hpp"

#include <dlfcn.h>

namespace backplane::collectives {
namespace {

template <class F>
F found(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}

struct Interpreter {
  int (*holds_lock)() = found<int (*)()>("PyGILState_Check");
  void* (*save)() = found<void* (*)()>("PyEval_SaveThread");
  void (*restore)(void*) = found<void (*)(void*)>("PyEval_RestoreThread");
  int (*is_running)() = found<int (*)()>("Py_IsInitialized");
  bool is_there() const { return holds_lock && save && restore && is_running && is_running(); }
};

const Interpreter& interpreter() {
  static const Interpreter found;
  return found;
}

}  // namespace

WithoutInterpreter::WithoutInterpreter() {
  if (interpreter().is_there() && interpreter().holds_lock()) state_ = interpreter().save();
}

WithoutInterpreter::~WithoutInterpreter() {
  if (state_) interpreter().restore(state_);
}

}  // namespace backplane::collectives
