// full and iota.
#include "kernels/families.hpp"

namespace backplane::cuda {
namespace {

void full(const Call& call) {
  const bp_tensor& out = call.output();
  Strided operands = copy_operands(data_of(out), {item_of(out)}, nullptr, {0}, {count_of(out)});
  operands.numbers[1] = number_of(out.dtype, call.value(1));
  launch_copy(call, operands, item_of(out));
}

void iota(const Call& call) {
  const bp_tensor& out = call.output();
  const bp_value &start = call.value(1), &step = call.value(2);
  const int64_t count = count_of(out);
  if (count == 0) return;
  const auto whole = [](const bp_value& number) { return number.tag == BP_TAG_INT || number.tag == BP_TAG_BOOL; };
  const int32_t exact = whole(start) && whole(step);
  const char* data = data_of(out);
  const int64_t begin = exact ? start.u.i : 0, by = exact ? step.u.i : 0;
  const std::complex<double> real_begin = plugin::as_complex(start), real_step = plugin::as_complex(step);
  call.launch(typed_module(out.dtype), "iota", call.grid_for(static_cast<uint64_t>(count)), data, count, begin, by,
              real_begin, real_step, exact);
}

}  // namespace

void register_creation(const Registration& registration) {
  registration.row("full", kernel<full>, BP_MASK_ANY, 0, __FILE__, __LINE__);
  registration.row("iota", kernel<iota>, BP_MASK_ANY, 0, __FILE__, __LINE__);
}

}  // namespace backplane::cuda
