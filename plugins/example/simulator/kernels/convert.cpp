// cast, and the table of conversions that reductions into a wider dtype share.
#include "convert.hpp"

#include "kernels.hpp"
#include "loops.hpp"

namespace sim {
namespace {

template <class Out, class In>
void convert_elements(char* out, int64_t out_step, const char* in, int64_t in_step, int64_t n) {
  if (out_step == sizeof(Out) && in_step == sizeof(In)) {
    for (int64_t i = 0; i < n; ++i) reinterpret_cast<Out*>(out)[i] = convert<Out>(reinterpret_cast<const In*>(in)[i]);
  } else {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<Out*>(out + i * out_step) = convert<Out>(*reinterpret_cast<const In*>(in + i * in_step));
  }
}

void cast(const Call& call) {
  call.record([run = convert_run(call.output(0).dtype, call.compute()), loop = call.loop()] {
    for_each_run<2>(loop, [&](const auto& at, const auto& step, int64_t n) { run(at[0], step[0], at[1], step[1], n); });
  });
}

constexpr Row kRows[] = {{"bp::cast", kernel<cast>, kAll, BP_KERNEL_LOOP | BP_KERNEL_IMMEDIATES}};

}  // namespace

ConvertRun convert_run(bp_dtype out, bp_dtype in) {
  return dispatch_dtype<kAll>(out, [&]<class Out>() {
    return dispatch_dtype<kAll>(in, [&]<class In>() -> ConvertRun { return convert_elements<Out, In>; });
  });
}

Table convert_kernels() { return {__FILE__, kRows}; }

}  // namespace sim
