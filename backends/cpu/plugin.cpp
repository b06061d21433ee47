// The CPU backend as a plugin: its device with its compiler, and the rows of all kernel families.
//
// Built on the public headers alone. Not unloadable: OpenBLAS, which it links, keeps threads of its own.
#include "backplane/plugin.hpp"

#include "fuse/compiler.hpp"
#include "kernels/families.hpp"
#include "runtime/blas.hpp"
#include "runtime/device.hpp"

namespace backplane::cpu {
namespace {

void register_all(plugin::Registrar& registrar) {
  set_up_blas();
  registrar.backend(backend_def(registrar.host(), fuse::compiler));
  Family::register_all(registrar);
}

}  // namespace
}  // namespace backplane::cpu

BP_DEFINE_PLUGIN("backplane_cpu", "0.1.0", backplane::cpu::register_all, .stop = backplane::cpu::stop_device)
