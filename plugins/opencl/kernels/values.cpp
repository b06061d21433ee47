// Kernels that make values and fold them: full, iota, random_bits and the reductions.
#include "kernels/launch.hpp"

namespace opencl {
namespace {

bool is_whole(const bp_value& number) { return number.tag == BP_TAG_BOOL || number.tag == BP_TAG_INT; }

// Arguments that are in the result already, its shape and dtype, arrive all the same.
void full(Context call, bp_value, bp_value fill, bp_value, bp_value, MutTensor<void> out) {
  if (out.size() == 0) return;
  const bp_dtype given = is_whole(fill) ? ((fill.flags & BP_VALUE_UINT64) != 0 ? BP_UINT64 : BP_INT64)
                                        : (fill.tag == BP_TAG_FLOAT ? BP_FLOAT64 : BP_COMPLEX128);
  char pattern[16] = {};
  convert_run(out.dtype(), given)(
      pattern, 0,
      given == BP_COMPLEX128 ? reinterpret_cast<const char*>(fill.u.c) : reinterpret_cast<const char*>(&fill.u), 0, 1);
  const bp_tensor& to = *out.handle();
  check(clEnqueueFillBuffer(stream_of(call.frame->stream).queue(), memory_of(to.dl.data), pattern,
                            kItemSize[out.dtype()], to.dl.byte_offset, to.nbytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
}

// Integers count exactly, and wrap; with a float among start and step the values are computed in double, or in float
// where the device has none, and rounded once.
void iota(Context call, int64_t n, bp_value start, bp_value by, bp_value, bp_value, MutTensor<void> out) {
  const bool whole = is_whole(start) && is_whole(by);
  const bool complex = start.tag == BP_TAG_COMPLEX || by.tag == BP_TAG_COMPLEX;
  const bool wide = stream_of(call.frame->stream).device().has_float64();
  const bp_dtype number = whole     ? BP_INT64
                          : complex ? (wide ? BP_COMPLEX128 : BP_COMPLEX64)
                          : wide    ? BP_FLOAT64
                                    : BP_FLOAT32;
  static constexpr const char* kTypes[] = {"float", "double", "float2", "double2"};
  const std::string type = whole ? "long" : kTypes[number - BP_FLOAT32];
  Launch launch(call, "count",
                defines_for("OUT", out.dtype()) + "#define NUMBER " + type + "\n#define CAST(x) bp_cast_" +
                    dtype_name(number) + "_" + scalar_name(out.dtype()) + "(x)\n#define VALUE(i, a, b) " +
                    (whole ? "(long)((ulong)(a) + (ulong)(i) * (ulong)(b))"
                           : std::string("((a) + (") + (wide ? "double" : "float") + ")(i) * (b))") +
                    "\n");
  launch.tensor(*out.handle());
  const auto add = [&]<class T>() { launch.bytes(number_as<T>(start)).bytes(number_as<T>(by)); };
  dispatch_dtype<BP_DTYPE_BIT(BP_INT64) | BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64) | BP_MASK_COMPLEX>(number,
                                                                                                                 add);
  launch.run(n);
}

void random_bits(Context call, bp_value, bp_value, bp_value, bp_generator_state state, MutTensor<void> out) {
  const auto words = static_cast<int64_t>(out.handle()->nbytes / sizeof(uint32_t));
  Launch(call, "draw", "")
      .tensor(*out.handle())
      .value(words)
      .bytes(state.key)
      .bytes(state.counter)
      .run((words + 3) / 4);
}

// The neutral element of a fold, in OpenCL C.
std::string start_of(const std::string& join, bp_dtype dtype) {
  const std::string type = scalar_name(dtype);
  const bool floating = (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING) != 0,
             complex = (BP_DTYPE_BIT(dtype) & BP_MASK_COMPLEX) != 0;
  if (join == "maximum" || join == "minimum") {
    const bool high = join == "minimum";
    if (dtype == BP_BOOL) return high ? "true" : "false";
    if (floating) return high ? "INFINITY" : "-INFINITY";
    if ((BP_DTYPE_BIT(dtype) & BP_MASK_UNSIGNED) != 0) return high ? "(OUT_S)~(OUT_S)0" : "0";
    const std::string lowest = "(OUT_S)((OUT_S)1 << " + std::to_string(8 * kItemSize[dtype] - 1) + ")";
    return high ? "(OUT_S)~" + lowest : lowest;
  }
  const std::string number = join == "multiply" || join == "bitwise_and" ? "1" : "0";
  return complex ? "(OUT_S)(" + number + ", 0)" : "(OUT_S)" + number;
}

// Half floats fold in float, any and all in bool, which is their result's dtype.
void fold(Context call, const char* join, const ConstTensor<void>& x, const MutTensor<void>& out) {
  if (out.size() == 0) return;
  const bp_dtype dtypes[] = {out.dtype(), x.dtype()};
  Walk kept, folded;
  kept.strides.resize(2);
  folded.strides.resize(2);
  if (x.size() == 0) {  // each result is the neutral element
    kept = Walk(out.shape(), {out.strides(), out.strides()}, kItemSize[out.dtype()]);
    folded = Walk(Ints(), {Ints(), Ints()}, 1);
  } else {
    const Walk whole(call, *out.handle(), 2, dtypes);
    for (size_t d = 0; d < whole.sizes.size(); ++d) {
      Walk& part = whole.strides[0][d] != 0 ? kept : folded;
      part.sizes.push_back(whole.sizes[d]);
      for (size_t k = 0; k < 2; ++k) part.strides[k].push_back(whole.strides[k][d]);
    }
  }
  BP_CHECK(folded.sizes.size() <= size_t{kMaxDims}, NOT_IMPLEMENTED, call.op_name(), ": found ", folded.sizes.size(),
           " reduced axes, expected at most ", kMaxDims, " on this device");
  Loop inner;
  inner.rank = static_cast<int64_t>(folded.sizes.size());
  inner.count = x.size() == 0 ? 0 : folded.count();
  for (size_t d = 0; d < folded.sizes.size(); ++d) {
    inner.sizes[d] = folded.sizes[d];
    for (size_t k = 0; k < 2; ++k) inner.strides[k][d] = folded.strides[k][d];
  }
  Launch(call, "fold",
         defines_for("OUT", out.dtype()) + defines_for("X", x.dtype()) + "#define START " +
             start_of(join, out.dtype()) + "\n#define JOIN(a, b) bp_" + join + "_" + scalar_name(out.dtype()) +
             "(a, b)\n#define CAST(a) bp_cast_" + scalar_name(x.dtype()) + "_" + scalar_name(out.dtype()) + "(a)\n")
      .tensor(*out.handle())
      .tensor(*x.handle())
      .bytes(inner)
      .run(kept);
}

// sum and prod have an argument more than any and all.
template <class... Rest>
void reduce(Context call, ConstTensor<void> x, Rest..., MutTensor<void> out) {
  fold(call, call.registered<const char>(), x, out);
}

void extreme(Context call, ConstTensor<void> x, bp_value, bool, MutTensor<void> out) {
  BP_CHECK(out.size() == 0 || x.size() > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  fold(call, call.registered<const char>(), x, out);
}

}  // namespace

void register_values(const Registrar& registrar) {
  using V = bp_value;
  const auto row = [&](const char* op, bp_kernel_fn fn, const char* join = nullptr) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .flags = join != nullptr ? uint32_t{BP_KERNEL_LOOP} : 0u,
                               .context = const_cast<char*>(join)));
  };
  row("bp::full", kernel<full>);
  row("bp::iota", kernel<iota>);
  row("bp::random_bits", kernel<random_bits>);
  row("bp::sum", kernel<reduce<V, V, V>>, "add");
  row("bp::prod", kernel<reduce<V, V, V>>, "multiply");
  row("bp::any", kernel<reduce<V, V>>, "bitwise_or");
  row("bp::all", kernel<reduce<V, V>>, "bitwise_and");
  row("bp::max", kernel<extreme>, "maximum");
  row("bp::min", kernel<extreme>, "minimum");
}

}  // namespace opencl
