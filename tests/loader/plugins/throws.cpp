// A plugin that throws where the contract allows no exception: in its query, or while it registers.
#include <stdexcept>

#include "tiny.h"

namespace {

bp_status BP_CALL register_all(void*, const bp_host* host, bp_plugin_record* record) {
  if (bp_status status = tiny_register_op(host, record, "throws::left_over", 0)) return status;
  throw std::runtime_error("out of luck");
}

}  // namespace

extern "C" BP_EXPORT bp_status BP_CALL bp_plugin_query(uint32_t, uint32_t, bp_plugin* out) {
#ifdef THROW_IN_QUERY
  throw 42;
#endif
  *out = bp_plugin{BP_HEADER(bp_plugin), BP_ABI_MAJOR, BP_ABI_MINOR, 1, BP_PLUGIN_UNLOADABLE, "throws", "1.0", nullptr,
                   register_all,         nullptr};
  return BP_OK;
}
