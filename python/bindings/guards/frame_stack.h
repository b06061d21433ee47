/* The operands of the instruction that a frame of Python is about to execute.
 *
 * A trace function of CPython gets the frame and the instruction, not the values that the instruction takes; those
 * lie on the frame's value stack, whose place differs between the interpreter's versions. Everything is borrowed and
 * good until the trace function returns. Needs the interpreter lock. C, since the interpreter's own headers are.
 */
#ifndef BACKPLANE_PYTHON_FRAME_STACK_H
#define BACKPLANE_PYTHON_FRAME_STACK_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  PyObject** end;     /* one behind the top of the stack; NULL: unknown */
  Py_ssize_t count;   /* values on it */
  PyObject** locals;  /* first of all the arguments */
  PyObject** cells;   /* what LOAD_DEREF counts from */
  PyObject* function; /* that runs; NULL: unknown */
} FrameStack;

/* Does frame_stack want the stack's depth? Interpreters from 3.12 on do not keep it for trace functions. */
int frame_stack_wants_depth(void);
/* Inside a trace function, for the frame that it was called with. `depth`: values on the stack, where that is wanted;
 * -1: unknown. */
FrameStack frame_stack(PyFrameObject* frame, int depth);
/* The name of the cell with this number in LOAD_DEREF; a new reference, or NULL. */
PyObject* cell_name(PyObject* code, int number);

#ifdef __cplusplus
}
#endif
#endif
