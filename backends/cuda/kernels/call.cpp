// Operands and launches; see call.hpp.
#include "kernels/call.hpp"

#include <complex>
#include <cstring>

#include "backplane/scalar.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kMaxCount = (int64_t{1} << 31) - 1;

template <class T, class Real>
T element_from(Real value) {
  if constexpr (plugin::kIsComplex<T>)
    return T(static_cast<typename T::value_type>(value));
  else if constexpr (plugin::kIsHalf<T>)
    return T(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, bool>)
    return value != 0;
  else
    return scalar::cast::of(value, T{});
}

template <class T>
T element_of(const bp_value& value) {
  if (value.tag == BP_TAG_COMPLEX) {
    if constexpr (plugin::kIsComplex<T>)
      return T(static_cast<typename T::value_type>(value.u.c[0]), static_cast<typename T::value_type>(value.u.c[1]));
    else
      return element_from<T>(value.u.c[0]);
  }
  return value.tag == BP_TAG_FLOAT ? element_from<T>(value.u.f) : element_from<T>(plugin::as_int(value));
}

}  // namespace

int64_t Strided::count() const {
  int64_t product = 1;
  for (const int64_t size : sizes) product *= size;
  return product;
}

const char* Call::short_name() const {
  const std::string_view full = op_name();
  const size_t colons = full.rfind(':');
  return colons == std::string_view::npos ? op_name() : op_name() + colons + 1;
}

char* Call::aligned_scratch(uint64_t bytes) const {
  constexpr uint64_t kAlignment = 256;
  if (bytes == 0) return nullptr;
  const auto at = reinterpret_cast<uintptr_t>(scratch(bytes + kAlignment - 1));
  return reinterpret_cast<char*>((at + kAlignment - 1) / kAlignment * kAlignment);
}

void launch_kernel(driver::Function function, Grid grid, const Stream& stream, void** parameters, const char* name) {
  check(the_driver().cuLaunchKernel(function, grid.x, grid.y, grid.z, grid.threads, 1, 1, 0, stream.handle(),
                                    parameters, nullptr),
        name);
}

void Call::launch_pointers(const std::string& module, const std::string& function, Grid grid, void** pointers) const {
  launch_kernel(device_.modules().function(module, function), grid, as_stream(frame_.stream), pointers,
                function.c_str());
}

Grid grid_for(const Device& device, uint64_t count) {
  const uint64_t needed = (count + kThreads - 1) / kThreads;
  return {static_cast<uint32_t>(std::clamp<uint64_t>(needed, 1, uint64_t{device.multiprocessors()} * 32)), 1, 1,
          kThreads};
}

template <class F>
void Call::each_operand(bp_dtype number_dtype, bp_dtype first_dtype, F f) const {
  size_t k = 0;
  for (const bp_value& out : outs_) f(k++, out.u.t, Number{});
  for (size_t i = 0; i < args_.size(); ++i) {
    const bp_value& arg = args_[i];
    if (arg.tag == BP_TAG_TENSOR)
      f(k++, arg.u.t, Number{});
    else if (arg.flags & BP_VALUE_NUMBER)
      f(k++, nullptr, number_of(i == 0 && first_dtype != BP_DTYPE_NONE ? first_dtype : number_dtype, arg));
  }
}

Strided Call::operands(bp_dtype number_dtype, bp_dtype first_dtype) const {
  Strided made;
  std::vector<int64_t> items;
  each_operand(number_dtype, first_dtype, [&](size_t, const bp_tensor* tensor, const Number& number) {
    made.data.push_back(tensor ? data_of(*tensor) : nullptr);
    made.numbers.push_back(number);
    items.push_back(tensor ? item_of(*tensor) : 0);
  });
  if (frame_.loop == nullptr) {
    made.sizes = {count_of(output())};
    for (const int64_t item : items) made.strides.push_back({item});
    return made;
  }
  const bp_loop& loop = *frame_.loop;
  BP_CHECK(static_cast<size_t>(loop.n_operands) == made.data.size(), INTERNAL, op_name(), ": the loop has ",
           loop.n_operands, " operands, the call ", made.data.size());
  made.sizes.assign(loop.sizes, loop.sizes + loop.rank);
  for (int32_t k = 0; k < loop.n_operands; ++k)
    made.strides.emplace_back(loop.strides + k * loop.rank, loop.strides + (k + 1) * loop.rank);
  return made;
}

// Without memory of its own: most calls fit one launch. False: this one does not.
bool Call::fill(Loop& loop, bp_dtype number_dtype, bp_dtype first_dtype) const {
  const bp_loop* from = frame_.loop;
  if (from == nullptr || from->rank > kMaxRank || from->n_operands > kMaxOperands) return false;
  int32_t operands = 0;
  each_operand(number_dtype, first_dtype, [&](size_t, const bp_tensor*, const Number&) { ++operands; });
  if (operands != from->n_operands) return false;  // operands() says so
  int64_t count = 1;
  for (int32_t d = 0; d < from->rank; ++d) count *= from->sizes[d];
  if (count > kMaxCount) return false;
  loop.count = static_cast<uint32_t>(count), loop.rank = from->rank;
  for (int32_t d = 0; d < from->rank; ++d) {
    loop.sizes[d] = divider(from->sizes[from->rank - 1 - d]);
    for (int32_t k = 0; k < from->n_operands; ++k)
      loop.strides[k][d] = from->strides[k * from->rank + from->rank - 1 - d];
  }
  each_operand(number_dtype, first_dtype, [&](size_t k, const bp_tensor* tensor, const Number& number) {
    loop.data[k] = tensor ? data_of(*tensor) : nullptr;
    loop.numbers[k] = number;
  });
  return true;
}

