// Calls of ElementwiseCall. Operands that a kernel would not take as they lie (steps between elements, bytes that are
// no bools) are packed in pieces; long operands with whole strides go to the op as they are, which may split them among
// threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "backplane/borrowed_tensor.hpp"
#include "backplane/device.hpp"
#include "backplane/registration.hpp"
#include "elementwise_call.hpp"

namespace backplane::numpy {
namespace {

constexpr int64_t kPiece = 1024;       // elements that are packed at once
constexpr int64_t kStridedFrom = 512;  // elements from which a strided operand is not packed
constexpr int64_t kAxisFrom = 4;       // elements from which a reduction takes fewer calls than its steps

struct alignas(64) Buffer {
  char bytes[kPiece * 16];
};

// Of one call on one thread: tensors over its operands, and memory in which operands are packed.
class Scratch {
 public:
  BorrowedTensor& tensor(int i) const { return tensors_[static_cast<size_t>(i)]; }
  char* buffer(int i) const {
    thread_local std::vector<std::array<std::unique_ptr<Buffer>, kMostOperands>> kept;  // per nested call
    if (kept.size() <= tensors_.depth()) kept.resize(tensors_.depth() + 1);
    std::unique_ptr<Buffer>& found = kept[tensors_.depth()][static_cast<size_t>(i)];
    if (!found) found = std::make_unique<Buffer>();
    return found->bytes;
  }

 private:
  const BorrowedTensors tensors_;
};
static_assert(kMostOperands <= BorrowedTensors::kCount);

template <size_t kItem>
void copy_items(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n) {
  for (int64_t k = 0; k < n; ++k) std::memcpy(to + k * to_step, from + k * from_step, kItem);
}

void copy_strided(char* to, int64_t to_step, const char* from, int64_t from_step, int64_t n, int item) {
  switch (item) {
    case 1:
      return copy_items<1>(to, to_step, from, from_step, n);
    case 2:
      return copy_items<2>(to, to_step, from, from_step, n);
    case 4:
      return copy_items<4>(to, to_step, from, from_step, n);
    case 8:
      return copy_items<8>(to, to_step, from, from_step, n);
    default:
      return copy_items<16>(to, to_step, from, from_step, n);
  }
}

bool overlap(const char* a, int64_t a_step, int a_item, const char* b, int64_t b_step, int b_item, int64_t n) {
  const int64_t a_reach = a_step * (n - 1), b_reach = b_step * (n - 1);
  return a + std::min<int64_t>(a_reach, 0) < b + std::max<int64_t>(b_reach, 0) + b_item &&
         b + std::min<int64_t>(b_reach, 0) < a + std::max<int64_t>(a_reach, 0) + a_item;
}

}  // namespace

struct ElementwiseCall::Operands {
  const std::vector<bp_dtype>& dtypes;
  int count;
  int64_t n;
  char* data[kMostOperands];
  int64_t steps[kMostOperands];
  int items[kMostOperands];

