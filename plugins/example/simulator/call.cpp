// Copies borrowed arguments into what a queue's item may keep. What depends on the device is in call_device.cpp.
#include "call.hpp"

#include <cstring>

namespace sim {
int64_t Operand::count() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

std::vector<int64_t> Call::integers(size_t arg) const {
  const bp_value& list = args_[arg];
  return {list.u.ints, list.u.ints + list.count};
}

Operand Call::operand(const bp_tensor& tensor, bool writes) const {
  const auto rank = static_cast<size_t>(tensor.dl.ndim);
  Operand made{
      nullptr, tensor.dtype, {tensor.dl.shape, tensor.dl.shape + rank}, {tensor.dl.strides, tensor.dl.strides + rank}};
  if (made.count() == 0) return made;
  BP_CHECK(tensor.dl.byte_offset % alignment() == 0, INTERNAL, frame_.op->name, ": a byte offset of ",
           tensor.dl.byte_offset, " reached a device that takes multiples of ", alignment());
  const auto item = static_cast<int64_t>(kItemSize[tensor.dtype]);
  int64_t low = 0, high = item;  // bytes around the first element; strides may be negative
  for (size_t d = 0; d < rank; ++d) {
    const int64_t reach = (made.shape[d] - 1) * made.strides[d] * item;
    (reach < 0 ? low : high) += reach;
  }
  touched_.push_back(
      {tensor.dl.data, tensor.dl.byte_offset + static_cast<uint64_t>(low), static_cast<uint64_t>(high - low), writes});
  made.data = resolve(touched_.back()) - low;
  return made;
}

Operand Call::input(size_t arg) const { return operand(*args_[arg].u.t, false); }

std::vector<Operand> Call::inputs(size_t arg) const {
  const bp_value& list = args_[arg];
  std::vector<Operand> made;
  for (uint32_t i = 0; i < list.count; ++i)
    made.push_back(list.u.tensors[i] ? operand(*list.u.tensors[i], false) : Operand{});
  return made;
}

Operand Call::output(size_t result) const { return operand(*outs_[result].u.t, true); }

char* Call::scratch(uint64_t size) const {
  touched_.push_back({backplane::plugin::Context{&frame_}.scratch(size), 0, size, true});
  return resolve(touched_.back());
}

Loop Call::loop(bp_dtype first) const {
  Loop made;
  for (const bp_value& out : outs_) add_tensor(made, *out.u.t, true);
  for (size_t i = 0; i < args_.size(); ++i) {
    const bp_value& arg = args_[i];
    if (arg.tag == BP_TAG_TENSOR) add_tensor(made, *arg.u.t, false);
    if (arg.flags & BP_VALUE_NUMBER) add_number(made, i == 0 && first != BP_DTYPE_NONE ? first : compute(), arg);
  }
  if (!frame_.loop) {  // flat: contiguous tensors of one shape
    const bp_tensor& out = *outs_[0].u.t;
    made.count = static_cast<int64_t>(out.nbytes / kItemSize[out.dtype]);
    made.sizes = {made.count};
    return made;
  }
  const bp_loop& source = *frame_.loop;
  BP_CHECK(static_cast<size_t>(source.n_operands) == made.data.size(), INTERNAL, frame_.op->name, ": the loop has ",
           source.n_operands, " operands, the call ", made.data.size());
  made.count = source.count;
  made.sizes.assign(source.sizes, source.sizes + source.rank);
  made.strides.assign(source.strides, source.strides + source.rank * source.n_operands);
  return made;
}

void Call::add_tensor(Loop& loop, const bp_tensor& tensor, bool writes) const {
  loop.data.push_back(operand(tensor, writes).data);
  loop.numbers.emplace_back();
  loop.strides.push_back(kItemSize[tensor.dtype]);
}

void Call::add_number(Loop& loop, bp_dtype dtype, const bp_value& number) const {
  loop.data.push_back(nullptr);
  loop.strides.push_back(0);
  auto& bytes = loop.numbers.emplace_back().bytes;
  dispatch_dtype<kAll>(dtype, [&]<class T>() {
    const T element = element_of<T>(number);
    std::memcpy(bytes.data(), &element, sizeof(T));
  });
}

}  // namespace sim
