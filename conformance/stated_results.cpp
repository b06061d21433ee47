// See stated_results.hpp.
#include "stated_results.hpp"

#include <fmt/format.h>

#include "compare.hpp"

namespace backplane::conformance {

bool states_results(const Entry& entry, size_t sample, const Inputs& inputs) {
  if (entry.samples[sample].expected.empty()) return false;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const auto stated = entry.samples[sample].values.find(entry.args[i].name);
    if (stated == entry.samples[sample].values.end() || !stated->second.is_tensors) continue;
    for (size_t k = 0; k < inputs[i].arrays.size(); ++k) {
      const auto& array = inputs[i].arrays[k];
      if (!array || array->count() == 0) continue;
      if (BP_DTYPE_BIT(array->dtype) & BP_MASK_COMPLEX) return false;
      if (!is_inexact(array->dtype) && as_dtype(*array, BP_FLOAT64) != draw(*stated->second.tensors[k], BP_FLOAT64, 0))
        return false;
    }
  }
  return true;
}

std::string unlike_stated(const Entry& entry, size_t sample, const std::vector<Array>& results) {
  const std::vector<TensorSpec>& stated = entry.samples[sample].expected;
  std::vector<Array> expected;
  for (size_t r = 0; r < stated.size() && r < results.size(); ++r)
    expected.push_back(draw(stated[r], results[r].dtype, 0));
  return difference(entry, results, expected);
}

std::string wrong_padding(const Entry& entry, const std::vector<Array>& results) {
  if (results.size() != entry.padded.size() + 1) return "";
  const auto count = static_cast<int64_t>(results.back().at(0).re);
  for (size_t r = 0; r < entry.padded.size(); ++r) {
    if (!entry.padded[r]) continue;
    const Array& result = results[r];
    const int64_t rows = result.shape.empty() ? 0 : result.shape[0];
    if (count < 0 || count > rows)
      return fmt::format("the count is {}, and result {} has {} rows; expected a count from 0 to that", count, r, rows);
    const size_t row = rows ? result.count() / static_cast<size_t>(rows) : 0;
    for (size_t i = static_cast<size_t>(count) * row; i < result.count(); ++i)
      if (result.at(i).re != 0 || result.at(i).im != 0)
        return fmt::format("result {} is not 0 in row {}, beyond the count of {}; a kernel writes zeros there", r,
                           i / row, count);
  }
  return "";
}

}  // namespace backplane::conformance
