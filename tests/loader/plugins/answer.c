/* A plugin whose table is whatever the build says: ANSWER_MAJOR, ANSWER_NEEDS, ANSWER_SIZE, ANSWER_NAME, and
 * ANSWER_STATUS, ANSWER_FLAGS, ANSWER_NO_REGISTER, ANSWER_TAIL (bytes written behind the table as this minor knows it).
 */
#include <string.h>

#include "backplane/abi/plugin.h"

#ifndef ANSWER_MAJOR
#define ANSWER_MAJOR BP_ABI_MAJOR
#endif
#ifndef ANSWER_NEEDS
#define ANSWER_NEEDS 1
#endif
#ifndef ANSWER_SIZE
#define ANSWER_SIZE sizeof(bp_plugin)
#endif
#ifndef ANSWER_STATUS
#define ANSWER_STATUS BP_OK
#endif
#ifndef ANSWER_FLAGS
#define ANSWER_FLAGS BP_PLUGIN_UNLOADABLE
#endif
#ifndef ANSWER_TAIL
#define ANSWER_TAIL 0
#endif

#ifndef ANSWER_NO_REGISTER
static bp_status BP_CALL register_nothing(void* context, const bp_host* host, bp_plugin_record* record) {
  (void)context;
  (void)host;
  (void)record;
  return BP_OK;
}
#endif

BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t host_major, uint32_t host_minor, bp_plugin* out) {
  (void)host_major;
  (void)host_minor;
  out->header.struct_size = ANSWER_SIZE;
  out->header.version = BP_ABI_MINOR;
  out->abi_major = ANSWER_MAJOR;
  out->abi_minor = BP_ABI_MINOR;
  out->needs_minor = ANSWER_NEEDS;
  out->flags = ANSWER_FLAGS;
  out->name = ANSWER_NAME;
  out->version = "1.0";
#ifndef ANSWER_NO_REGISTER
  out->register_all = register_nothing;
#endif
  /* A table that ends before `stop` leaves what stands there undefined. */
  if (ANSWER_SIZE < sizeof(bp_plugin)) memset(&out->stop, 0x5a, sizeof out->stop);
#if ANSWER_TAIL > 0
  memset((char*)out + sizeof(bp_plugin), 0x5a, ANSWER_TAIL);
#endif
  return ANSWER_STATUS;
}
