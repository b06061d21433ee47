// full and iota.
#include <algorithm>

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {

namespace {

void full(const Call& call) {
  const Operand out = call.output(0);
  const bp_value& fill = call.value(1);
  dispatch_dtype<kAll>(out.dtype, [&]<class T>() {
    call.record([first = reinterpret_cast<T*>(out.data), n = out.count(), element = element_of<T>(fill)] {
      std::fill(first, first + n, element);
    });
  });
}

// Integers count exactly, and wrap; with a float among start and step the values are computed in double and rounded
// once.
void iota(const Call& call) {
  const Operand out = call.output(0);
  const bp_value &start = call.value(1), &step = call.value(2);
  const auto whole = [](const bp_value& number) { return number.tag == BP_TAG_INT || number.tag == BP_TAG_BOOL; };
  const bool exact = whole(start) && whole(step);
  dispatch_dtype<kAll>(out.dtype, [&]<class T>() {
    using Wide = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
    auto* first = reinterpret_cast<T*>(out.data);
    const int64_t n = out.count();
    if (exact)
      call.record([=, begin = start.u.i, by = step.u.i] {
        for (int64_t i = 0; i < n; ++i) first[i] = convert<T>(wrapping_add(begin, wrapping_multiply(i, by)));
      });
    else
      call.record([=, begin = element_of<Wide>(start), by = element_of<Wide>(step)] {
        for (int64_t i = 0; i < n; ++i) first[i] = convert<T>(begin + static_cast<double>(i) * by);
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
