// The one path of all elementwise kernels; see elementwise.hpp.
//
// A small flat call touches no heap, no lock and no exception: it fills a few words on the stack and enters the loop.
#include "loops/elementwise.hpp"

#include <bit>

#include "loops/cast_row.hpp"
#include "loops/elementwise_ops.hpp"
#include "loops/loop.hpp"
#include "loops/tiles.hpp"

namespace backplane::cpu {
namespace {

using plugin::kItemSize;

constexpr int64_t kBlock = 512;  // elements of a half float converted at a time: four float32 blocks stay in L1

bool is_half(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16; }

// The state of one call, on its stack: the output, N tensors (or numbers in their place), then P Scalar arguments.
template <int N, int P>
struct Call {
  static constexpr int kOperands = N + P + 1;
  const Elementwise* op;
  InnerLoop inner;
  bp_dtype dtypes[kOperands];
  bool through_float;
  char* pointers[kOperands];
  int64_t strides[kOperands];
  alignas(16) char numbers[N + P][16];

  // p and s: of the output and the tensors alone.
  const char* row(char* const* p, const int64_t* s, int64_t n) const {
    if constexpr (P > 0) {
      char* all[kOperands];
      int64_t steps[kOperands] = {};
      std::copy(p, p + N + 1, all);
      std::copy(s, s + N + 1, steps);
      std::copy(pointers + N + 1, pointers + kOperands, all + N + 1);
      return through_float ? half_row(all, steps, n) : inner(all, steps, n);
    } else {
      return through_float ? half_row(p, s, n) : inner(p, s, n);
    }
  }

  // Half floats: block by block through float32. Operands of other dtypes (bool) go in place.
  const char* half_row(char* const* p, const int64_t* s, int64_t n) const {
    alignas(64) float blocks[kOperands][kBlock];
    for (int64_t at = 0; at < n; at += kBlock) {
      const int64_t count = std::min(kBlock, n - at);
      char* block_pointers[kOperands];
      int64_t block_strides[kOperands];
      for (int i = 0; i < kOperands; ++i) {
        const bool half = is_half(dtypes[i]);
        block_pointers[i] = half ? reinterpret_cast<char*>(blocks[i]) : p[i] + at * s[i];
        block_strides[i] = half ? int64_t{sizeof(float)} : s[i];
        if (i > 0 && half) {
          const bool number = s[i] == 0;
          cast_row(dtypes[i], p[i] + at * s[i], s[i], BP_FLOAT32, block_pointers[i], sizeof(float), number ? 1 : count);
          if (number) block_strides[i] = 0;
        }
      }
      if (const char* fault = inner(block_pointers, block_strides, count)) return fault;
      if (is_half(dtypes[0]))
        cast_row(BP_FLOAT32, block_pointers[0], sizeof(float), dtypes[0], p[0] + at * s[0], s[0], count);
    }
    return nullptr;
  }
};

[[gnu::cold, gnu::noinline]] bp_status refuse(const bp_frame* frame, const char* fault) {
  return plugin::guard(frame, [&] { BP_CHECK(false, DATA, frame->op->name, ": ", fault); });
}

template <int N, int P>
[[gnu::noinline]] bp_status run_tiles(const bp_frame* frame, const Call<N, P>& call, const Tiles<N + 1>& tiles) {
  const auto range = [&](int64_t begin, int64_t end) -> bp_status {
    const char* fault = tiles.for_each_row(
        call.pointers, begin, end, [&](char* const* p, const int64_t* s, int64_t n) { return call.row(p, s, n); });
    return fault == nullptr ? BP_OK : refuse(frame, fault);
  };
  const int64_t grain = std::max<int64_t>(call.op->grain / tiles.elements(), 1);
  if (tiles.count() <= grain) return range(0, tiles.count());
  return plugin::guard(frame, [&] { plugin::parallel_for(frame, 0, tiles.count(), grain, range); });
}

template <int N, int P>
[[gnu::noinline]] bp_status run_strided(const bp_frame* frame, const Call<N, P>& call, int64_t count) {
  if (frame->loop != nullptr && frame->loop->rank > 1) {
    int64_t items[N + 1];
    for (int i = 0; i <= N; ++i) items[i] = kItemSize[call.dtypes[i]];
    if (const Tiles<N + 1> tiles(frame->loop, items); tiles.fits()) return run_tiles(frame, call, tiles);
  }
  const bp_loop* loop = frame->loop;
  const auto range = [&](int64_t begin, int64_t end) -> bp_status {
    const char* fault;
    if (loop != nullptr) {
      fault = for_each_row<N + 1>(*loop, call.pointers, begin, end,
                                  [&](char* const* p, const int64_t* s, int64_t n) { return call.row(p, s, n); });
    } else {
      char* pointers[N + 1];
      for (int i = 0; i <= N; ++i) pointers[i] = call.pointers[i] + begin * call.strides[i];
      fault = call.row(pointers, call.strides, end - begin);
    }
    return fault == nullptr ? BP_OK : refuse(frame, fault);
  };
  if (count <= call.op->grain) return range(0, count);
  return plugin::guard(frame, [&] { plugin::parallel_for(frame, 0, count, call.op->grain, range); });
}

template <int N, int P = 0>
inline bp_status run(const bp_frame* frame, const bp_value* args, bp_value* outs) {
  Call<N, P> call;
  const bp_tensor* out = outs[0].u.t;
  const bp_dtype compute = frame->compute;
  call.op = static_cast<const Elementwise*>(frame->context);
  call.inner = call.op->inner[compute];
  call.through_float = call.inner == nullptr;
  if (call.through_float) call.inner = call.op->inner[BP_FLOAT32];
  call.dtypes[0] = out->dtype;
  call.pointers[0] = data_of(out);
  call.strides[0] = kItemSize[out->dtype];
  for (int i = 0; i < N; ++i) {
    if (args[i].tag == BP_TAG_TENSOR) {
      const bp_tensor* tensor = args[i].u.t;
      call.dtypes[i + 1] = tensor->dtype;
      call.pointers[i + 1] = data_of(tensor);
      call.strides[i + 1] = kItemSize[tensor->dtype];
    } else {
      const bp_dtype dtype = i == 0 && call.op->condition_first ? bp_dtype{BP_BOOL} : compute;
      call.dtypes[i + 1] = dtype;
      store_number(dtype, args[i], call.numbers[i]);
      call.pointers[i + 1] = call.numbers[i];
      call.strides[i + 1] = 0;
    }
  }
  for (int i = N; i < N + P; ++i) {
    // Half floats compute in float32, and so do numbers beside them.
    call.dtypes[i + 1] = is_half(compute) ? bp_dtype{BP_FLOAT32} : compute;
    store_number(call.dtypes[i + 1], args[i], call.numbers[i]);
    call.pointers[i + 1] = call.numbers[i];
    call.strides[i + 1] = 0;
  }
  if (frame->loop != nullptr) return frame->loop->count == 0 ? BP_OK : run_strided(frame, call, frame->loop->count);
  // A division takes longer than the rest of this function; the sizes of all dtypes are powers of two.
  const uint64_t count = out->nbytes >> std::countr_zero(static_cast<uint64_t>(kItemSize[out->dtype]));
  if (count - 1 < static_cast<uint64_t>(call.op->grain) && !call.through_float) [[likely]] {
    const char* fault = call.inner(call.pointers, call.strides, static_cast<int64_t>(count));
    return fault == nullptr ? BP_OK : refuse(frame, fault);
  }
  if (count == 0) return BP_OK;
  return run_strided(frame, call, static_cast<int64_t>(count));
}

bp_dtype_mask dtypes_of(const Elementwise& table) {
  bp_dtype_mask mask = 0;
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    if (table.inner[dtype] != nullptr) mask |= BP_DTYPE_BIT(dtype);
  if ((mask & BP_DTYPE_BIT(BP_FLOAT32)) != 0) mask |= BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16);
  return mask;
}

}  // namespace

