#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#define Py_BUILD_CORE 1 /* the layout of frames is the interpreter's own */
#include "bindings/guards/frame_stack.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error \
    "Backplane reads the frames of CPython 3.11, 3.12 and 3.13. Each version has its own layout; other versions are not supported"
#elif PY_VERSION_HEX < 0x030C0000
#include <internal/pycore_frame.h>

int frame_stack_wants_depth(void) { return 0; }

FrameStack frame_stack(PyFrameObject* frame, int depth) {
  (void)depth;
  _PyInterpreterFrame* const f = frame->f_frame;
  const Py_ssize_t count = f->stacktop - f->f_code->co_nlocalsplus;
  FrameStack stack = {NULL, 0, f->localsplus, f->localsplus, (PyObject*)f->f_func};
  if (count < 0) return stack;
  stack.end = f->localsplus + f->stacktop;
  stack.count = count;
  return stack;
}

#else
#include <internal/pycore_code.h>
#include <internal/pycore_frame.h>

int frame_stack_wants_depth(void) { return 1; }

FrameStack frame_stack(PyFrameObject* frame, int depth) {
  _PyInterpreterFrame* const f = frame->f_frame;
#if PY_VERSION_HEX >= 0x030D0000
  PyCodeObject* const code = (PyCodeObject*)f->f_executable;
#else
  PyCodeObject* const code = f->f_code;
#endif
  FrameStack stack = {NULL, 0, f->localsplus, f->localsplus, f->f_funcobj};
  if (depth < 0) return stack;
  stack.end = f->localsplus + code->co_nlocalsplus + depth;
  stack.count = depth;
  return stack;
}

#endif

PyObject* cell_name(PyObject* code, int number) {
  PyObject* names = ((PyCodeObject*)code)->co_localsplusnames;
  return number < PyTuple_GET_SIZE(names) ? Py_NewRef(PyTuple_GET_ITEM(names, number)) : NULL;
}
