// cast and copy: conversions row by row.
#include "kernels/families.hpp"
#include "loops/cast_row.hpp"
#include "loops/elementwise.hpp"
#include "loops/loop.hpp"
#include "loops/tiles.hpp"

namespace backplane::cpu {
namespace {

bp_status cast_tiles(const bp_frame* frame, const Tiles<2>& tiles, char* const* bases, CastLoop convert) {
  const auto range = [&](int64_t begin, int64_t end) {
    tiles.for_each_row(bases, begin, end, [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
      convert(p[1], s[1], p[0], s[0], n);
      return nullptr;
    });
    return bp_status{BP_OK};
  };
  const int64_t grain = kCheapGrain / tiles.elements();
  if (tiles.count() <= grain) return range(0, tiles.count());
  return plugin::guard(frame, [&] { plugin::parallel_for(frame, 0, tiles.count(), grain, range); });
}

bp_status BP_CALL cast_kernel(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor* x = args[0].u.t;
  const bp_tensor* out = outs[0].u.t;
  const CastLoop convert = cast_loop_of(x->dtype, out->dtype);
  const int64_t items[2] = {plugin::kItemSize[out->dtype], plugin::kItemSize[x->dtype]};
  char* const bases[2] = {data_of(out), data_of(x)};
  const bp_loop* loop = frame->loop;
  const int64_t count = static_cast<int64_t>(out->nbytes) / items[0];
  const auto range = [&](int64_t begin, int64_t end) -> bp_status {
    if (loop == nullptr) {
      convert(bases[1] + begin * items[1], items[1], bases[0] + begin * items[0], items[0], end - begin);
    } else {
      for_each_row<2>(*loop, bases, begin, end, [&](char* const* p, const int64_t* s, int64_t n) -> const char* {
        convert(p[1], s[1], p[0], s[0], n);
        return nullptr;
      });
    }
    return BP_OK;
  };
  if (count == 0) return BP_OK;
  if (const Tiles<2> tiles(loop, items); tiles.fits()) return cast_tiles(frame, tiles, bases, convert);
  if (count <= kCheapGrain) return range(0, count);
  return plugin::guard(frame, [&] { plugin::parallel_for(frame, 0, count, kCheapGrain, range); });
}

const Family kCast([](const Registrar& registrar) {
  const uint32_t flags = BP_KERNEL_STRIDED | BP_KERNEL_LOOP | BP_KERNEL_INPLACE;
  registrar.kernel(BP_KERNEL("bp::cast", "cpu", cast_kernel, .flags = flags));
  registrar.kernel(BP_KERNEL("bp::copy", "cpu", cast_kernel, .flags = flags));
});

}  // namespace
}  // namespace backplane::cpu
