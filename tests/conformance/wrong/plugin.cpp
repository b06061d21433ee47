// Registers the ops of ops.yaml, which have no kernels.
#include "backplane/plugin.hpp"
#include "wrong_records.h"

namespace {

void register_all(const backplane::plugin::Registrar& registrar) {
  for (uint32_t i = 0; i < wrong_op_count; ++i) registrar.op(*wrong_ops[i]);
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)
