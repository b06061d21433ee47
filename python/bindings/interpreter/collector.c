#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wshadow"
#endif
#define Py_BUILD_CORE 1
#include "bindings/interpreter/collector.h"

#include <Python.h>
#include <internal/pycore_interp.h>

int collects_garbage(void) { return PyInterpreterState_Get()->gc.collecting; }
