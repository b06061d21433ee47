// masked_select: the elements, or rows, of x where a mask over its leading axes is true.
#include <algorithm>
#include <cstring>

#include "kernels/families.hpp"
#include "kernels/indexing/marks.hpp"
#include "loops/elementwise.hpp"
#include "loops/item_type.hpp"
#include "loops/loop.hpp"

namespace backplane::cpu {
namespace {

// Each element is written, and stays where its mask is true: a branch would be guessed wrong half the time.
template <class Item>
void select_elements(const Item* x, const uint8_t* mask, int64_t hits, Item* out) {
  for (int64_t i = 0, n = 0; n < hits; ++i) {
    out[n] = x[i];
    n += mask[i] != 0;
  }
}
void select_rows(const char* x, const uint8_t* mask, int64_t hits, size_t bytes, char* out) {
  for (int64_t i = 0, n = 0; n < hits; ++i, x += bytes) {
    if (mask[i] == 0) continue;
    std::memcpy(out, x, bytes);
    out += bytes;
    ++n;
  }
}

// (Tensor x, Tensor mask), both contiguous.
bp_status BP_CALL masked_select(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  return plugin::guard(frame, [&] {
    const bp_tensor *x = plugin::as_tensor(args[0]), *mask = plugin::as_tensor(args[1]);
    const int32_t leading = mask->dl.ndim, rank = x->dl.ndim;
    BP_CHECK(leading <= rank, SHAPE, frame->op->name, ": 'mask' has ", leading, " dims, expected at most ", rank,
             ", as 'x' has");
    for (int32_t d = 0; d < leading; ++d)
      BP_CHECK(mask->dl.shape[d] == x->dl.shape[d], SHAPE, frame->op->name, ": 'mask' has size ", mask->dl.shape[d],
               " along axis ", d, ", expected ", x->dl.shape[d], ", as 'x' has");
    const auto* truth = reinterpret_cast<const uint8_t*>(data_of(mask));
    int64_t shape[kMaxRank + 1] = {count_true(truth, static_cast<int64_t>(mask->nbytes))};
    const int64_t hits = shape[0], item = plugin::kItemSize[x->dtype];
    int64_t bytes = item;
    for (int32_t d = leading; d < rank; ++d) bytes *= shape[1 + d - leading] = x->dl.shape[d];
    auto out = plugin::OutSlot(frame, &outs[0]).allocate(x->dtype, {shape, static_cast<size_t>(1 + rank - leading)});
    if (hits == 0 || bytes == 0) return;
    if (bytes != item)
      return select_rows(data_of(x), truth, hits, static_cast<size_t>(bytes), static_cast<char*>(out.data()));
    with_item_type(item, [&]<class Item>() {
      select_elements(reinterpret_cast<const Item*>(data_of(x)), truth, hits, static_cast<Item*>(out.data()));
    });
  });
}

}  // namespace

const Family kMasked([](const Registrar& registrar) {
  registrar.kernel(BP_KERNEL("bp::masked_select", "cpu", masked_select));
});

}  // namespace backplane::cpu
