// See resized.hpp.
#include "resized.hpp"

#include "trial.hpp"

namespace backplane::conformance {
namespace {

constexpr size_t kMostElements = 1 << 16;

Sample with_size(Sample sample, int64_t from, int64_t to) {
  for (auto& [name, value] : sample.values)
    for (auto& tensor : value.tensors)
      if (tensor)
        for (int64_t& size : tensor->shape)
          if (size == from) size = to;
  return sample;
}

size_t elements_stated(const Sample& sample) {
  size_t count = 0;
  for (const auto& [name, value] : sample.values)
    for (const auto& tensor : value.tensors)
      if (tensor) count += count_of(tensor->shape);
  return count;
}

}  // namespace

std::vector<Resized> resized(const Subject& subject, const Entry& entry, size_t sample, bp_dtype dtype) {
  std::vector<Resized> made;
  if (entry.has("elementwise") || entry.has("view") || !has_kernel_to_compare(entry)) return made;
  Entry other = entry;
  const auto add = [&](const char* check, Sample changed) {
    if (elements_stated(changed) > kMostElements) return false;
    other.samples = {std::move(changed)};
    made.push_back({check, inputs_of(subject, other, 0, dtype)});
    return true;
  };
  const Sample& own = entry.samples[sample];
  for (const int64_t size : sizes_of(own)) {
    if (size == 0) continue;
    // More than the threads of a block; odd, so that the last vector is never full. Else what the elements allow.
    if (!add("long", with_size(own, size, 2 * 67 * size + 1))) add("long", with_size(own, size, size + 18 + size % 2));
    if (!entry.exempt("zero_size")) add("empty", with_size(own, size, 0));
  }
  return made;
}

}  // namespace backplane::conformance
