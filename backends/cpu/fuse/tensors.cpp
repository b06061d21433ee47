#include "fuse/tensors.hpp"

#include <algorithm>

#include "loops/cast_row.hpp"

namespace backplane::cpu::fuse {

Tensors::Tensors(const Program& program, const bp_value* inputs, const bp_value* outs) : program_(program) {
  const std::vector<uint32_t>& slots = program.tensors;
  const size_t rank = program.space.dims.size();
  sizes_ = program.space.dims;
  for (const uint32_t i : slots)
    for (size_t d = 0; d < rank; ++d)
      if (const bp_tensor* t = tensor(i, inputs, outs); t != nullptr && program.slots[i].axes[d] >= 0)
        sizes_[d] = t->dl.shape[program.slots[i].axes[d]];
  strides_.resize(slots.size() * rank, 0);
  for (size_t k = 0; k < slots.size(); ++k) {
    const Slot& slot = program.slots[slots[k]];
    const bp_tensor* t = tensor(slots[k], inputs, outs);
    int64_t* own = strides_.data() + k * rank;
    bases_.push_back(t == nullptr ? nullptr : data_of(t));
    for (size_t d = 0; t != nullptr && d < rank; ++d)
      if (slot.axes[d] >= 0) own[d] = t->dl.strides[slot.axes[d]] * slot.item();
    if (t == nullptr || !columns_even(own)) stage(k, slot, own, t != nullptr);
  }
}

int64_t Tensors::count() const {
  int64_t product = 1;
  for (const int64_t size : sizes_) product *= size;
  return product;
}

void Tensors::write_back() const {
  for (const Staged& each : staged_)
    if (each.result) copy(each.slot->dtype, each.memory->get(), each.stand_in, each.original, each.strides);
}

Walk Tensors::walk(const Part& part) const {
  std::vector<int64_t> steps;
  std::vector<char*> begins;
  for (const uint32_t k : part.tensors) {
    const auto own = strides_.begin() + static_cast<std::ptrdiff_t>(k * sizes_.size());
    steps.insert(steps.end(), own, own + static_cast<std::ptrdiff_t>(sizes_.size()));
    begins.push_back(bases_[k]);
  }
  return {program_, sizes_, begins, steps};
}

// NULL: an output that is not wanted.
const bp_tensor* Tensors::tensor(uint32_t i, const bp_value* inputs, const bp_value* outs) const {
  const Slot& slot = program_.slots[i];
  if (slot.kind == Slot::Kind::kInput) return inputs[slot.at].u.t;
  if (slot.kind == Slot::Kind::kConstant) return program_.constants[slot.at];
  return outs[slot.at].tag == BP_TAG_TENSOR ? outs[slot.at].u.t : nullptr;
}

bool Tensors::columns_even(const int64_t* own) const {
  int64_t step = 0, run = 0;
  for (size_t d = sizes_.size(); d-- > program_.space.outer();) {
    if (sizes_[d] == 1) continue;
    if (run != 0 && own[d] != step * run) return false;
    if (run == 0) step = own[d], run = 1;
    run *= sizes_[d];
  }
  return true;
}

void Tensors::stage(size_t k, const Slot& slot, int64_t* own, bool wanted) {
  Staged each{&slot, nullptr, bases_[k], {own, own + sizes_.size()}, std::vector<int64_t>(sizes_.size(), 0), false};
  // What repeats along some of the columns' dims alone gets an element for each, or its columns stay uneven.
  const size_t outer = program_.space.outer();
  const bool by_column = std::any_of(slot.axes.begin() + static_cast<std::ptrdiff_t>(outer), slot.axes.end(),
                                     [](int32_t axis) { return axis >= 0; });
  int64_t bytes = slot.item();
  for (size_t d = sizes_.size(); d-- > 0;) {
    if (slot.axes[d] < 0 && (d < outer || !by_column)) continue;
    each.stand_in[d] = bytes;
    bytes *= sizes_[d];
  }
  each.memory = std::make_unique<Scratch<char>>(bytes);
  each.result = wanted && slot.kind == Slot::Kind::kOutput;
  if (slot.kind != Slot::Kind::kOutput)
    copy(slot.dtype, each.original, each.strides, each.memory->get(), each.stand_in);
  std::copy(each.stand_in.begin(), each.stand_in.end(), own);
  bases_[k] = each.memory->get();
  staged_.push_back(std::move(each));
}

// Over the dims along which `to` has elements of its own.
void Tensors::copy(bp_dtype dtype, const char* from, const std::vector<int64_t>& from_strides, char* to,
                   const std::vector<int64_t>& to_strides, size_t d) const {
  while (d < sizes_.size() && from_strides[d] == 0 && to_strides[d] == 0) ++d;
  if (d == sizes_.size()) return cast_row(dtype, from, 0, dtype, to, 0, 1);
  if (d + 1 == sizes_.size()) return cast_row(dtype, from, from_strides[d], dtype, to, to_strides[d], sizes_[d]);
  for (int64_t i = 0; i < sizes_[d]; ++i)
    copy(dtype, from + i * from_strides[d], from_strides, to + i * to_strides[d], to_strides, d + 1);
}

}  // namespace backplane::cpu::fuse
