// cast, and the table of conversions that reductions into a wider dtype share.
#include "convert.hpp"

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

void cast(const Call& call) {
  call.record([run = convert_run(call.output(0).dtype, call.compute()), loop = call.loop()] {
    for_each_run<2>(loop, [&](const auto& at, const auto& step, int64_t n) { run(at[0], step[0], at[1], step[1], n); });
  });
}

constexpr Row kRows[] = {{"bp::cast", kernel<cast>, kAll, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES}};

}  // namespace

ConvertRun convert_run(bp_dtype out, bp_dtype in) { return backplane::plugin::convert_run(out, in); }

Table convert_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
