// Random bits, and uniform, normal, randint and bernoulli, which take them in registers. They decline numbers that
// their decompositions refuse, and those that they take another way.
#include <cmath>
#include <limits>

#include "kernels/families.hpp"
#include "kernels/random.hpp"

namespace backplane::cuda {
namespace {

Draw draw_of(const Call& call, size_t generator) {
  const bp_tensor& out = call.output();
  const bp_generator_state& state = *call.value(generator).u.g;
  return {data_of(out), static_cast<uint64_t>(count_of(out)), state.key, state.counter};
}

// `together`: elements that a thread makes at a time.
Grid grid_of(const Call& call, const Draw& draw, uint64_t together) {
  return call.grid_for((draw.count + together - 1) / together);
}

// A 64-bit element takes two words, the low one first.
void random_bits(const Call& call) {
  Draw draw = draw_of(call, 3);
  if (call.output().dtype == BP_UINT64) draw.count *= 2;
  if (draw.count > 0) call.launch("random_bits", "random_words", grid_of(call, draw, 4), draw);
}

bp_dtype part_of(bp_dtype dtype) {
  if (dtype == BP_COMPLEX64) return BP_FLOAT32;
  return dtype == BP_COMPLEX128 ? bp_dtype{BP_FLOAT64} : dtype;
}

Number number_of(bp_dtype dtype, double value) {
  bp_value number{};
  number.tag = BP_TAG_FLOAT, number.u.f = value;
  return cuda::number_of(dtype, number);
}

void launch_real(const Call& call, const char* function, const Draw& draw, const auto& arguments) {
  if (draw.count == 0) return;
  const bp_dtype dtype = call.output().dtype;
  call.launch(std::string("random_") + plugin::dtype_name(dtype), function,
              grid_of(call, draw, part_of(dtype) == BP_FLOAT64 ? 2 : 4), arguments);
}

// uniform(shape, low, high, dtype, device, generator)
void uniform(const Call& call) {
  const double low = plugin::as_double(call.value(1)), high = plugin::as_double(call.value(2));
  const bp_dtype part = part_of(call.output().dtype);
  const UniformDraw made{draw_of(call, 5), number_of(part, low), number_of(part, high), number_of(part, high - low),
                         low == 0 && high == 1};
  launch_real(call, "uniform", made.draw, made);
}

// normal(shape, mean, std, dtype, device, generator)
void normal(const Call& call) {
  const double mean = plugin::as_double(call.value(1)), deviation = plugin::as_double(call.value(2));
  const bp_dtype dtype = call.output().dtype;
  const bool half = dtype == BP_FLOAT16 || dtype == BP_BFLOAT16;
  const bp_dtype computed = half ? bp_dtype{BP_FLOAT32} : dtype;
  const NormalDraw made{draw_of(call, 5), number_of(computed, mean), number_of(computed, deviation),
                        mean == 0 && deviation == 1};
  launch_real(call, "normal", made.draw, made);
}

// randint(low, high, shape, dtype, device, generator)
void randint(const Call& call) {
  const int64_t low = call.integer(0);
  const auto width = static_cast<uint64_t>(call.integer(1) - low);
  const IntegerDraw made{draw_of(call, 5), low, width, std::numeric_limits<uint64_t>::max() / width};
  if (made.draw.count > 0)
    call.launch("random_bits", "randint_" + std::to_string(item_of(call.output())), grid_of(call, made.draw, 2), made);
}

// bernoulli(p, shape, device, generator)
void bernoulli(const Call& call) {
  const Draw draw = draw_of(call, 3);
  const auto p = static_cast<float>(plugin::as_double(call.value(0)));
  if (draw.count > 0) call.launch("random_bits", "bernoulli", grid_of(call, draw, 4), draw, p);
}

// A real number whose double is the number itself.
bool is_exact(const bp_value& value) {
  constexpr int64_t kMost = int64_t{1} << 53;
  if (value.tag == BP_TAG_FLOAT || value.tag == BP_TAG_BOOL) return true;
  return value.tag == BP_TAG_INT && (value.flags & (BP_VALUE_UINT64 | BP_VALUE_BEYOND)) == 0 && -kMost <= value.u.i &&
         value.u.i <= kMost;
}

double largest_of(bp_dtype part) {
  if (part == BP_FLOAT16) return 65504;
  if (part == BP_BFLOAT16) return 0x1.fep127;
  return part == BP_FLOAT32 ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max();
}

bp_status decline(const bp_frame* frame, bool fits, const char* takes) {
  if (fits) return BP_OK;
  frame->host->set_error(BP_ERROR_NOT_IMPLEMENTED, takes);
  return BP_ERROR_NOT_IMPLEMENTED;
}

bp_status BP_CALL supports_uniform(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  bool fits = is_exact(args[1]) && is_exact(args[2]);
  if (fits) {
    const double low = plugin::as_double(args[1]), high = plugin::as_double(args[2]);
    const double most = largest_of(part_of(frame->compute));
    fits = low <= high && -most <= low && high <= most && high - low <= most;
  }
  return decline(frame, fits, "takes real bounds, and their difference, that the dtype holds");
}

bp_status BP_CALL supports_normal(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const double most = largest_of(part_of(frame->compute) == BP_FLOAT64 ? BP_FLOAT64 : BP_FLOAT32);
  const auto is_held = [&](const bp_value& value) {
    return is_exact(value) && std::abs(plugin::as_double(value)) <= most;
  };
  const bool fits = is_held(args[1]) && is_held(args[2]) && plugin::as_double(args[2]) >= 0;
  return decline(frame, fits, "takes a real mean and a deviation from 0 on, that the dtype computed in holds");
}

bp_status BP_CALL supports_randint(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const auto is_whole = [](const bp_value& value) {
    return value.tag == BP_TAG_INT && (value.flags & (BP_VALUE_UINT64 | BP_VALUE_BEYOND)) == 0;
  };
  bool fits = is_whole(args[0]) && is_whole(args[1]);
  int64_t width = 0;
  fits = fits && !__builtin_sub_overflow(args[1].u.i, args[0].u.i, &width) && width > 0;
  if (fits)
    fits = plugin::dispatch_dtype<BP_MASK_INTEGER>(
        frame->compute, [&]<class T>() { return std::in_range<T>(args[0].u.i) && std::in_range<T>(args[1].u.i - 1); });
  return decline(frame, fits, "takes whole bounds that the dtype holds, and fewer than 2^63 numbers");
}

bp_status BP_CALL supports_bernoulli(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  const bool fits = is_exact(args[0]) && plugin::as_double(args[0]) >= 0 && plugin::as_double(args[0]) <= 1;
  return decline(frame, fits, "takes a probability");
}

}  // namespace

void register_random(const Registration& registration) {
  const auto row = [&](const char* op, bp_kernel_fn fn, bp_dtype_mask dtypes, bp_kernel_fn supported,
                       uint32_t line = __builtin_LINE()) {
    registration.row(op, fn, dtypes, BP_KERNEL_CAPTURABLE, __FILE__, line, supported);
  };
  registration.row("random_bits", kernel<random_bits>, BP_MASK_ANY, 0, __FILE__, __LINE__);
  row("uniform", kernel<uniform>, BP_MASK_FLOATING | BP_MASK_COMPLEX, supports_uniform);
  row("normal", kernel<normal>, BP_MASK_FLOATING | BP_MASK_COMPLEX, supports_normal);
  row("randint", kernel<randint>, BP_MASK_INTEGER, supports_randint);
  row("bernoulli", kernel<bernoulli>, BP_MASK_ANY, supports_bernoulli);
}

}  // namespace backplane::cuda
