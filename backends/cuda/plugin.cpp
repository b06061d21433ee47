// The CUDA backend as a plugin: its devices and the rows of its kernels.
//
// Built on the public headers alone; of NVIDIA's libraries it links none. Not unloadable: the driver keeps threads and
// state of its own. The backend lives from registration to stop; a process that ends without stop leaves it alone.
#include "backplane/plugin.hpp"

#include <deque>
#include <utility>

#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

struct Registered {
  explicit Registered(const bp_host* host) : backend(host) {}
  Backend backend;
  std::deque<Row> rows;
};
Registered* registered = nullptr;

bp_status BP_CALL stop(void*) {
  delete std::exchange(registered, nullptr);
  return BP_OK;
}

void register_all(plugin::Registrar& registrar) {
  stop(nullptr);  // what an earlier registration that failed has left
  registered = new Registered(registrar.host());
  registrar.backend(registered->backend.table());
  const Registration registration{registrar, registered->backend, registered->rows};
  for (const auto family : {register_along_axis, register_attention, register_convolution, register_creation,
                            register_elementwise, register_factorizations, register_fourier, register_indexing,
                            register_lines, register_matmul, register_orthogonal, register_placement, register_random,
                            register_reductions, register_sorting, register_windows})
    family(registration);
}

}  // namespace
}  // namespace backplane::cuda

BP_DEFINE_PLUGIN("backplane_cuda", "0.2.0", backplane::cuda::register_all, .stop = backplane::cuda::stop)
