// The kernel families, one registering function each: primitives, every elementwise op of the registry, convolutions,
// and the layers of networks. All else reaches the device by decomposition.
#pragma once

#include "kernels/call.hpp"
#include "runtime/backend.hpp"

namespace backplane::vulkan {

void register_elementwise(const plugin::Registrar& registrar, Backend& backend);
void register_moves(const plugin::Registrar& registrar, Backend& backend);
void register_creation(const plugin::Registrar& registrar, Backend& backend);
void register_reductions(const plugin::Registrar& registrar, Backend& backend);
void register_lines(const plugin::Registrar& registrar, Backend& backend);
void register_matmul(const plugin::Registrar& registrar, Backend& backend);
void register_conv(const plugin::Registrar& registrar, Backend& backend);
void register_norm(const plugin::Registrar& registrar, Backend& backend);
void register_layer_norm(const plugin::Registrar& registrar, Backend& backend);
void register_pool(const plugin::Registrar& registrar, Backend& backend);
void register_along_axis(const plugin::Registrar& registrar, Backend& backend);
void register_softmax(const plugin::Registrar& registrar, Backend& backend);
void register_attention(const plugin::Registrar& registrar, Backend& backend);
void register_indexing(const plugin::Registrar& registrar, Backend& backend);

// `context` comes back in the frame.
inline void register_rows(const plugin::Registrar& registrar, std::span<const Row> rows, const char* file,
                          void* context = nullptr) {
  for (const Row& row : rows)
    registrar.kernel(plugin::kernel_row(row.op, "vulkan", row.fn, file, row.line,
                                        {.dtypes = row.dtypes,
                                         .flags = row.flags,
                                         .context = context,
                                         .max_elements = kMaxElements,
                                         .supports = row.supports}));
}

}  // namespace backplane::vulkan
