// The plugin's entry: it registers the backend and its kernels. The driver starts when the device is first named.
#include "kernels/kernels.hpp"
#include "runtime/backend.hpp"

namespace {

minimal::Backend* backend = nullptr;  // from registration to stop

bp_status BP_CALL stop(void*) {
  delete std::exchange(backend, nullptr);
  return BP_OK;
}

void register_all(const backplane::plugin::Registrar& registrar) {
  stop(nullptr);  // what an earlier registration that failed has left
  backend = new minimal::Backend;
  backend->register_on(registrar);
  minimal::register_elementwise(registrar);
  minimal::register_movement(registrar);
  minimal::register_values(registrar);
  minimal::register_lines(registrar);
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all, .stop = stop)
