// Rows of elementwise ops that take no loop descriptor: what the core hands to the obvious loop, for (i < count)
// out[i] = f(a[i], b[i]), which knows of no broadcasting.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "backplane/registration.hpp"
#include "call/dispatch.hpp"
#include "host_backend.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::tensor;
using testing::values;

struct Seen {
  int calls = 0;
  bool full = true;        // all operands had the result's shape
  bool contiguous = true;  // and lay as it does
};

const double* elements(const bp_tensor& t) {
  return reinterpret_cast<const double*>(static_cast<const char*>(t.dl.data) + t.dl.byte_offset);
}

bool same_form(const bp_tensor& a, const bp_tensor& b) {
  return a.dl.ndim == b.dl.ndim && std::equal(a.dl.shape, a.dl.shape + a.dl.ndim, b.dl.shape);
}

// out = 100 a + 10 b + c. The walk is over memory, as the row's flags promise it, and not over any shape but the
// result's.
bp_status obvious(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t) {
  auto& seen = *static_cast<Seen*>(frame->context);
  ++seen.calls;
  const bp_tensor& out = *outs[0].u.t;
  for (int32_t k = 0; k < n_args; ++k) {
    if (args[k].tag != BP_TAG_TENSOR) return BP_ERROR_INTERNAL;
    seen.full = seen.full && same_form(*args[k].u.t, out);
    seen.contiguous = seen.contiguous && (args[k].u.t->flags & BP_TENSOR_CONTIGUOUS);
  }
  const auto count = static_cast<int64_t>(out.nbytes / sizeof(double));
  if (!seen.full) {
    std::memset(const_cast<double*>(elements(out)), 0, out.nbytes);
    return BP_OK;
  }
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int32_t k = 0; k < n_args; ++k) {
      const DLTensor& dl = args[k].u.t->dl;
      int64_t at = 0, rest = i;
      for (int32_t d = dl.ndim; d-- > 0; rest /= dl.shape[d]) at += rest % dl.shape[d] * dl.strides[d];
      sum = 10 * sum + elements(*args[k].u.t)[seen.contiguous ? i : at];
    }
    const_cast<double*>(elements(out))[i] = sum;
  }
  return BP_OK;
}

class ElementwiseRows : public ::testing::TestWithParam<uint32_t> {
 protected:
  OpHandle define(const char* name, int tensors, uint32_t flags, int64_t max_elements = 0) {
    testing::null_backend();
    ToyRecord toy(name);
    for (const char* arg : {"a", "b", "c"})
      if (tensors-- > 0) toy.arg(arg);
    toy.flags = BP_OP_ELEMENTWISE | BP_OP_INPLACE | BP_OP_OUT;
    bp_kernel_def row = testing::kernel_row(name, "null", obvious);
    row.context = &seen;
    row.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
    row.flags = flags;
    row.max_elements = max_elements;
    return registration.define(toy.def(), {&row, 1});
  }
  Seen seen;
  Registration registration{"test"};
};

Tensor filled(const Ints& shape, double from) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  std::vector<double> data(static_cast<size_t>(count));
  for (double& x : data) x = from++;
  return from_host(data.data(), shape, {}, BP_FLOAT64, testing::null_backend());
}

// The same by null's `add` and `multiply`, whose rows take a loop descriptor.
Tensor expected(std::initializer_list<bp_value> operands) {
  Tensor sum;
  for (const bp_value& x : operands)
    sum = sum ? testing::op("add", {value(testing::op("multiply", {value(sum), number(value(10.0))})), x})
              : testing::op("multiply", {x, number(value(1.0))});
  return sum;
}

// All shapes of up to three axes of the sizes 0, 1, 2, 3.
std::vector<Ints> shapes() {
  std::vector<Ints> all{{}};
  for (size_t begin = 0, end = 1; all.front().empty() && all.back().size() < 3; begin = end, end = all.size())
    for (size_t i = begin; i < end; ++i)
      for (const int64_t size : {0, 1, 2, 3}) {
        Ints longer = all[i];
        longer.push_back(size);
        all.push_back(std::move(longer));
      }
  return all;
}

bool broadcast(const Ints& a, const Ints& b) {
  for (size_t d = 0; d < std::min(a.size(), b.size()); ++d) {
    const int64_t x = a[a.size() - 1 - d], y = b[b.size() - 1 - d];
    if (x != y && x != 1 && y != 1) return false;
  }
  return true;
}

