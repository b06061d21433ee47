// The plugin of collectives: the ops of ops.yaml and their kernels. See provider.h for what moves the data.
#include "backplane/plugin.hpp"

#include "collective_records.h"
#include "kernels.hpp"

namespace {

void register_collectives(const backplane::plugin::Registrar& registrar) {
  for (uint32_t i = 0; i < collective_op_count; ++i) registrar.op(*collective_ops[i]);
  backplane::collectives::register_kernels(registrar);
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_collectives)
