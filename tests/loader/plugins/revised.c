/* An op of revision 1, which gained `scale`, with a kernel that was written for revision 0; and where REVISED_NEWER,
 * one written for a later revision than the op's. */
#include "tiny.h"

static bp_status BP_CALL scale(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                               int32_t n_outs) {
  (void)frame;
  (void)n_outs;
  if (n_args != 1) return BP_ERROR_INTERNAL; /* the argument that came later is not passed */
  return tiny_scale(args, outs, 5.0f);
}

static bp_status BP_CALL register_all(void* context, const bp_host* host, bp_plugin_record* record) {
  bp_status status = tiny_register_op(host, record, REVISED_NAME "::scale", 1);
  (void)context;
#ifdef REVISED_NEWER
  if (status == BP_OK) status = tiny_register_kernel(host, record, REVISED_NAME "::scale", "first", scale, 2, 0);
#else
  if (status == BP_OK) status = tiny_register_kernel(host, record, REVISED_NAME "::scale", "first", scale, 0, 0);
#endif
  return status;
}

TINY_PLUGIN(REVISED_NAME, BP_PLUGIN_UNLOADABLE, register_all, NULL)
