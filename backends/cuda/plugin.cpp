// The CUDA backend as a plugin: its devices and the rows of its kernels.
//
// Built on the public headers alone. Not unloadable: CUDA's runtime and cuBLAS keep threads and state of their own.
// The backend lives from registration to stop; a process that ends without stop leaves it alone.
#include "backplane/plugin.hpp"

#include <utility>

#include "kernels/families.hpp"

namespace backplane::cuda {
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
  for (const auto family : {register_elementwise, register_matmul, register_full}) family(registrar);
}

}  // namespace
}  // namespace backplane::cuda

BP_DEFINE_PLUGIN("backplane_cuda", "0.1.0", backplane::cuda::register_all, .stop = backplane::cuda::stop)
