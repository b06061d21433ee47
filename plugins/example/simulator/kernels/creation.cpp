// full and iota.
#include <algorithm>

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {

namespace {

void full(const Call& call) {
  const Operand out = call.output(0);
  const bp_value fill = call.value(1);
  dispatch_dtype<kAll>(out.dtype, [&]<class T>() {
    call.record([=, first = reinterpret_cast<T*>(out.data), n = out.count()] {
      std::fill(first, first + n, element_of<T>(fill));
    });
  });
}

// Integers count exactly; with a float among start and step the values are computed in double and rounded once.
void iota(const Call& call) {
  const Operand out = call.output(0);
  const bp_value start = call.value(1), step = call.value(2);
  const bool exact = start.tag != BP_TAG_FLOAT && step.tag != BP_TAG_FLOAT;
  dispatch_dtype<kAll>(out.dtype, [&]<class T>() {
    call.record([=, first = reinterpret_cast<T*>(out.data), n = out.count()] {
      for (int64_t i = 0; i < n; ++i)
        first[i] = exact
                       ? static_cast<T>(start.u.i + i * step.u.i)
                       : static_cast<T>(element_of<double>(start) + static_cast<double>(i) * element_of<double>(step));
    });
  });
}

constexpr Row kRows[] = {
    {"bp::full", kernel<full>, BP_MASK_ANY, 0},
    {"bp::iota", kernel<iota>, BP_MASK_ANY, 0},
};

}  // namespace

Table creation_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
