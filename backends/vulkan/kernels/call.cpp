#include "kernels/call.hpp"

#include <bit>
#include <cstring>
#include <limits>

namespace backplane::vulkan {

int64_t Operand::count() const {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

Range Operand::range() const {
  if (dtype == BP_DTYPE_NONE || count() == 0) return {};  // one that nobody gave, or wants
  int64_t low = 0, high = 1;
  for (size_t d = 0; d < shape.size(); ++d) (strides[d] < 0 ? low : high) += (shape[d] - 1) * strides[d];
  const int64_t item = plugin::kItemSize[dtype];
  return {data + static_cast<uint64_t>(low * item), data + static_cast<uint64_t>(high * item)};
}

Sizes row_major(const Sizes& shape) {
  Sizes strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

Operand contiguous(uint64_t data, bp_dtype dtype, Sizes shape) {
  Sizes strides = row_major(shape);
  return {data, dtype, std::move(shape), std::move(strides)};
}

Sizes broadcast_strides(const Operand& operand, const Sizes& shape) {
  Sizes strides(shape.size(), 0);
  const size_t skipped = shape.size() - operand.shape.size();
  for (size_t d = 0; d < operand.shape.size(); ++d)
    if (operand.shape[d] != 1) strides[skipped + d] = operand.strides[d];
  return strides;
}

int32_t narrow(int64_t value, const char* op_name) {
  BP_CHECK(value >= std::numeric_limits<int32_t>::min() && value <= std::numeric_limits<int32_t>::max(), VALUE, op_name,
           ": found an operand spread over ", value, " elements, expected fewer than 2^31. Fix: copy it first");
  return static_cast<int32_t>(value);
}

void set_divisor(int32_t* row) {
  const auto size = static_cast<uint64_t>(row[0]);
  const int places = std::bit_width(size - 1);
  row[1] = static_cast<int32_t>(static_cast<uint32_t>(((1ull << (31 + places)) + size - 1) / size));
  row[2] = places - 1;
}

void divide_by(int64_t size, uint32_t* words) {
  int32_t row[3] = {static_cast<int32_t>(size)};
  if (size > 1) set_divisor(row);
  words[0] = static_cast<uint32_t>(row[1]);
  words[1] = static_cast<uint32_t>(row[2]);
}

void Rows::add(const Sizes& shape, std::initializer_list<const Sizes*> strides) {
  const size_t width = strides.size() + kHead;
  first_ = values_.size();
  width_ = width;
  rank_ = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    int32_t* last = rank_ ? values_.data() + values_.size() - width : nullptr;
    bool joins = last != nullptr;
    size_t k = kHead;
    for (const Sizes* operand : strides) {
      narrow((*operand)[d] * (shape[d] - 1), "vulkan");
      joins = joins && int64_t{last[0]} * last[k++] == (*operand)[d];
    }
    if (joins) {
      last[0] = narrow(last[0] * shape[d], "vulkan");
      continue;
    }
    values_.insert(values_.end(), {narrow(shape[d], "vulkan"), 0, 0});
    for (const Sizes* operand : strides) values_.push_back(narrow((*operand)[d], "vulkan"));
    ++rank_;
  }
  // The outermost needs no division: the remaining quotient is its index.
  for (uint32_t d = 0; d + 1 < rank_; ++d) set_divisor(values_.data() + first_ + d * width);
}

bool Rows::into(std::span<uint32_t> words) const {
  const size_t needed = width_ * std::max(rank_, 1u) - kHead;
  if (needed > words.size()) return false;
  std::fill(words.begin(), words.end(), 0u);
  if (rank_ == 0) return true;
  const size_t outermost = (rank_ - 1) * width_;
  for (size_t i = 0; i < needed; ++i)
    words[i] = static_cast<uint32_t>(values_[first_ + i + (i < outermost ? 0 : kHead)]);
  return true;
}

Class class_of(bp_dtype dtype) {
  switch (dtype) {
    case BP_FLOAT16:
    case BP_BFLOAT16:
    case BP_FLOAT32:
      return Class::kFloat32;
    case BP_FLOAT64:
      return Class::kFloat64;
    case BP_COMPLEX64:
      return Class::kComplex64;
    case BP_COMPLEX128:
      return Class::kComplex128;
    default:
      return Class::kInt64;
  }
}

Operand Call::operand(const bp_tensor& tensor) const {
  const auto rank = static_cast<size_t>(tensor.dl.ndim);
  const uint64_t first = reinterpret_cast<uint64_t>(tensor.dl.data) + tensor.dl.byte_offset;
  return {tensor.nbytes ? first : 0,
          tensor.dtype,
          {tensor.dl.shape, tensor.dl.shape + rank},
          {tensor.dl.strides, tensor.dl.strides + rank}};
}

std::vector<Operand> Call::inputs(size_t arg) const {
  const bp_value& list = args_[arg];
  std::vector<Operand> made;
  for (uint32_t i = 0; i < list.count; ++i) made.push_back(list.u.tensors[i] ? operand(*list.u.tensors[i]) : Operand{});
  return made;
}

Operand Call::scratch(bp_dtype dtype, Sizes shape) const {
  Operand made = contiguous(0, dtype, std::move(shape));
  const auto bytes = static_cast<uint64_t>(made.count()) * plugin::kItemSize[dtype];
  if (bytes) made.data = reinterpret_cast<uint64_t>(plugin::Context{&frame_}.scratch(bytes));
  return made;
}

Push Call::push() const {
  Push made;
  made.fault = stream().fault_address();
  made.ticket = frame_.ticket;
  return made;
}

uint64_t Call::stage(std::span<const std::byte> bytes) const {
  if (bytes.empty()) return 0;
  const Place place = stream().stage(bytes.size());
  std::memcpy(place.mapped, bytes.data(), bytes.size());
  return place.address;
}

uint64_t Call::stage_number(const bp_value& number, bp_dtype dtype) const {
  return plugin::dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() {
    const T element = plugin::number_as<T>(number);
    return stage(std::as_bytes(std::span(&element, 1)));
  });
}

}  // namespace backplane::vulkan
