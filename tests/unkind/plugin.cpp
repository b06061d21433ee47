// The entry of the unkind devices: two backends, "unkind" (addresses; the host's pool) and "unkindh" (handles; a pool
// of their own), with the simulator's kernels.
//
// They do all that the contract allows an accelerator to do, and look at what the host does: see scheduler.hpp.
#include <utility>

#include "backplane/abi/device_extensions.h"
#include "device.hpp"
#include "kernels/kernels.hpp"

namespace {

unkind::Backend* backends[2] = {};

bp_status BP_CALL stop(void*) {
  for (unkind::Backend*& backend : backends) delete std::exchange(backend, nullptr);
  return BP_OK;
}

void register_all(const backplane::plugin::Registrar& registrar) {
  stop(nullptr);  // what an earlier registration that failed has left
  backends[0] = new unkind::Backend("unkind", true, 1);
  backends[1] = new unkind::Backend("unkindh", false, 16);
  for (unkind::Backend* backend : backends) {
    backend->register_on(registrar);
    for (const sim::Table& table : sim::all_kernels())
      for (const sim::Row& row : table.rows)
        registrar.kernel(backplane::plugin::kernel_row(row.op, backend->name(), row.fn, table.file, row.line,
                                                       {.dtypes = row.dtypes,
                                                        .flags = row.flags | BP_KERNEL_CAPTURABLE,
                                                        .context = backend,
                                                        .offset_alignment = backend->alignment()}));
  }
}

}  // namespace

BP_DEFINE_PLUGIN("unkind", "0.1.0", register_all, .stop = stop)
