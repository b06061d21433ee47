// The Vulkan backend as a plugin: its devices and the rows of its kernels.
//
// Built on the public headers alone. Not unloadable: drivers keep threads and thread-local state of their own.
// The backend lives from registration to stop; a process that ends without stop leaves it alone.
#include "backplane/plugin.hpp"

#include <memory>

#include "kernels/kernels.hpp"

namespace backplane::vulkan {
namespace {

Backend* backend = nullptr;

bp_status BP_CALL stop(void*) {
  delete std::exchange(backend, nullptr);
  return BP_OK;
}

void register_all(plugin::Registrar& registrar) {
  stop(nullptr);  // what an earlier registration that failed has left
  backend = new Backend(registrar.host());
  registrar.backend(backend->table());
  for (const auto family :
       {register_elementwise, register_moves, register_creation, register_reductions, register_lines, register_matmul,
        register_conv, register_norm, register_layer_norm, register_pool, register_along_axis, register_softmax,
        register_attention, register_indexing})
    family(registrar, *backend);
}

}  // namespace
}  // namespace backplane::vulkan

BP_DEFINE_PLUGIN("backplane_vulkan", "0.1.0", backplane::vulkan::register_all, .stop = backplane::vulkan::stop)
