// Where the tensors of a call lie: layouts, and the patterned buffers around them. See call.hpp.
#include <algorithm>
#include <numeric>

#include "call.hpp"

namespace backplane::conformance {
namespace {

constexpr int64_t kMargin = 3;  // elements before and behind; odd, so that what needs alignment is off it

// Of every element that no kernel may read or write.
constexpr Number kPattern{-77, 0};

Tensor call_view(const char* op, std::initializer_list<bp_value> args) { return call(find_op(op), args); }

Tensor reshaped(const Tensor& flat, const std::vector<int64_t>& shape) {
  return call_view("bp::reshape", {value(flat), value(Shape(shape))});
}

Array patterned(bp_dtype dtype, std::vector<int64_t> shape) {
  Array made(dtype, std::move(shape));
  for (size_t i = 0; i < made.count(); ++i) made.set(i, kPattern);
  return made;
}

void copy_element(Array& to, size_t at, const Array& from, size_t i) {
  const size_t item = from.bytes.size() / std::max<size_t>(from.count(), 1);
  std::copy_n(from.bytes.begin() + static_cast<ptrdiff_t>(i * item), item,
              to.bytes.begin() + static_cast<ptrdiff_t>(at * item));
}

Placed uploaded(Array base, bp_device device) {
  Placed made;
  made.base = to_tensor(base, device);
  made.tensor = made.base;
  made.before = std::move(base);
  return made;
}

Placed place_offset(const Array& array, bp_device device) {
  const auto count = static_cast<int64_t>(array.count());
  Array base = patterned(array.dtype, {count + 2 * kMargin});
  for (size_t i = 0; i < array.count(); ++i) copy_element(base, i + kMargin, array, i);
  Placed made = uploaded(std::move(base), device);
  made.tensor = reshaped(sliced(made.base, 0, kMargin, kMargin + count, 1), array.shape);
  return made;
}

Placed place_strided(const Array& array, bp_device device) {
  std::vector<int64_t> wide = array.shape;
  wide.back() *= 2;
  Array base = patterned(array.dtype, wide);
  for (size_t i = 0; i < array.count(); ++i) copy_element(base, 2 * i, array, i);
  Placed made = uploaded(std::move(base), device);
  made.tensor = sliced(made.base, static_cast<int64_t>(wide.size()) - 1, std::nullopt, std::nullopt, 2);
  return made;
}

Placed place_transposed(const Array& array, bp_device device) {
  std::vector<size_t> order(array.shape.size());
  std::iota(order.rbegin(), order.rend(), size_t{0});
  Array base(array.dtype, {array.shape.rbegin(), array.shape.rend()});
  const std::vector<size_t> positions = permuted(array.shape, order);
  for (size_t i = 0; i < positions.size(); ++i) copy_element(base, i, array, positions[i]);
  Placed made = uploaded(std::move(base), device);
  const std::vector<int64_t> axes(order.begin(), order.end());
  made.tensor = call_view("bp::permute_dims", {value(made.base), value(Shape(axes))});
  return made;
}

Placed place_backward(const Array& array, bp_device device) {
  Array base(array.dtype, array.shape);
  const size_t count = array.count();
  for (size_t i = 0; i < count; ++i) copy_element(base, count - 1 - i, array, i);
  Placed made = uploaded(std::move(base), device);
  for (size_t axis = 0; axis < array.shape.size(); ++axis)
    made.tensor = sliced(made.tensor, static_cast<int64_t>(axis), std::nullopt, std::nullopt, -1);
  return made;
}

// One slice, shown as often as the first axis is long.
Placed place_repeated(const Array& array, bp_device device) {
  Array base = array;
  base.shape[0] = 1;
  base.bytes.resize(array.bytes.size() / static_cast<size_t>(array.shape[0]));
  Placed made = uploaded(std::move(base), device);
  made.tensor = call_view("bp::broadcast_to", {value(made.base), value(Shape(array.shape))});
  return made;
}

}  // namespace

Tensor sliced(const Tensor& base, int64_t axis, std::optional<int64_t> start, std::optional<int64_t> stop,
              int64_t step) {
  const bp_value starts[] = {start ? value(*start) : absent()}, stops[] = {stop ? value(*stop) : absent()};
  const int64_t axes[] = {axis}, steps[] = {step};
  const auto list = [](const bp_value* values) {
    bp_value made{};
    made.tag = BP_TAG_VALUE_LIST;
    made.count = 1;
    made.u.values = values;
    return made;
  };
  return call_view("bp::slice", {value(base), value(Shape(axes)), list(starts), list(stops), value(Shape(steps))});
}

Placed place(const Array& array, const std::string& layout, bp_device device) {
  const bool has_axes = !array.shape.empty(), empty = array.count() == 0;
  if (layout == "offset") return place_offset(array, device);
  if (layout == "strided" && has_axes) return place_strided(array, device);
  if (layout == "transposed" && array.shape.size() > 1) return place_transposed(array, device);
  if (layout == "backward" && has_axes) return place_backward(array, device);
  if (layout == "zero_stride" && has_axes && !empty) return place_repeated(array, device);
  return uploaded(array, device);
}

}  // namespace backplane::conformance
