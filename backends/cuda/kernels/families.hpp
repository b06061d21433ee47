// The kernel families, one registering function each.
#pragma once

#include <deque>
#include <string>

#include "backplane/abi/device_extensions.h"
#include "kernels/call.hpp"

namespace backplane::cuda {

// Rows of this backend. Their contexts live in `rows`.
struct Registration {
  const plugin::Registrar& registrar;
  Backend& backend;
  std::deque<Row>& rows;

  // `op` without its namespace. What a kernel does is launch, with its arguments in the launch: it may be captured.
  // With `supports` the row may decline a call, and what a library does for it, plans of its own included, is not
  // captured; a row that declines but has a kernel of ours names BP_KERNEL_CAPTURABLE in its flags.
  void row(const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, uint32_t flags, const char* file, uint32_t line,
           bp_kernel_fn supports = nullptr) const {
    rows.push_back({&backend, op});
    const std::string name = std::string("bp::") + op;
    registrar.kernel(plugin::kernel_row(name.c_str(), "cuda", fn, file, line,
                                        {.dtypes = dtypes,
                                         .flags = flags | (supports ? 0u : uint32_t{BP_KERNEL_CAPTURABLE}),
                                         .context = &rows.back(),
                                         .supports = supports}));
  }
};

void register_along_axis(const Registration& registration);
void register_attention(const Registration& registration);
void register_convolution(const Registration& registration);
void register_creation(const Registration& registration);
void register_elementwise(const Registration& registration);
void register_factorizations(const Registration& registration);
void register_fourier(const Registration& registration);
void register_indexing(const Registration& registration);
void register_lines(const Registration& registration);
void register_matmul(const Registration& registration);
void register_orthogonal(const Registration& registration);
void register_placement(const Registration& registration);
void register_random(const Registration& registration);
void register_reductions(const Registration& registration);
void register_sorting(const Registration& registration);
void register_windows(const Registration& registration);

}  // namespace backplane::cuda
