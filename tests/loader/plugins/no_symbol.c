/* A shared object that is no plugin. Its constructor says so to whoever opens it all the same. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include <stdlib.h>

__attribute__((constructor)) static void opened(void) { setenv("BACKPLANE_TEST_OPENED_NO_SYMBOL", "1", 1); }

__attribute__((visibility("default"))) int answer(void) { return 42; }
