// The simulator's entry: two backends over the same kernels, "sim" (protected memory) and "simh" (handles).
// The backends live from registration to stop. A process that ends without stop leaves them alone: its threads are
// gone by then.
#include <utility>

#include "backplane/abi/device_extensions.h"
#include "device.hpp"
#include "kernels/kernels.hpp"

namespace {

// Handle mode also asks for byte offsets in multiples of 16, as many accelerators do.
constexpr uint64_t kHandleAlignment = 16;

sim::Backend* backends[2] = {};

bp_status BP_CALL stop(void*) {
  for (sim::Backend*& backend : backends) delete std::exchange(backend, nullptr);
  return BP_OK;
}

void register_table(const backplane::plugin::Registrar& registrar, sim::Backend& backend, const sim::Table& table) {
  for (const sim::Row& row : table.rows)
    registrar.kernel(backplane::plugin::kernel_row(row.op, backend.name(), row.fn, table.file, row.line,
                                                   {.dtypes = row.dtypes,
                                                    .flags = row.flags | BP_KERNEL_CAPTURABLE,
                                                    .context = &backend,
                                                    .offset_alignment = backend.alignment()}));
}

void register_all(const backplane::plugin::Registrar& registrar) {
  stop(nullptr);  // what an earlier registration that failed has left
  backends[0] = new sim::Backend("sim", sim::Addressing::kProtected, 1);
  backends[1] = new sim::Backend("simh", sim::Addressing::kHandle, kHandleAlignment);
  for (sim::Backend* backend : backends) {
    backend->register_on(registrar);
    for (const sim::Table& table : sim::all_kernels()) register_table(registrar, *backend, table);
  }
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all, .stop = stop)
