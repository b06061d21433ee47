// argsort: lines that fit are sorted by one block each, longer ones by their keys' digits.
#include <bit>

#include "kernels/families.hpp"
#include "kernels/radix.hpp"

namespace backplane::cuda {
namespace {

// How elements of a dtype become keys.
KeyMaking key_making(bp_dtype dtype) {
  switch (dtype) {
    case BP_BOOL:
      return {nullptr, nullptr, 0, KeyKind::kBool};
    case BP_FLOAT16:
      return {nullptr, nullptr, 0x7c00, KeyKind::kFloat};
    case BP_BFLOAT16:
      return {nullptr, nullptr, 0x7f80, KeyKind::kFloat};
    case BP_FLOAT32:
      return {nullptr, nullptr, 0x7f800000, KeyKind::kFloat};
    case BP_FLOAT64:
      return {nullptr, nullptr, 0x7ff0000000000000, KeyKind::kFloat};
    default:
      return {nullptr, nullptr, 0, BP_DTYPE_BIT(dtype) & BP_MASK_SIGNED ? KeyKind::kSigned : KeyKind::kUnsigned};
  }
}

void sort_long_lines(const Call& call, const Sorting& sorting) {
  const auto width = static_cast<uint32_t>(item_of(call.input(0)));
  const uint32_t lines = sorting.lines.count;
  RadixSort sort(call, lines, sorting.length, width, 8 * width);
  KeyMaking making = key_making(call.compute());
  making.keys = sort.keys(), making.varying = sort.varying();
  Grid grid = call.grid_for(sorting.length);
  grid.y = std::min(lines, 65535u);
  call.launch("radix", "make_keys_" + std::to_string(width), grid, sorting, making);
  sort.sort_into(sorting);
}

void argsort(const Call& call) {
  const bp_tensor &x = call.input(0), &out = call.output();
  if (count_of(out) == 0) return;
  auto sizes = shape_of(x), x_strides = byte_strides_of(x), out_strides = byte_strides_of(out);
  Sorting sorting{};
  int64_t length = 1;
  if (x.dl.ndim > 0) {
    const auto axis = static_cast<ptrdiff_t>(call.integer(1));
    length = sizes[static_cast<size_t>(axis)];
    sorting.x_step = x_strides[static_cast<size_t>(axis)], sorting.out_step = out_strides[static_cast<size_t>(axis)];
    for (auto* list : {&sizes, &x_strides, &out_strides}) list->erase(list->begin() + axis);
  }
  BP_CHECK(length <= int64_t{1} << 30, NOT_IMPLEMENTED, call.op_name(), ": found an axis of ", length,
           " elements, expected at most 2^30. Fix: sort parts and merge them");
  sorting.lines = dimensions(sizes, out_strides, x_strides);
  sorting.x = data_of(x), sorting.out = data_of(out);
  sorting.length = static_cast<uint32_t>(length), sorting.padded = std::bit_ceil(sorting.length);
  sorting.descending = call.integer(2) != 0;
  if (sorting.padded > kSortedInBlock) return sort_long_lines(call, sorting);
  call.launch(typed_module(call.compute()), "sort_in_block",
              {std::min(sorting.lines.count, 65535u), 1, 1, sorting.padded > 2 * kWarp ? kThreads : kWarp}, sorting);
}

}  // namespace

void register_sorting(const Registration& registration) {
  registration.row("argsort", kernel<argsort>, BP_MASK_FLOATING | BP_MASK_INTEGER | BP_MASK_BOOL, BP_KERNEL_STRIDED,
                   __FILE__, __LINE__);
}

}  // namespace backplane::cuda
