// See transform_checks.hpp.
#include "transform_checks.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

// The call with other tensors in the places of those that it holds. Empty: the result has no derivative.
std::vector<Tensor> call_with(const Entry& entry, Arguments& arguments, std::span<const Tensor> tensors,
                              bool differentiable_only) {
  std::vector<bp_value> values = arguments.values();
  std::deque<std::vector<bp_tensor*>> lists;
  size_t position = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (entry.args[i].is_tensor() && values[i].tag == BP_TAG_TENSOR && values[i].u.t)
      values[i] = value(tensors[position++]);
    if (values[i].tag != BP_TAG_TENSOR_LIST) continue;
    std::vector<bp_tensor*>& list = lists.emplace_back(values[i].u.tensors, values[i].u.tensors + values[i].count);
    for (bp_tensor*& one : list)
      if (one) one = tensors[position++].get();
    values[i].u.tensors = list.data();
  }
  std::vector<bp_value> slots(entry.list_results.size());
  if (const bp_status status = call_packed(entry.op, values.data(), static_cast<int32_t>(values.size()), slots.data(),
                                           static_cast<int32_t>(slots.size())))
    throw_last_error(status);
  std::vector<Tensor> all, chosen;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::vector<Tensor> found;
    if (entry.list_results[i])
      found = take_list(slots[i]);
    else
      found.push_back(Tensor::adopt(slots[i].u.t));
    for (Tensor& tensor : found)
      if (tensor && (!differentiable_only || (entry.differentiable[i] && is_inexact(tensor.dtype()))))
        chosen.push_back(std::move(tensor));
  }
  return chosen;
}

template <class Run>
Transformed attempt(const Run& run) {
  shared_cases::step();
  Transformed made;
  try {
    for (const Tensor& tensor : run()) made.results.push_back(from_tensor(tensor));
  } catch (const Error& error) {
    made.status = error.code();
    made.message = error.what();
  }
  return made;
}

std::vector<Tensor> held_by(Arguments& arguments) {
  std::vector<Tensor> tensors;
  for (const Arguments::Held& held : arguments.held()) tensors.push_back(held.placed.tensor);
  return tensors;
}

Array stacked(const std::vector<const Array*>& rows) {
  Array made = *rows.front();
  made.shape.insert(made.shape.begin(), static_cast<int64_t>(rows.size()));
  for (size_t i = 1; i < rows.size(); ++i)
    made.bytes.insert(made.bytes.end(), rows[i]->bytes.begin(), rows[i]->bytes.end());
  return made;
}

std::vector<Array> rows_of_result(const Array& all) {
  std::vector<Array> rows;
  const std::vector<int64_t> shape(all.shape.begin() + 1, all.shape.end());
  for (int64_t i = 0; i < all.shape[0]; ++i) {
    Array& row = rows.emplace_back(all.dtype, shape);
    std::copy_n(all.bytes.begin() + i * static_cast<int64_t>(row.bytes.size()), row.bytes.size(), row.bytes.begin());
  }
  return rows;
}

}  // namespace

Transformed tangents(const Entry& entry, const Inputs& inputs, bp_device device, const std::vector<size_t>& of,
                     const std::vector<Array>& directions) {
  return attempt([&] {
    Arguments arguments(entry, inputs, device, {.as_sampled = false});
    const std::vector<Tensor> all = held_by(arguments);
    std::vector<Tensor> primals, along;
    for (size_t i = 0; i < of.size(); ++i) {
      primals.push_back(all[of[i]]);
      along.push_back(to_tensor(directions[i], device));
    }
    const auto function = [&](std::span<const Tensor> moved) {
      std::vector<Tensor> tensors = all;
      for (size_t i = 0; i < of.size(); ++i) tensors[of[i]] = moved[i];
      return call_with(entry, arguments, tensors, true);
    };
    return jvp(function, primals, along).tangents;
  });
}

bool batches(const Entry& entry, const Inputs& inputs) {
  static constexpr const char* kNotBatched[] = {"creation", "refused", "function", "missing"};
  const char* rule = batch_rule(entry.op);
  return elements_of(inputs) > 0 && entry.is_repeatable() && !entry.has_generator() &&
         std::none_of(std::begin(kNotBatched), std::end(kNotBatched),
                      [&](const char* one) { return std::strcmp(one, rule) == 0; });
}

Transformed batched(const Entry& entry, const std::vector<Inputs>& rows, bp_device device) {
  Transformed all = attempt([&] {
    Arguments arguments(entry, rows.front(), device, {.as_sampled = false});
    std::vector<Tensor> inputs;
    for (size_t i = 0; i < rows.front().size(); ++i)
      for (size_t k = 0; k < rows.front()[i].arrays.size(); ++k) {
        std::vector<const Array*> same;
        for (const Inputs& row : rows)
          if (row[i].arrays[k]) same.push_back(&*row[i].arrays[k]);
        if (!same.empty()) inputs.push_back(to_tensor(stacked(same), device));
      }
    return vmap([&](std::span<const Tensor> tensors) { return call_with(entry, arguments, tensors, false); }, inputs);
  });
  std::vector<Array> results;
  for (const Array& result : all.results)
    for (Array& row : rows_of_result(result)) results.push_back(std::move(row));
  all.results = std::move(results);
  return all;
}

Transformed one_by_one(const Entry& entry, const std::vector<Inputs>& rows, bp_device device) {
  Transformed made;
  std::vector<std::vector<Array>> found;  // by row
  for (const Inputs& row : rows) {
    CallResult one = run_call(entry, row, device, {.as_sampled = false});
    if (!one.ok()) return {one.status, one.message, {}};
    found.push_back(std::move(one.results));
  }
  for (size_t result = 0; result < found.front().size(); ++result)
    for (std::vector<Array>& row : found) made.results.push_back(std::move(row[result]));
  return made;
}

}  // namespace backplane::conformance
