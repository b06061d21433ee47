// Launches; see launch.hpp.
#include "kernels/launch.hpp"

#include <cstring>
#include <map>

namespace minimal {
namespace {

// Where codegen's lists of scalar functions have an op, per dtype.
using Numbers = std::map<std::pair<std::string, bp_dtype>, uint32_t>;

// clang-format off
#define ROW(op, function, number) numbers[{#op, dtype}] = number;
#define SAME(name) BP_SCALAR_UNARY_##name##_##name(ROW) BP_SCALAR_BINARY_##name##_##name(ROW)
#define REAL(constant, name) dtype = constant; SAME(name) BP_SCALAR_BINARY_##name##_bool(ROW)
Numbers read_lists() {
  Numbers numbers;
  bp_dtype dtype = BP_BOOL;
  SAME(bool)
  REAL(BP_INT8, int8) REAL(BP_INT16, int16) REAL(BP_INT32, int32) REAL(BP_INT64, int64)
  REAL(BP_UINT8, uint8) REAL(BP_UINT16, uint16) REAL(BP_UINT32, uint32) REAL(BP_UINT64, uint64)
  REAL(BP_FLOAT32, float32) BP_SCALAR_BINARY_float32_complex64(ROW)
  REAL(BP_FLOAT64, float64) BP_SCALAR_BINARY_float64_complex128(ROW)
  REAL(BP_COMPLEX64, complex64) BP_SCALAR_UNARY_complex64_float32(ROW)
  REAL(BP_COMPLEX128, complex128) BP_SCALAR_UNARY_complex128_float64(ROW)
  return numbers;
}
#undef REAL
#undef SAME
#undef ROW
// clang-format on

}  // namespace

bp_dtype computed(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16 ? bp_dtype{BP_FLOAT32} : dtype; }

Walk::Walk(Context call, std::initializer_list<const bp_tensor*> operands) {
  const bp_loop* given = call.frame->loop;
  if (given != nullptr) {
    sizes.assign(given->sizes, given->sizes + given->rank);
    for (size_t k = 0; k < operands.size(); ++k) {
      const int64_t* own = given->strides + static_cast<int64_t>(k) * given->rank;
      strides.emplace_back(own, own + given->rank);
    }
    return;
  }
  const bp_tensor& out = **operands.begin();
  sizes = {static_cast<int64_t>(out.nbytes / kItemSize[out.dtype])};
  for (const bp_tensor* operand : operands) strides.push_back({kItemSize[operand->dtype]});
}

Walk::Walk(Ints shape, std::initializer_list<Ints> each, int64_t item) : sizes(shape.begin(), shape.end()) {
  for (const Ints& own : each) {
    strides.emplace_back(own.begin(), own.end());
    for (int64_t& stride : strides.back()) stride *= item;
  }
}

void Walk::add_dim(int64_t size, std::initializer_list<int64_t> steps) {
  strides.resize(steps.size());
  sizes.push_back(size);
  for (size_t k = 0; k < steps.size(); ++k) strides[k].push_back(steps.begin()[k]);
}

Launch::Launch(Context given, Kernel wanted, bp_dtype elements)
    : call(given), kernel(wanted), dtype(computed(elements)) {
  arguments.in = arguments.out = elements;
}

Launch& Launch::result(bp_dtype elements) {
  arguments.out = elements;
  return *this;
}

Launch& Launch::tensor(const bp_tensor& tensor, int64_t more_bytes) {
  return memory(static_cast<const char*>(tensor.dl.data) + tensor.dl.byte_offset + more_bytes);
}

Launch& Launch::memory(const void* address) {
  arguments.at[operands_++] = reinterpret_cast<uint64_t>(address);
  return *this;
}

Launch& Launch::number(int64_t number) {
  arguments.n[numbers_++] = number;
  return *this;
}

Launch& Launch::bits(const bp_value& number, bp_dtype as) {
  dispatch_dtype<BP_MASK_ANY>(as, [&]<class T>() {
    const T element = number_as<T>(number);
    std::memcpy(&arguments.n[numbers_], &element, sizeof(T));
  });
  numbers_ += 2;
  return *this;
}

Launch& Launch::function(const char* op, const char* next) {
  static const Numbers numbers = read_lists();
  const auto number_of = [&](const char* name) {
    const auto found = numbers.find({name, dtype});
    BP_CHECK(found != numbers.end(), INTERNAL, call.op_name(), ": the registry has no function \"", name, "\" in ",
             dtype_name(dtype));
    return found->second;
  };
  arguments.function = number_of(op);
  if (*next != 0) arguments.second = number_of(next);
  return *this;
}

Launch& Launch::loop(const Walk& walk) {
  const uint32_t first = loops_ == 0 ? 0 : arguments.rank[0];
  const size_t rank = walk.sizes.size();
  BP_CHECK(first + rank <= size_t{kMaxDims}, NOT_IMPLEMENTED, call.op_name(), ": found ", first + rank,
           " dimensions in its loops, expected at most ", kMaxDims, " on this device");
  for (size_t d = 0; d < rank; ++d) {
    int64_t* row = arguments.rows[first + d];
    row[0] = walk.sizes[d];
    for (size_t k = 0; k < walk.strides.size(); ++k) row[1 + k] = walk.strides[k][d];
  }
  arguments.rank[loops_++] = static_cast<uint32_t>(rank);
  return *this;
}

Launch& Launch::watch(std::string message) {
  watched = std::move(message);
  return *this;
}

void Launch::run(int64_t items) {
  arguments.items = items;
  if (items > 0) record(*this);
}

void Launch::run_parts(int64_t items, int64_t steps, size_t loops) const {
  const int64_t most = kMostSteps / static_cast<int64_t>(loops);
  for (int64_t begin = 0; begin < steps; begin += most) {
    Launch part = *this;
    part.number(begin).number(std::min(begin + most, steps)).run(items);
  }
}

void record_move(Context call, const bp_tensor& to, int64_t to_bytes, const bp_tensor& from, Ints shape,
                 Ints to_strides, Ints from_strides) {
  Launch(call, Kernel::move, to.dtype)
      .tensor(to, to_bytes)
      .tensor(from)
      .run(Walk(shape, {to_strides, from_strides}, kItemSize[to.dtype]));
}

std::vector<int64_t> row_major(const std::vector<int64_t>& sizes, int64_t step) {
  std::vector<int64_t> made(sizes.size());
  for (size_t d = made.size(); d-- > 0; step *= sizes[d]) made[d] = step;
  return made;
}

const char* record_cast(Context call, Walk& walk, const char* from, bp_dtype in, bp_dtype out) {
  const std::vector<int64_t> made = row_major(walk.sizes, kItemSize[out]);
  void* to = call.scratch(static_cast<uint64_t>(walk.count()) * kItemSize[out]);
  Walk both;
  both.sizes = walk.sizes;
  both.strides = {made, walk.strides[1]};
  Launch(call, Kernel::convert, in).result(out).memory(to).memory(from).run(both);
  walk.strides[1] = made;
  return static_cast<const char*>(to);
}

}  // namespace minimal