  bool same_place(int i, int k) const {
    return data[i] == data[k] && steps[i] == steps[k] &&
           dtypes[static_cast<size_t>(i)] == dtypes[static_cast<size_t>(k)];
  }
  bool meet(int i, int k) const { return overlap(data[i], steps[i], items[i], data[k], steps[k], items[k], n); }
  Operands part(int64_t from, int64_t size) const {
    Operands some = *this;
    some.n = size;
    for (int i = 0; i < count; ++i) some.data[i] += from * steps[i];
    return some;
  }
};

// The commonest loops, without what the others need: results are rows without gaps that lie over inputs wholly or not
// at all; inputs are such rows, or few elements, which are packed. False: it is another loop.
bool ElementwiseCall::run_row(const LoopForm& form, char* const* data, int64_t n, const int64_t* steps) const {
  const int n_in = n_inputs(), count = n_in + n_outputs();
  if (copies_ || form.reads_bools || n > (int64_t{1} << 40)) return false;
  bool packed[kMostOperands];
  for (int i = 0; i < count; ++i) {
    packed[i] = n > 1 && steps[i] != form.items[i];
    if (packed[i] && (i >= n_in || n > kStridedFrom)) return false;
  }
  int shared[kMostOperands];  // the first operand in the same place, whose tensor it is as well
  for (int i = 0; i < count; ++i) {
    shared[i] = i;
    const char* const end = data[i] + n * form.items[i];
    for (int k = 0; k < i; ++k) {
      if (!packed[k] && (data[k] >= end || data[i] >= data[k] + n * form.items[k])) continue;
      const bool same = !packed[i] && !packed[k] && data[i] == data[k] && form.same_dtype(i, k);
      if (same && shared[i] == i) shared[i] = k;
      if (i < n_in || (same && k < n_in)) continue;
      if (overlap(data[i], steps[i], form.items[i], data[k], steps[k], form.items[k], n)) return false;
    }
  }
  const Scratch scratch;
  bp_value operands[kMostOperands];
  for (int i = 0; i < count; ++i) {
    const bp_dtype dtype = form.dtypes[static_cast<size_t>(i)];
    char* row = data[i];
    if (packed[i]) {
      row = scratch.buffer(i);
      copy_strided(row, form.items[i], data[i], steps[i], n, form.items[i]);
    }
    operands[i] = shared[i] != i ? operands[shared[i]]
                                 : value(scratch.tensor(i).point(row, Shape(&n, 1), {}, dtype,
                                                                 i < n_in ? Lent::kChanged : Lent::kOverwritten));
  }
  call(operands, operands + n_in);
  for (int i = 0; i < count; ++i) check_lent(scratch.tensor(i).is_kept());
  return true;
}

void ElementwiseCall::check_lent(bool is_kept) const {
  BP_CHECK(!is_kept, NOT_IMPLEMENTED, def_->name,
           ": its kernel keeps a tensor, whose memory NumPy only lends. Fix: call it with tensors, or by "
           "backplane.numpy.function");
}

void ElementwiseCall::run(const LoopForm& form, char* const* data, int64_t n, const int64_t* steps) const {
  if (n <= 0) return;
  bp_frame below;  // NumPy's arrays are constants to the transforms of this thread
  below.keys = ~uint64_t{0};
  const KernelScope scope(below);
  if (run_row(form, data, n, steps)) return;
  Operands all{form.dtypes, n_inputs() + n_outputs(), n, {}, {}, {}};
  for (int i = 0; i < all.count; ++i) {
    all.data[i] = data[i];
    all.items[i] = form.items[i];
    all.steps[i] = n == 1 ? all.items[i] : steps[i];
  }
  if (n == 1) return run_block(all);
  bool in_order = false;
  for (int out = n_inputs(); out < all.count; ++out) {
    in_order = in_order || all.steps[out] == 0;
    for (int i = 0; i < out; ++i) in_order = in_order || (!all.same_place(i, out) && all.meet(i, out));
  }
  if (!in_order) return run_block(all);
  const bool folds = all.count == 3 && n >= kAxisFrom && form.dtypes[0] == form.dtypes[2] &&
                     all.steps[0] == all.steps[2] && !all.meet(1, 2) && all.steps[1] % all.items[1] == 0;
  const bool one_dtype = folds && form.dtypes[1] == form.dtypes[2];
  if (folds && reduction_ && all.steps[2] == 0 && all.data[0] == all.data[2]) return reduce(all);
  if (one_dtype && scan_ && all.steps[2] != 0 && all.data[0] + all.steps[0] == all.data[2]) return accumulate(all);
  run_in_order(all);
}

void ElementwiseCall::run_in_order(const Operands& all) const {
  Operands one = all.part(0, 1);
  for (int i = 0; i < all.count; ++i) one.steps[i] = all.items[i];
  for (int64_t k = 0; k < all.n; ++k) {
    run_block(one);
    for (int i = 0; i < all.count; ++i) one.data[i] += all.steps[i];
  }
}

// Each call has tensors of its own, which the kernel may keep.
void ElementwiseCall::run_on_copies(const Operands& all) const {
  const auto bytes_of = [](const Tensor& t) { return static_cast<char*>(t.get()->dl.data) + t.get()->dl.byte_offset; };
  std::vector<Tensor> inputs;
  bp_value values[kMostOperands], outs[kMostOperands];
  for (int i = 0; i < n_inputs(); ++i) {
    const bp_dtype dtype = all.dtypes[static_cast<size_t>(i)];
    const Tensor& made = inputs.emplace_back(empty(Shape(&all.n, 1), dtype, parse_device("cpu")));
    char* const bytes = bytes_of(made);
    copy_strided(bytes, all.items[i], all.data[i], all.steps[i], all.n, all.items[i]);
    if (dtype == BP_BOOL)
      for (int64_t k = 0; k < all.n; ++k) bytes[k] = bytes[k] != 0;
    values[i] = value(made);
  }
  call(values, outs, false);
  std::vector<Tensor> results;  // all of them first, so that none is lost
  for (int i = 0; i < n_outputs(); ++i) results.push_back(Tensor::adopt(outs[i].u.t));
  for (int i = 0; i < n_outputs(); ++i) {
    const int to = n_inputs() + i;
    const Tensor& result = results[static_cast<size_t>(i)];
    copy_strided(all.data[to], all.steps[to], bytes_of(result), result.strides()[0] * all.items[to], all.n,
                 all.items[to]);
  }
}

void ElementwiseCall::run_block(const Operands& all) const {
  if (copies_) return run_on_copies(all);
  bool packed[kMostOperands], broken = false, repeated = true;
  for (int i = 0; i < all.count; ++i) {
    const bool whole = all.steps[i] % all.items[i] == 0;
    const int64_t stride = whole ? all.steps[i] / all.items[i] : 0;
    const bool bad_bools = i < n_inputs() && all.dtypes[static_cast<size_t>(i)] == BP_BOOL &&
                           !are_bools(all.data[i], Shape(&all.n, 1), Shape(&stride, 1));
    broken = broken || !whole || bad_bools;
    packed[i] = !whole || bad_bools || (stride != 1 && all.n <= kStridedFrom);
    if (i < n_inputs()) repeated = repeated && stride == 0 && !packed[i];
  }
  if (broken && all.n > kPiece) {
    for (int64_t from = 0; from < all.n; from += kPiece) run_block(all.part(from, std::min(kPiece, all.n - from)));
    return;
  }
  const Scratch scratch;
  const Tensor* tensors[kMostOperands];
  const int64_t one = 1;
  const auto shared_with = [&](int i, int end) {  // the first operand before `end` in the same place
    int k = 0;
    while (k < end && (k == i || packed[k] || packed[i] || !all.same_place(k, i))) ++k;
    return k;
  };
  for (int i = 0; i < all.count; ++i) {
    const bp_dtype dtype = all.dtypes[static_cast<size_t>(i)];
    if (packed[i]) {
      char* buffer = scratch.buffer(i);
      if (i < n_inputs()) {
        copy_strided(buffer, all.items[i], all.data[i], all.steps[i], all.n, all.items[i]);
        if (dtype == BP_BOOL)
          for (int64_t k = 0; k < all.n; ++k) buffer[k] = buffer[k] != 0;
      }
      tensors[i] = &scratch.tensor(i).point(buffer, Shape(&all.n, 1), {}, dtype,
                                            i < n_inputs() ? Lent::kRead : Lent::kOverwritten);
      continue;
    }
    const int shared = shared_with(i, i);
    if (shared < i) {
      tensors[i] = tensors[shared];
      continue;
    }
    const int64_t stride = all.steps[i] / all.items[i];
    const bool is_one = stride == 0 && !repeated;
    const bool row_major = stride == 1 || is_one;
    tensors[i] = &scratch.tensor(i).point(all.data[i], Shape(is_one ? &one : &all.n, 1),
                                          row_major ? Shape() : Shape(&stride, 1), dtype,
                                          i >= n_inputs()                         ? Lent::kOverwritten
                                          : shared_with(i, all.count) < all.count ? Lent::kChanged
                                                                                  : Lent::kRead);
  }
  bp_value inputs[kMostOperands], outs[kMostOperands];
  for (int i = 0; i < n_inputs(); ++i) inputs[i] = value(*tensors[i]);
  for (int i = 0; i < n_outputs(); ++i) outs[i] = value(*tensors[n_inputs() + i]);
  call(inputs, outs);
  for (int i = 0; i < all.count; ++i) {
    check_lent(scratch.tensor(i).is_kept());
    if (i >= n_inputs() && packed[i])
      copy_strided(all.data[i], all.steps[i], scratch.buffer(i), all.items[i], all.n, all.items[i]);
  }
}

void ElementwiseCall::reduce(const Operands& all) const {
  const Scratch scratch;
  const int64_t stride = all.steps[1] / all.items[1];
  const Tensor& x =
      scratch.tensor(1).point(all.data[1], Shape(&all.n, 1), Shape(&stride, 1), all.dtypes[1], Lent::kRead);
  const Tensor sum = reduction_(x, 0, all.dtypes[2]);
  const Tensor& total = scratch.tensor(0).point(all.data[0], {}, {}, all.dtypes[0], Lent::kChanged);
  const bp_value inputs[] = {value(total), value(sum)};
  bp_value out = value(total);
  call(inputs, &out);
}

void ElementwiseCall::accumulate(const Operands& all) const {
  const Scratch scratch;
  const int64_t one = 1, stride = all.steps[1] / all.items[1];
  const Tensor& x =
      scratch.tensor(1).point(all.data[1], Shape(&all.n, 1), Shape(&stride, 1), all.dtypes[1], Lent::kRead);
  const Tensor sums = scan_(x, 1, all.dtypes[2]);
  const Tensor& first = scratch.tensor(0).point(all.data[0], Shape(&one, 1), {}, all.dtypes[0], Lent::kRead);
  const int64_t out_stride = all.steps[2] / all.items[2];
  const Tensor& result =
      scratch.tensor(2).point(all.data[2], Shape(&all.n, 1), Shape(&out_stride, 1), all.dtypes[2], Lent::kOverwritten);
  const bp_value inputs[] = {value(first), value(sums)};
  bp_value out = value(result);
  call(inputs, &out);
}

void ElementwiseCall::call(const bp_value* inputs, bp_value* outs, bool given_outs) const {
  for (int i = 0; i < n_outputs(); ++i) {
    if (!given_outs) outs[i] = bp_value{};
    outs[i].flags = given_outs ? BP_VALUE_GIVEN : 0;
  }
  bp_value args[kMostArguments];
  const bp_value* given = inputs;
  if (!only_inputs_) {
    std::copy(args_.begin(), args_.end(), args);
    for (size_t k = 0; k < places_.size(); ++k) args[places_[k]] = inputs[k];
    given = args;
  }
  if (const bp_status status = call_packed(op_, given, static_cast<int32_t>(args_.size()), outs, n_outputs()))
    throw_last_error(status);
}

}  // namespace backplane::numpy
