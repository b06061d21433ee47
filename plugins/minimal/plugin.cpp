// The plugin's entry: it registers the backend and its kernels. Nothing is started here.
#include "device.hpp"
#include "kernels/kernels.hpp"

namespace {

minimal::Backend backend;

void register_all(const backplane::plugin::Registrar& registrar) {
  backend.register_on(registrar, minimal::kName);
  minimal::register_elementwise(registrar);
  minimal::register_movement(registrar);
  minimal::register_values(registrar);
  minimal::register_matmul(registrar);
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)
