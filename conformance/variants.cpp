// See variants.hpp.
#include "variants.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "trial.hpp"

namespace backplane::conformance {
namespace {

constexpr int64_t kRepeats = 67;         // odd: the last vector of a loop is never full
constexpr size_t kMany = (1 << 17) + 3;  // more than 2^16 groups of two, and than any group has items

size_t rank_of(const Inputs& inputs) {
  size_t rank = 0;
  for (const Input& input : inputs)
    for (const auto& array : input.arrays)
      if (array) rank = std::max(rank, array->shape.size());
  return rank;
}

// `change` of every array whose argument promotes or not; elementwise ops treat both alike.
template <class Change>
Inputs changed(const Inputs& inputs, Change change) {
  Inputs made = inputs;
  for (Input& input : made)
    for (auto& array : input.arrays)
      if (array) change(*array);
  return made;
}

Array part_of(const Array& array, size_t axis) {
  std::vector<int64_t> shape = array.shape;
  shape[axis] = 1;
  Array made(array.dtype, shape);
  const size_t inner = count_of({array.shape.begin() + static_cast<ptrdiff_t>(axis) + 1, array.shape.end()});
  for (size_t i = 0; i < made.count(); ++i)
    made.set(i, array.at(i / inner * inner * static_cast<size_t>(array.shape[axis]) + i % inner));
  return made;
}

// Each tensor in turn with an axis of one element, which must be shown along the whole result.
void add_broadcasts(const Inputs& inputs, std::vector<Variant>& variants) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_list || inputs[i].arrays.size() != 1 || !inputs[i].arrays[0]) continue;
    const Array& array = *inputs[i].arrays[0];
    for (size_t axis = 0; axis < array.shape.size() && array.count(); ++axis) {
      if (array.shape[axis] < 2) continue;
      Inputs made = inputs;
      made[i].arrays[0] = part_of(array, axis);
      variants.push_back({"broadcast", std::move(made), {.as_sampled = false, .checked = true}});
    }
  }
}

Inputs longer(const Inputs& inputs, size_t rank, int64_t repeats) {
  return changed(inputs, [&](Array& array) {
    if (array.shape.size() != rank) return;
    const std::vector<unsigned char> once = array.bytes;
    array.shape.insert(array.shape.begin(), repeats);
    array.bytes.clear();
    for (int64_t i = 0; i < repeats; ++i) array.bytes.insert(array.bytes.end(), once.begin(), once.end());
  });
}

Inputs emptied(const Inputs& inputs, size_t rank) {
  return changed(inputs, [&](Array& array) {
    if (array.shape.size() != rank) return;
    array.shape.insert(array.shape.begin(), 0);
    array.bytes.clear();
  });
}

// NaN, infinities and zeros meet each other: every argument goes through the list at a pace of its own.
Inputs special(const Inputs& inputs) {
  static constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
  static constexpr long double kInf = std::numeric_limits<long double>::infinity();
  static constexpr long double kValues[] = {kNan, 1, kInf, -kInf, 0, -0.0L, -1, 0.5L};
  constexpr size_t n = std::size(kValues);
  Inputs made = inputs;
  size_t pace = 1;
  for (Input& input : made)
    for (auto& array : input.arrays) {
      if (!array || !(BP_DTYPE_BIT(array->dtype) & BP_MASK_FLOATING)) continue;
      *array = Array(array->dtype, {static_cast<int64_t>(n * n)});
      for (size_t i = 0; i < n * n; ++i) array->set(i, {kValues[i / pace % n], 0});
      pace *= n;
    }
  return made;
}

// NaN among the elements: one of three, and others in each argument. Not the first of all: where an op keeps the
// greatest element so far, a NaN that comes first stays whatever the comparison.
Inputs with_nans(const Inputs& inputs) {
  size_t phase = 1;
  return changed(inputs, [&](Array& array) {
    if (!(BP_DTYPE_BIT(array.dtype) & BP_MASK_FLOATING)) return;
    for (size_t i = phase++ % 3; i < array.count(); i += 3)
      array.set(i, {std::numeric_limits<long double>::quiet_NaN(), 0});
  });
}

// Infinities are left out: formulas may meet inf - inf where the kernel need not.
bool takes_nans(const Entry& entry) {
  return entry.family.empty() && has_kernel_to_compare(entry) &&
         std::count(entry.differentiable.begin(), entry.differentiable.end(), false) == 0;
}

// The second promoting tensor in a dtype that gives way to the first one's.
bool mix_dtypes(const Entry& entry, bp_dtype dtype, Inputs& inputs) {
  size_t promoting = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].promotes || inputs[i].arrays.size() != 1 || !inputs[i].arrays[0] || ++promoting != 2) continue;
    for (const bp_dtype other : {BP_INT8, BP_FLOAT32, BP_BOOL})
      if (other != dtype && (entry.args[i].accepts & BP_DTYPE_BIT(other)) && promote(dtype, other) == dtype) {
        inputs[i].arrays[0] = as_dtype(*inputs[i].arrays[0], other);
        return true;
      }
  }
  return false;
}

