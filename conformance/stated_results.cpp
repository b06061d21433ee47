// See stated_results.hpp.
#include "stated_results.hpp"

#include <fmt/format.h>

#include <set>

#include "backplane/op.hpp"
#include "compare.hpp"

namespace backplane::conformance {
namespace {

std::string bytes_of(const Array& array, size_t i) {
  const size_t item = array.bytes.size() / array.count();
  return {reinterpret_cast<const char*>(array.bytes.data()) + i * item, item};
}

// Does an argument have the word with which the op computes (`moves: unless accumulate`)?
bool computes_here(const Entry& entry, const Inputs& inputs) {
  const uint64_t where = op_def(entry.op).computes_where;
  for (size_t i = 0; i < inputs.size() && i < 64; ++i)
    if ((where >> i & 1) && inputs[i].given && inputs[i].literal.is_boolean() && inputs[i].literal.get<bool>())
      return true;
  return false;
}

// False: no argument has elements of the dtype.
bool add_arguments(const Inputs& inputs, bp_dtype dtype, std::set<std::string>& known) {
  bool any = false;
  for (const Input& input : inputs)
    for (const auto& array : input.arrays) {
      if (!array || array->dtype != dtype) continue;
      any = true;
      for (size_t i = 0; i < array->count(); ++i) known.insert(bytes_of(*array, i));
    }
  return any;
}

void add_numbers(const Inputs& inputs, bp_dtype dtype, std::set<std::string>& known) {
  const auto add = [&](long double number) {
    Array one(dtype, {1});
    one.set(0, {number, 0});
    known.insert(bytes_of(one, 0));
  };
  for (const int filling : {0, 1}) add(filling);  // of zeros_like and ones_like
  for (const Input& input : inputs)
    if (input.literal.is_number()) add(input.literal.get<double>());
}

}  // namespace

std::string element_from_nowhere(const Entry& entry, const Inputs& inputs, const std::vector<Array>& results) {
  if (computes_here(entry, inputs)) return "";
  for (size_t r = 0; r < results.size(); ++r) {
    std::set<std::string> known;
    if (!add_arguments(inputs, results[r].dtype, known)) continue;
    add_numbers(inputs, results[r].dtype, known);
    for (size_t i = 0; i < results[r].count(); ++i)
      if (!known.count(bytes_of(results[r], i)))
        return fmt::format("result {}: element {} of {} is {:.9g}, which is not an element of an argument", r, i,
                           shape_text(results[r].shape), results[r].at(i).re);
  }
  return "";
}

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
