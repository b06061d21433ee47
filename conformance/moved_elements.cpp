// See moved_elements.hpp.
#include "moved_elements.hpp"

#include <fmt/format.h>

#include <set>

#include "backplane/op.hpp"

namespace backplane::conformance {
namespace {

std::string bytes_of(const Array& array, size_t i) {
  const size_t item = array.bytes.size() / array.count();
  return {reinterpret_cast<const char*>(array.bytes.data()) + i * item, item};
}

// Has an argument the word by which the op computes (`moves: unless accumulate`)?
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
        return fmt::format("result {}: element {} of {} is {:.9g}, which is no element of an argument", r, i,
                           shape_text(results[r].shape), results[r].at(i).re);
  }
  return "";
}

}  // namespace backplane::conformance
