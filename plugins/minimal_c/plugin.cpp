// The plugin's entry: it registers the backend, whose table is C, and its kernels. Nothing is started here.
#include "device.h"
#include "kernels/kernels.hpp"

namespace {

void register_all(const backplane::plugin::Registrar& registrar) {
  backplane::plugin::check_status(minimal_register_device(registrar.host(), registrar.record(), minimal::kName));
  minimal::register_elementwise(registrar);
  minimal::register_movement(registrar);
  minimal::register_values(registrar);
  minimal::register_matmul(registrar);
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)