void Call::for_each_loop(bp_dtype number_dtype, const std::function<void(Loop&)>& body, bp_dtype first_dtype) const {
  Loop loop{};
  if (!fill(loop, number_dtype, first_dtype))
    cuda::for_each_loop(operands(number_dtype, first_dtype), body);
  else if (loop.count > 0)
    body(loop);
}

std::vector<int64_t> shape_of(const bp_tensor& tensor) { return {tensor.dl.shape, tensor.dl.shape + tensor.dl.ndim}; }

std::vector<int64_t> byte_strides_of(const bp_tensor& tensor) {
  std::vector<int64_t> strides(tensor.dl.strides, tensor.dl.strides + tensor.dl.ndim);
  for (int64_t& stride : strides) stride *= item_of(tensor);
  return strides;
}

Divider divider(int64_t size) {
  const auto d = static_cast<uint32_t>(std::max<int64_t>(size, 1));
  uint32_t shift = 0;
  while (uint64_t{1} << shift < d) ++shift;
  const uint64_t magic = (((uint64_t{1} << shift) - d) << 32) / d + 1;
  return {d, static_cast<uint32_t>(magic), shift};
}

Number number_of(bp_dtype dtype, const bp_value& value) {
  Number made{};
  plugin::dispatch_dtype<BP_MASK_ANY>(dtype, [&]<class T>() {
    const T element = element_of<T>(value);
    std::memcpy(made.bytes, &element, sizeof(T));
  });
  return made;
}

std::string typed_module(bp_dtype dtype) { return std::string("typed_") + plugin::dtype_name(dtype); }

Dimensions dimensions(std::span<const int64_t> sizes, std::span<const int64_t> out, std::span<const int64_t> x) {
  Dimensions made{1, 0, {}, {}, {}};
  int64_t count = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    count *= sizes[d];
    if (sizes[d] == 1) continue;
    BP_CHECK(made.rank < kMaxRank && count <= kMaxCount, NOT_IMPLEMENTED, "cuda: found ", sizes.size(), " axes of ",
             count, " elements; expected at most ", kMaxRank, " axes and ", kMaxCount,
             " elements. Fix: reshape, or split the tensor");
    made.sizes[made.rank] = divider(sizes[d]);
    made.out[made.rank] = out[d];
    made.x[made.rank++] = x[d];
  }
  made.count = static_cast<uint32_t>(count);
  return made;
}

bool lies_in_packs(const Loop& operands, std::span<const int64_t> items, int64_t count) {
  if (operands.rank != 1) return false;
  for (size_t k = 0; k < items.size(); ++k) {
    if (!operands.data[k]) continue;
    if (operands.strides[k][0] != items[k]) return false;
    if (reinterpret_cast<uintptr_t>(operands.data[k]) % static_cast<uint64_t>(items[k] * count) != 0) return false;
  }
  return true;
}

int64_t widened(int64_t width, Strided& operands, int64_t widest) {
  const auto doubles = [&](size_t k) {
    const std::vector<int64_t>& strides = operands.strides[k];
    return operands.data[k] != nullptr && strides.back() == width &&
           reinterpret_cast<uintptr_t>(operands.data[k]) % static_cast<uint64_t>(2 * width) == 0 &&
           std::all_of(strides.begin(), strides.end() - 1, [&](int64_t step) { return step % (2 * width) == 0; });
  };
  while (width < widest && !operands.sizes.empty() && operands.sizes.back() % 2 == 0) {
    for (size_t k = 0; k < operands.data.size(); ++k)
      if (!doubles(k)) return width;
    operands.sizes.back() /= 2;
    width *= 2;
    for (auto& strides : operands.strides) strides.back() = width;
  }
  return width;
}

void for_each_loop(const Strided& operands, const std::function<void(Loop&)>& body) {
  const int64_t count = operands.count();
  if (count == 0) return;
  const bool deep = operands.sizes.size() > static_cast<size_t>(kMaxRank);
  if (deep || count > kMaxCount) {  // in parts along the outermost dimension
    const int64_t size = operands.sizes[0], step = deep ? 1 : (size + 1) / 2;
    for (int64_t begin = 0; begin < size; begin += step) {
      Strided part = operands;
      part.sizes[0] = std::min(step, size - begin);
      for (size_t k = 0; k < part.data.size(); ++k)
        if (part.data[k]) part.data[k] += begin * part.strides[k][0];
      if (part.sizes[0] == 1) {
        part.sizes.erase(part.sizes.begin());
        for (auto& strides : part.strides) strides.erase(strides.begin());
      }
      for_each_loop(part, body);
    }
    return;
  }
  Loop loop{};
  loop.count = static_cast<uint32_t>(count);
  loop.rank = static_cast<int32_t>(operands.sizes.size());
  for (int32_t d = 0; d < loop.rank; ++d) {
    const size_t from = operands.sizes.size() - 1 - static_cast<size_t>(d);
    loop.sizes[d] = divider(operands.sizes[from]);
    for (size_t k = 0; k < operands.data.size(); ++k) loop.strides[k][d] = operands.strides[k][from];
  }
  for (size_t k = 0; k < operands.data.size(); ++k)
    loop.data[k] = operands.data[k], loop.numbers[k] = operands.numbers[k];
  body(loop);
}

}  // namespace backplane::cuda