TEST_P(ElementwiseRows, SeeOperandsOfTheResultsShape) {
  const OpHandle op = define("toy::obvious2", 2, GetParam());
  int pairs = 0;
  for (const Ints& a : shapes())
    for (const Ints& b : shapes()) {
      if (!broadcast(a, b)) continue;
      ++pairs;
      const Tensor x = filled(a, 1), y = filled(b, 5);
      const Tensor result = backplane::call(op, {value(x), value(y)});
      ASSERT_TRUE(seen.full) << ::testing::PrintToString(a) << " and " << ::testing::PrintToString(b);
      ASSERT_EQ(values(result), values(expected({value(x), value(y)})));
    }
  EXPECT_EQ(seen.calls, pairs);
  EXPECT_TRUE(seen.contiguous || (GetParam() & BP_KERNEL_STRIDED));
}

TEST_P(ElementwiseRows, SeeThreeOperandsNumbersAndViewsSo) {
  const OpHandle op = define("toy::obvious3", 3, GetParam());
  const Tensor x = filled({2, 1, 3}, 1), y = filled({4, 1}, 7), z = filled({3}, 2);
  EXPECT_EQ(values(backplane::call(op, {value(x), value(y), value(z)})),
            values(expected({value(x), value(y), value(z)})));
  const bp_value two = number(value(2.0));
  EXPECT_EQ(values(backplane::call(op, {value(x), two, value(z)})), values(expected({value(x), two, value(z)})));
  const Ints axes{0}, from{1}, to{3}, step{2};
  const Tensor part = testing::op(
      "slice", {value(filled({3}, 4)), value(Shape(axes)), value(Shape(from)), value(Shape(to)), value(Shape(step))});
  EXPECT_EQ(values(backplane::call(op, {value(part), value(y), value(x)})),
            values(expected({value(part), value(y), value(x)})));
  EXPECT_TRUE(seen.full);
}

TEST_P(ElementwiseRows, SeeThemSoInPlaceAndIntoOutputs) {
  const OpHandle op = define("toy::obvious_in_place", 2, GetParam() | BP_KERNEL_INPLACE);
  Tensor x = filled({2, 3}, 1), row = testing::select(filled({2}, 1), 0, 1);
  const std::vector<double> wanted = values(expected({value(x), value(row)}));
  bp_value args[] = {value(x), value(row)};
  ASSERT_EQ(call_inplace(op, args, 2), BP_OK) << last_error();
  EXPECT_EQ(values(x), wanted);
  // An operand that is a part of the output is read before it is written.
  Tensor y = filled({3}, 1);
  const Ints axes{0}, from{2}, to{3}, step{1};
  const Tensor last =
      testing::op("slice", {value(y), value(Shape(axes)), value(Shape(from)), value(Shape(to)), value(Shape(step))});
  const std::vector<double> second = values(expected({value(y), value(last)}));
  bp_value pair[] = {value(y), value(last)};
  ASSERT_EQ(call_inplace(op, pair, 2), BP_OK) << last_error();
  EXPECT_EQ(values(y), second);
  EXPECT_TRUE(seen.full);
}

TEST_P(ElementwiseRows, HaveALimitOfElementsThatHoldsForTheBroadcastOperands) {
  const OpHandle op = define("toy::obvious_limited", 2, GetParam(), 4);
  backplane::call(op, {value(filled({2, 1}, 1)), value(filled({2}, 1))});
  EXPECT_EQ(seen.calls, 1);
  EXPECT_NE(error_of([&] {
              backplane::call(op, {value(filled({3, 1}, 1)), value(filled({2}, 1))});
            }).find("takes at most 4 elements"),
            std::string::npos);
  EXPECT_EQ(seen.calls, 1);
}

INSTANTIATE_TEST_SUITE_P(Layouts, ElementwiseRows, ::testing::Values(0u, uint32_t{BP_KERNEL_STRIDED}),
                         [](const auto& info) { return info.param ? "Strided" : "Contiguous"; });

TEST_F(ElementwiseRows, ThatBroadcastThemselvesSeeWhatWasGiven) {
  const OpHandle op = define("toy::own_broadcast", 2, BP_KERNEL_BROADCASTS);
  backplane::call(op, {value(filled({3, 1}, 1)), value(filled({2}, 1))});
  EXPECT_EQ(seen.calls, 1);
  EXPECT_FALSE(seen.full);
}

}  // namespace
}  // namespace backplane::core
