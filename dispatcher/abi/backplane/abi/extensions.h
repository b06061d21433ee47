/* Backplane binary contract: groups of functions beyond the tables, by name and version.
 *
 * bp_host::extension and bp_backend_def::extension give them. Each struct begins with a bp_header; a later version of a
 * name appends to it, so that who asks for version 1 may get a larger struct. */
#ifndef BACKPLANE_ABI_EXTENSIONS_H
#define BACKPLANE_ABI_EXTENSIONS_H

#include "backplane/abi/device_extensions.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functionality keys of the calling thread: how "autocast" or "profile" is switched on. */
#define BP_EXTENSION_KEYS "keys"
typedef struct bp_extension_keys {
  bp_header header;
  /* The bit of a key in frame->keys; 0: there is none of that name. */
  uint64_t(BP_CALL* find)(const char* name);
  /* From now on every call of this thread carries these keys (on != 0) or no longer does. Gives those of them that it
   * carried before. Bits that are no plugin's key are left out. */
  uint64_t(BP_CALL* include)(uint64_t keys, int32_t on);
} bp_extension_keys;

#ifdef __cplusplus
}
#endif
#endif
