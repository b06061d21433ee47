// See differentiated.hpp.
#include "differentiated.hpp"

#include "backplane/autograd.hpp"
#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

bool differentiates(const Entry& entry, size_t argument) {
  const Argument& arg = entry.args[argument];
  if (!arg.is_tensor() || !(arg.accepts & (BP_MASK_FLOATING | BP_MASK_COMPLEX))) return false;
  const auto stated = entry.vjp.find(arg.name);
  return entry.has("composite") || (stated != entry.vjp.end() && stated->second != "none");
}

}  // namespace

Array random_like(const Array& array, uint64_t seed) {
  return draw({array.shape, array.dtype, "uniform(-1, 1)", ""}, array.dtype, seed);
}

namespace {

Tensor cotangent_of(const Tensor& result, uint64_t seed) {
  return to_tensor(random_like(from_tensor(result), seed), result.device());
}

// The gradients of the sum of <gradient, direction>, over the gradients that something moves.
std::vector<Tensor> second_gradients(const std::vector<Tensor>& first, const std::vector<Tensor>& leaves) {
  std::vector<Tensor> roots, directions;
  for (size_t i = 0; i < first.size(); ++i) {
    if (!first[i] || !requires_grad(first[i])) continue;
    directions.push_back(cotangent_of(detach(first[i]), kAgainSeed + i));
    roots.push_back(first[i]);
  }
  return roots.empty() ? std::vector<Tensor>(leaves.size()) : gradients(roots, directions, leaves, {});
}

void differentiate(const Entry& entry, const Inputs& inputs, bp_device device, bool again, size_t only,
                   Differentiated& made) {
  Arguments arguments(entry, inputs, device, {.as_sampled = false});
  std::vector<Tensor> leaves;
  size_t position = 0;
  for (Arguments::Held& held : arguments.held()) {
    if (differentiates(entry, held.argument) && is_inexact(held.placed.tensor.dtype())) {
      set_requires_grad(held.placed.tensor, true);
      leaves.push_back(held.placed.tensor);
      made.of.push_back(position);
    }
    ++position;
  }
  std::vector<bp_value> slots(entry.list_results.size());
  if (const bp_status status =
          call_packed(entry.op, arguments.values().data(), static_cast<int32_t>(arguments.values().size()),
                      slots.data(), static_cast<int32_t>(slots.size())))
    throw_last_error(status);
  std::vector<Tensor> roots, cotangents;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::vector<Tensor> tensors;
    if (entry.list_results[i])
      tensors = take_list(slots[i]);
    else
      tensors.push_back(Tensor::adopt(slots[i].u.t));
    for (Tensor& tensor : tensors) {
      if (!entry.differentiable[i] || !is_inexact(tensor.dtype())) continue;
      made.results.push_back(from_tensor(detach(tensor)));
      if (!requires_grad(tensor) || (only != kAllResults && only != made.results.size() - 1)) continue;
      cotangents.push_back(cotangent_of(detach(tensor), kCotangentSeed + made.results.size() - 1));
      roots.push_back(std::move(tensor));
    }
  }
  std::vector<Tensor> found(leaves.size());
  if (!roots.empty()) found = gradients(roots, cotangents, leaves, {.create_graph = again});
  if (again) found = second_gradients(found, leaves);
  for (size_t i = 0; i < leaves.size(); ++i) {
    const Array at = from_tensor(detach(leaves[i]));
    made.gradients.push_back(found[i] ? from_tensor(detach(found[i])) : Array(at.dtype, at.shape));
  }
}

}  // namespace

Differentiated differentiated(const Entry& entry, const Inputs& inputs, bp_device device, bool again, size_t only) {
  shared_cases::step();
  Differentiated made;
  try {
    differentiate(entry, inputs, device, again, only, made);
  } catch (const Error& error) {
    made.status = error.code();
    made.message = error.what();
  }
  return made;
}

long double inner(const Array& a, const Array& b) {
  long double sum = 0;
  for (size_t i = 0; i < a.count(); ++i) sum += a.at(i).re * b.at(i).re + a.at(i).im * b.at(i).im;
  return sum;
}

std::vector<Array*> arrays_of(Inputs& inputs) {
  std::vector<Array*> found;
  for (Input& input : inputs)
    for (auto& array : input.arrays)
      if (array) found.push_back(&*array);
  return found;
}

Inputs moved(Inputs inputs, size_t tensor, const Array& direction, double step) {
  Array& array = *arrays_of(inputs)[tensor];
  for (size_t i = 0; i < array.count(); ++i) {
    const Number at = array.at(i), along = direction.at(i);
    array.set(i, {at.re + step * along.re, at.im + step * along.im});
  }
  return inputs;
}

}  // namespace backplane::conformance
