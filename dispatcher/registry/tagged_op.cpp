#include "registry/tagged_op.hpp"

namespace backplane::core {

const OpEntry& tagged_op(std::string_view tag) {
  for (uint32_t i = 0; i < op_count(); ++i) {
    const OpEntry& op = *op_entry(i);
    if (!op.withdrawn && op.record->def.tags &&
        std::string_view(op.record->def.tags).find(tag) != std::string_view::npos)
      return op;
  }
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, "no op of the registry has the tag ", tag, ", which a part of the core needs");
}

}  // namespace backplane::core
