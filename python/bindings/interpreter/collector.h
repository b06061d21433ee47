/* What only the interpreter's own headers say of its garbage collector, so in C. */
#ifndef BACKPLANE_PYTHON_COLLECTOR_H
#define BACKPLANE_PYTHON_COLLECTOR_H

#ifdef __cplusplus
extern "C" {
#endif

/* Is garbage being collected, the functions of gc.callbacks included? Needs the interpreter lock. */
int collects_garbage(void);

#ifdef __cplusplus
}
#endif
#endif
