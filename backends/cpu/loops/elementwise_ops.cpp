#include "loops/elementwise_ops.hpp"

#include <map>

namespace backplane::cpu {
namespace {

// Filled at registration, and constant afterwards.
std::map<std::string_view, const ElementwiseRow*>& rows() {
  static std::map<std::string_view, const ElementwiseRow*> all;
  return all;
}

constexpr struct {
  bp_kernel_fn fn;
  int tensors, scalars;
} kForms[] = {{elementwise_unary, 1, 0},
              {elementwise_binary, 2, 0},
              {elementwise_ternary, 3, 0},
              {elementwise_with_scalars<1, 1>, 1, 1},
              {elementwise_with_scalars<1, 2>, 1, 2},
              {elementwise_with_scalars<1, 3>, 1, 3},
              {elementwise_with_scalars<2, 1>, 2, 1},
              {elementwise_with_scalars<2, 2>, 2, 2},
              {elementwise_with_scalars<2, 3>, 2, 3}};

}  // namespace

void note_elementwise(const ElementwiseRow& row) { rows()[row.op] = &row; }

ElementwiseOp find_elementwise(std::string_view op) {
  const auto found = rows().find(op);
  if (found == rows().end()) return {};
  for (const auto& form : kForms)
    if (form.fn == found->second->fn) return {found->second, form.tensors, form.scalars};
  return {};
}

}  // namespace backplane::cpu
