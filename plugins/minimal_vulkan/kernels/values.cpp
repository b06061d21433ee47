// Kernels that make values and fold them: full, iota, random_bits and the reductions.
#include <cstring>
#include <limits>

#include "kernels/kernels.hpp"
#include "kernels/launch.hpp"

namespace minimal {
namespace {

bool is_whole(const bp_value& number) { return number.tag == BP_TAG_BOOL || number.tag == BP_TAG_INT; }

// Arguments that are in the result already, its shape and dtype, arrive all the same.
void full(Context call, bp_value, bp_value fill, bp_value, bp_value, MutTensor<void> out) {
  Launch launch(call, Kernel::fill, out.dtype());
  dispatch_dtype<BP_MASK_ANY>(out.dtype(), [&]<class T>() {
    const T element = (fill.flags & BP_VALUE_UINT64) != 0 ? convert<T>(static_cast<uint64_t>(fill.u.i))
                      : is_whole(fill)                    ? convert<T>(fill.u.i)
                      : fill.tag == BP_TAG_FLOAT          ? convert<T>(fill.u.f)
                                                          : convert<T>(as_complex(fill));
    std::memcpy(launch.arguments.n, &element, sizeof(T));
  });
  launch.tensor(*out.handle()).run(out.size());
}

// Integers count exactly, and wrap; with a float among start and step the values are computed in double, or in float
// where the device has none, and rounded once.
void iota(Context call, int64_t n, bp_value start, bp_value step, bp_value, bp_value, MutTensor<void> out) {
  const bool complex = start.tag == BP_TAG_COMPLEX || step.tag == BP_TAG_COMPLEX, wide = has_float64(call);
  const bp_dtype counted = is_whole(start) && is_whole(step) ? BP_INT64
                           : complex                         ? (wide ? BP_COMPLEX128 : BP_COMPLEX64)
                           : wide                            ? BP_FLOAT64
                                                             : BP_FLOAT32;
  Launch(call, Kernel::count, counted)
      .result(out.dtype())
      .tensor(*out.handle())
      .bits(start, counted)
      .bits(step, counted)
      .run(n);
}

void random_bits(Context call, bp_value, bp_value, bp_value, bp_generator_state state, MutTensor<void> out) {
  const auto words = static_cast<int64_t>(out.handle()->nbytes / sizeof(uint32_t));  // of a uint64, the low one first
  Launch(call, Kernel::draw, BP_UINT32)
      .tensor(*out.handle())
      .number(words)
      .number(static_cast<int64_t>(state.key))
      .number(static_cast<int64_t>(state.counter))
      .run((words + 3) / 4);
}

// How a reduction joins two elements, and its start value: 0, 1, or an end of the dtype's range.
struct Fold {
  const char* join;
  enum { kZero, kOne, kLowest, kHighest } start;
};
constexpr Fold kSum{"add", Fold::kZero}, kProd{"multiply", Fold::kOne}, kAny{"bitwise_or", Fold::kZero},
    kAll{"bitwise_and", Fold::kOne}, kMax{"maximum", Fold::kLowest}, kMin{"minimum", Fold::kHighest};

template <class T>
T start_of(const Fold& fold) {
  if constexpr (!kIsComplex<T>) {
    using Limits = std::numeric_limits<Compute<T>>;
    constexpr bool kInfinite = Limits::has_infinity;
    if (fold.start == Fold::kLowest) return T(kInfinite ? -Limits::infinity() : Limits::lowest());
    if (fold.start == Fold::kHighest) return T(kInfinite ? Limits::infinity() : Limits::max());
  }
  return T(fold.start == Fold::kOne ? 1.0f : 0.0f);
}

struct Segments {
  bp_dtype in, out;
  int64_t count, length;  // of each result
};

void record_segments(Context call, const Fold& fold, const Segments& segments, const void* to, const void* from,
                     const Walk& kept, const Walk& folded, int64_t results) {
  Launch launch(call, Kernel::fold, segments.in);
  launch.result(segments.out)
      .function(fold.join)
      .memory(to)
      .memory(from)
      .number(folded.count())
      .number(segments.count)
      .number(segments.length)
      .loop(kept)
      .loop(folded);
  dispatch_dtype<BP_MASK_ANY>(segments.out, [&]<class T>() {
    const T start = start_of<T>(fold);
    std::memcpy(&launch.arguments.n[3], &start, sizeof(T));
  });
  launch.run(results * segments.count);
}

// A fold in segments: their totals are folded in turn, until one segment is left. An operand that is folded in another
// dtype than its own is cast first, into scratch memory.
void record_fold(Context call, const Fold& fold, const ConstTensor<void>& x, const MutTensor<void>& out) {
  if (out.size() == 0) return;
  const char* from = static_cast<const char*>(x.handle()->dl.data) + x.handle()->dl.byte_offset;
  Walk whole, kept, folded;
  if (x.size() == 0) {  // each result is what the fold begins with
    kept = Walk(out.shape(), {out.strides(), out.strides()}, kItemSize[out.dtype()]);
    folded.add_dim(0, {0});
  } else {
    whole = Walk(call, {out.handle(), x.handle()});
    if (x.dtype() != out.dtype()) from = record_cast(call, whole, from, x.dtype(), out.dtype());
  }
  for (size_t d = 0; d < whole.sizes.size(); ++d) {
    if (whole.strides[0][d] != 0)
      kept.add_dim(whole.sizes[d], {whole.strides[0][d], whole.strides[1][d]});
    else
      folded.add_dim(whole.sizes[d], {whole.strides[1][d]});
  }
  const bp_dtype wide = computed(out.dtype());
  const int64_t most = kMostSteps / static_cast<int64_t>(1 + folded.sizes.size());
  bp_dtype dtype = out.dtype();
  const char* elements = from;
  while (folded.count() > most) {
    const int64_t segments = (folded.count() + most - 1) / most, item = kItemSize[wide];
    char* totals = static_cast<char*>(call.scratch(static_cast<uint64_t>(out.size() * segments * item)));
    record_segments(call, fold, {dtype, wide, segments, most}, totals, elements, kept, folded, out.size());
    kept.strides.resize(2);
    kept.strides[1] = row_major(kept.sizes, segments * item);
    folded = Walk();
    folded.add_dim(segments, {item});
    elements = totals;
    dtype = wide;
  }
  char* result = static_cast<char*>(out.handle()->dl.data) + out.handle()->dl.byte_offset;
  record_segments(call, fold, {dtype, out.dtype(), 1, most}, result, elements, kept, folded, out.size());
}

// sum and prod have an argument more than any and all.
template <const Fold& kFold, class... Rest>
void reduce(Context call, ConstTensor<void> x, Rest..., MutTensor<void> out) {
  record_fold(call, kFold, x, out);
}

template <const Fold& kFold>
void extreme(Context call, ConstTensor<void> x, bp_value, bool, MutTensor<void> out) {
  BP_CHECK(out.size() == 0 || x.size() > 0, VALUE, call.op_name(),
           ": found no elements to choose from; expected at least one along the reduced axes");
  record_fold(call, kFold, x, out);
}

}  // namespace

void register_values(const Registrar& registrar) {
  using V = bp_value;
  const auto row = [&](const char* op, bp_kernel_fn fn, uint32_t flags = 0) {
    registrar.kernel(BP_KERNEL(op, kName, fn, .flags = flags));
  };
  row("bp::full", kernel<full>);
  row("bp::iota", kernel<iota>);
  row("bp::random_bits", kernel<random_bits>);
  row("bp::sum", kernel<reduce<kSum, V, V, V>>, BP_KERNEL_LOOP);
  row("bp::prod", kernel<reduce<kProd, V, V, V>>, BP_KERNEL_LOOP);
  row("bp::any", kernel<reduce<kAny, V, V>>, BP_KERNEL_LOOP);
  row("bp::all", kernel<reduce<kAll, V, V>>, BP_KERNEL_LOOP);
  row("bp::max", kernel<extreme<kMax>>, BP_KERNEL_LOOP);
  row("bp::min", kernel<extreme<kMin>>, BP_KERNEL_LOOP);
}

}  // namespace minimal
