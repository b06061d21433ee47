// Elementwise rows by their op, for who runs their loops on elements of his own.
#pragma once

#include <string_view>

#include "loops/elementwise.hpp"

namespace backplane::cpu {

// So many tensors, then so many Scalars.
struct ElementwiseOp {
  const ElementwiseRow* row = nullptr;  // NULL: there is none
  int tensors = 0, scalars = 0;
};
// Of what register_elementwise has been given.
ElementwiseOp find_elementwise(std::string_view op);

void note_elementwise(const ElementwiseRow& row);  // at registration

}  // namespace backplane::cpu