void add_elementwise(const Entry& entry, const Inputs& inputs, bp_dtype dtype, std::vector<Variant>& variants) {
  const size_t rank = rank_of(inputs);
  add_broadcasts(inputs, variants);
  if (rank > 0) variants.push_back({"long", longer(inputs, rank, kRepeats), {.as_sampled = false, .checked = true}});
  if (rank > 0) variants.push_back({"empty", emptied(inputs, rank), {.as_sampled = false}});
  const bool plain =
      std::all_of(inputs.begin(), inputs.end(), [](const Input& i) { return i.is_tensors && !i.is_list; });
  if (plain && !entry.family.empty() && (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING))
    variants.push_back({"special values", special(inputs), {.as_sampled = false, .checked = true}});
  if (takes_nans(entry) && (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING))
    variants.push_back({"special values", with_nans(inputs), {.as_sampled = false, .checked = true}});
  if (Inputs mixed = inputs; !entry.has("same_dtypes") && mix_dtypes(entry, dtype, mixed))
    variants.push_back({"promotion", std::move(mixed), {.as_sampled = false, .checked = true}});
}

}  // namespace

Inputs element_of(const Inputs& inputs, const std::vector<int64_t>& shape, size_t at) {
  return changed(inputs, [&](Array& array) {
    if (array.shape.empty()) return;
    size_t from = 0, step = 1, rest = at;
    for (size_t d = array.shape.size(), r = shape.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(array.shape[d]), places = static_cast<size_t>(shape[--r]);
      from += (size > 1 ? rest % places : 0) * step;
      step *= size;
      rest /= places;
    }
    Array one(array.dtype, {1});
    one.set(0, array.at(from));
    array = std::move(one);
  });
}

bool takes_outs(const Entry& entry) {
  const bool lists = std::count(entry.list_results.begin(), entry.list_results.end(), true) != 0;
  return !lists && !entry.has("view") && !entry.has("maybe_view") && !entry.has("dynamic") &&
         !entry.has("higher_order");
}

std::optional<Inputs> many_elements(const Entry& entry, const Inputs& inputs) {
  const size_t rank = rank_of(inputs);
  size_t count = 0;
  for (const Input& input : inputs)
    for (const auto& array : input.arrays)
      if (array && array->shape.size() == rank) count = std::max(count, array->count());
  if (!entry.has("elementwise") || rank == 0 || count == 0) return std::nullopt;
  return longer(inputs, rank, static_cast<int64_t>((kMany + count - 1) / count));
}

std::optional<Inputs> with_large_integers(const Inputs& inputs) {
  static constexpr int64_t kValues[] = {(int64_t{1} << 53) + 1, -(int64_t{1} << 53) - 3, (int64_t{1} << 31) + 5,
                                        (int64_t{1} << 40) + 7, -(int64_t{1} << 33) - 1};
  Inputs made = inputs;
  size_t phase = 0;
  for (Input& input : made)
    for (auto& array : input.arrays) {
      if (!array || !input.promotes || !(array->dtype == BP_INT64 || array->dtype == BP_UINT64)) continue;
      for (size_t i = 0; i < array->count(); ++i) {
        const int64_t value = kValues[(i + phase) % std::size(kValues)];
        array->set(i, {static_cast<long double>(array->dtype == BP_UINT64 ? std::abs(value) : value), 0});
      }
      ++phase;
    }
  return phase ? std::optional(std::move(made)) : std::nullopt;
}

std::vector<Variant> variants_of(const Entry& entry, const Inputs& inputs, bp_dtype dtype) {
  std::vector<Variant> variants;
  variants.push_back({"values", inputs, {.checked = true}, true});
  const bool takes = takes_outs(entry);
  if (takes) variants.push_back({"out", inputs, {.as_sampled = false, .outs = "packed"}, true});
  if (takes) variants.push_back({"strided out", inputs, {.as_sampled = false, .outs = "strided"}, true});
  if (rank_of(inputs) > 0 && !entry.exempt("layout"))
    for (const char* layout : {"strided", "transposed", "offset", "backward"})
      variants.push_back({layout, inputs, {.layout = layout}, true});
  if (entry.has("elementwise"))
    add_elementwise(entry, inputs, dtype, variants);
  else if (takes_nans(entry) && (BP_DTYPE_BIT(dtype) & BP_MASK_FLOATING))
    variants.push_back({"special values", with_nans(inputs), {.as_sampled = false, .checked = true}});
  return variants;
}

}  // namespace backplane::conformance