void store_number(bp_dtype dtype, const bp_value& number, void* element) {
  if (dtype == BP_FLOAT32 && number.tag == BP_TAG_FLOAT) [[likely]] {
    *static_cast<float*>(element) = static_cast<float>(number.u.f);
    return;
  }
  const bool complex = number.tag == BP_TAG_COMPLEX;
  const double wide[2] = {complex                      ? number.u.c[0]
                          : number.tag == BP_TAG_FLOAT ? number.u.f
                                                       : static_cast<double>(number.u.i),
                          complex ? number.u.c[1] : 0.0};
  const bool integer = number.tag == BP_TAG_INT || number.tag == BP_TAG_BOOL;
  if (integer)
    cast_row(BP_INT64, reinterpret_cast<const char*>(&number.u.i), 0, dtype, static_cast<char*>(element), 0, 1);
  else
    cast_row(BP_COMPLEX128, reinterpret_cast<const char*>(wide), 0, dtype, static_cast<char*>(element), 0, 1);
}

void register_elementwise(const plugin::Registrar& registrar, std::span<ElementwiseRow> rows, const char* file,
                          uint32_t line) {
  for (ElementwiseRow& row : rows) {
    for (const auto fill : row.fills)
      if (fill != nullptr) fill(row.table);
    plugin::KernelOptions options;
    options.dtypes = row.dtypes != 0 ? row.dtypes : dtypes_of(row.table);
    options.flags = row.flags;
    options.context = &row.table;
    registrar.kernel(plugin::kernel_row(row.op, "cpu", row.fn, file, line, options));
    note_elementwise(row);
  }
}

bp_status BP_CALL elementwise_unary(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return run<1>(frame, args, outs);
}
bp_status BP_CALL elementwise_binary(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return run<2>(frame, args, outs);
}
bp_status BP_CALL elementwise_ternary(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return run<3>(frame, args, outs);
}
template <int Tensors, int Scalars>
bp_status BP_CALL elementwise_with_scalars(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs,
                                           int32_t) {
  return run<Tensors, Scalars>(frame, args, outs);
}
#define BACKPLANE_WITH_SCALARS(tensors, scalars)                                                                   \
  template bp_status BP_CALL elementwise_with_scalars<tensors, scalars>(const bp_frame*, const bp_value*, int32_t, \
                                                                        bp_value*, int32_t);
BACKPLANE_WITH_SCALARS(1, 1)
BACKPLANE_WITH_SCALARS(1, 2)
BACKPLANE_WITH_SCALARS(1, 3)
BACKPLANE_WITH_SCALARS(2, 1)
BACKPLANE_WITH_SCALARS(2, 2)
BACKPLANE_WITH_SCALARS(2, 3)
#undef BACKPLANE_WITH_SCALARS

}  // namespace backplane::cpu
