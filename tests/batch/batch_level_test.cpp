// Batching: vmap is a loop over the rows, for every axis of every argument, in any nesting, and what must be refused.
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/registration.hpp"
#include "backplane/transforms.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"

namespace backplane::testing {
namespace {

using Axes = std::vector<std::optional<int32_t>>;
using Ints = std::vector<int64_t>;

bp_value ints(const Ints& list) { return value(Shape(list)); }
Tensor permuted(const Tensor& t, const Ints& axes) { return op("permute_dims", {value(t), ints(axes)}); }
Tensor reshaped(const Tensor& t, const Ints& shape) { return op("reshape", {value(t), ints(shape)}); }
Tensor expanded(const Tensor& t, const Ints& shape) { return op("broadcast_to", {value(t), ints(shape)}); }
Tensor summed(const Tensor& t, const Ints& axes) { return op("sum", {value(t), ints(axes)}); }
Tensor squeezed(const Tensor& t, const Ints& axes) { return op("squeeze", {value(t), ints(axes)}); }
Tensor unsqueezed(const Tensor& t, const Ints& axes) { return op("expand_dims", {value(t), ints(axes)}); }
Tensor moved(const Tensor& t, int64_t from, int64_t to) { return op("moveaxis", {value(t), value(from), value(to)}); }
Tensor counting(const Ints& shape) {
  int64_t n = 1;
  for (int64_t size : shape) n *= size;
  std::vector<double> data(static_cast<size_t>(n));
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = std::sin(1.0 + static_cast<double>(i)) + 0.1 * static_cast<double>(i);
  return from_host(data.data(), Shape(shape), {}, BP_FLOAT64, null_backend());
}
std::vector<double> data_of(const Tensor& t) { return values(op("copy", {value(t)})); }
Ints shape_of(const Tensor& t) { return {t.shape().begin(), t.shape().end()}; }

Tensor batched(const Function& f, const std::vector<Tensor>& args, const Axes& axes, int32_t out = 0) {
  int64_t size = 0;
  for (size_t i = 0; i < args.size(); ++i)
    if (axes[i]) size = args[i].shape()[static_cast<size_t>(*axes[i] < 0 ? *axes[i] + args[i].ndim() : *axes[i])];
  BatchScope scope(size);
  std::vector<Tensor> entered;
  for (size_t i = 0; i < args.size(); ++i) entered.push_back(axes[i] ? scope.enter(args[i], *axes[i]) : args[i]);
  return scope.leave(f(entered)[0], out);
}

// One row of a batched result against the function of the row.
void expect_loop(const Function& f, const std::vector<Tensor>& args, const Axes& axes) {
  Tensor all = batched(f, args, axes);
  for (int64_t row = 0; row < all.shape()[0]; ++row) {
    std::vector<Tensor> rows;
    for (size_t i = 0; i < args.size(); ++i) rows.push_back(axes[i] ? select(args[i], *axes[i], row) : args[i]);
    Tensor one = f(rows)[0], found = select(all, 0, row);
    EXPECT_EQ(shape_of(found), shape_of(one));
    const std::vector<double> a = data_of(found), b = data_of(one);
    ASSERT_EQ(a.size(), b.size());
    for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-12);
  }
}
void expect_loop(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  for (int32_t axis = 0; axis < x.ndim(); ++axis)
    expect_loop([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {x}, {axis});
}
void expect_loop(const std::function<Tensor(const Tensor&, const Tensor&)>& f, const Tensor& x, const Tensor& y) {
  const Function g = [&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0], in[1])}; };
  for (int32_t a = 0; a < x.ndim(); ++a) {
    expect_loop(g, {x, y}, {a, std::nullopt});
    for (int32_t b = 0; b < y.ndim(); ++b) {
      if (a == 0) expect_loop(g, {x, y}, {std::nullopt, b});
      if (x.shape()[static_cast<size_t>(a)] == y.shape()[static_cast<size_t>(b)]) expect_loop(g, {x, y}, {a, b});
    }
  }
}

void expect_error(const std::function<void()>& body, const std::vector<std::string>& words) {
  try {
    body();
    FAIL() << "no error that says " << words[0];
  } catch (const Error& error) {
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

TEST(BatchLevel, ElementwiseOpsAlignRowsOfAnyRank) {
  expect_loop(add, counting({3, 3}), counting({3}));
  expect_loop(add, counting({3}), counting({3, 3}));
  expect_loop(add, counting({3, 3, 3}), counting({3, 3}));
  expect_loop(multiply, counting({3}), counting({3, 3, 3}));
  const Function product = [](std::span<const Tensor> in) { return std::vector<Tensor>{multiply(in[0], in[1])}; };
  expect_loop(product, {counting({2, 1, 3}), counting({3, 2, 1})}, {0, 1});
  expect_loop(product, {counting({2, 1, 3}), counting({2, 4, 1})}, {0, 0});
  expect_loop(product, {counting({2, 1, 3}), counting({2, 4, 1})}, {0, std::nullopt});
  expect_loop(exp, counting({2, 3}));
}

TEST(BatchLevel, ReductionsCountTheAxesOfARow) {
  expect_loop(sum, counting({2, 3, 4}));
  for (const Ints& axes : {Ints{0}, Ints{-1}, Ints{1, 0}, Ints{}})
    expect_loop([&](const Tensor& x) { return summed(x, axes); }, counting({2, 3, 4}));
  expect_loop([](const Tensor& x) { return sum(x); }, counting({3}));
}

TEST(BatchLevel, Views) {
  expect_loop([](const Tensor& x) { return permuted(x, {-1, 0}); }, counting({2, 3, 4}));
  expect_loop([](const Tensor& x) { return reshaped(x, {-1}); }, counting({2, 3, 4}));
  expect_loop([](const Tensor& x) { return reshaped(x, {2, 3, 1}); }, counting({6, 6}));
  expect_loop([](const Tensor& x) { return expanded(x, {2, 3, 3}); }, counting({3, 3}));
  expect_loop([](const Tensor& x) { return select(x, -1, -1); }, counting({2, 3, 4}));
  expect_loop([](const Tensor& x) { return squeezed(unsqueezed(x, {0, -1}), {-1}); }, counting({2, 3}));
  expect_loop([](const Tensor& x) { return op("diagonal", {value(x)}); }, counting({3, 3, 3}));
  expect_loop(
      [](const Tensor& x) {
        return op("diagonal", {value(x), value(int64_t{1}), value(int64_t{1}), value(int64_t{0})});
      },
      counting({3, 4, 5}));
  expect_loop(
      [](const Tensor& x) {
        return op("unfold", {value(x), value(int64_t{-1}), value(int64_t{2})});
      },
      counting({3, 4, 3}));
  expect_loop([](const Tensor& x) { return moved(x, 0, -1); }, counting({2, 3, 4}));
  expect_loop(
      [](const Tensor& x) {
        return op("slice", {value(x), ints({-1}), ints({1}), ints({3}), ints({1})});
      },
      counting({3, 4, 3}));
}

TEST(BatchLevel, TheBatchGoesToTheOutAxis) {
  const Function f = [](std::span<const Tensor> in) { return std::vector<Tensor>{exp(in[0])}; };
  Tensor x = counting({2, 3, 4});
  for (int32_t out = -3; out < 3; ++out) {
    Tensor expected = moved(exp(moved(x, 1, 0)), 0, out);
    Tensor found = batched(f, {x}, {1}, out);
    EXPECT_EQ(shape_of(found), shape_of(expected));
    EXPECT_EQ(data_of(found), data_of(expected));
  }
}

TEST(BatchLevel, AResultThatIsTheSameForAllRowsIsRepeated) {
  Tensor x = counting({3}), c = counting({2});
  Tensor found = batched([&](std::span<const Tensor>) { return std::vector<Tensor>{exp(c)}; }, {x}, {0}, 1);
  EXPECT_EQ(shape_of(found), (Ints{2, 3}));
  EXPECT_EQ(data_of(found)[1], std::exp(values(c)[0]));
}

TEST(BatchLevel, NestedBatches) {
  // Rows of rows: the outer function batches over axis 1 of its argument, and passes the other argument whole.
  Tensor x = counting({3, 3, 3}), y = counting({3, 3});
  expect_loop(
      [](const Tensor& a, const Tensor& b) {
        return batched(
            [&](std::span<const Tensor> in) {
              return std::vector<Tensor>{
                  batched([&](std::span<const Tensor> inner) { return std::vector<Tensor>{multiply(inner[0], b)}; },
                          {in[0]}, {0}, 1)};
            },
            {a}, {1}, -1);
      },
      x, y);
}

TEST(BatchLevel, ABatchOfNone) {
  Tensor none = counting({0, 3});
  Tensor found = batched([](std::span<const Tensor> in) { return std::vector<Tensor>{sum(exp(in[0]))}; }, {none}, {0});
  EXPECT_EQ(shape_of(found), (Ints{0}));
}

// ---- with gradients ----

Tensor gradient(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  return value_and_grad([&](std::span<const Tensor> in) { return std::vector<Tensor>{f(in[0])}; }, {&x, 1})
      .gradients[0];
}
Tensor loss(const Tensor& x) { return sum(multiply(exp(x), reshaped(summed(multiply(x, x), {0}), {1}))); }

TEST(BatchLevel, PerRowGradients) {
  expect_loop([](const Tensor& x) { return gradient(loss, x); }, counting({3, 4}));
}

TEST(BatchLevel, TheGradientOfABatch) {
  // The gradient of the sum of the losses of the rows is the gradient of each.
  Tensor x = counting({3, 4});
  const Function rows = [](std::span<const Tensor> in) { return std::vector<Tensor>{loss(in[0])}; };
  Tensor whole = gradient([&](const Tensor& t) { return sum(batched(rows, {t}, {0})); }, x);
  Tensor each =
      batched([](std::span<const Tensor> in) { return std::vector<Tensor>{gradient(loss, in[0])}; }, {x}, {0});
  for (size_t i = 0; i < 12; ++i) EXPECT_NEAR(data_of(whole)[i], data_of(each)[i], 1e-12);
}

TEST(BatchLevel, ForwardModeOfABatchAndBatchOfForwardMode) {
  Tensor x = counting({3, 4}), t = counting({3, 4});
  const auto forward = [](const Tensor& at, const Tensor& along) {
    return jvp([](std::span<const Tensor> in) { return std::vector<Tensor>{loss(in[0])}; }, {&at, 1}, {&along, 1})
        .tangents[0];
  };
  const Function pushed = [&](std::span<const Tensor> in) { return std::vector<Tensor>{forward(in[0], in[1])}; };
  for (const Axes& axes : {Axes{0, 0}, Axes{1, 1}}) expect_loop(pushed, {x, t}, axes);
  const Function rows = [](std::span<const Tensor> in) { return std::vector<Tensor>{loss(in[0])}; };
  Tensor outer = jvp([&](std::span<const Tensor> in) { return std::vector<Tensor>{batched(rows, {in[0]}, {0})}; },
                     {&x, 1}, {&t, 1})
                     .tangents[0];
  Tensor inner = batched(pushed, {x, t}, {0, 0});
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(data_of(outer)[i], data_of(inner)[i], 1e-12);
}

// ---- in-place changes ----

void add_in_place(const Tensor& x, const Tensor& y) {
  bp_value args[] = {value(x), value(y)};
  if (bp_status status = call_inplace(find_op("bp::add"), args, 2)) throw_last_error(status);
}

TEST(BatchLevel, ATensorMadeInsideTakesBatchedWrites) {
  Tensor x = counting({3, 4});
  const auto f = [](const Tensor& row) {
    Tensor total = op("zeros_like", {value(row)});
    add_in_place(total, row);
    add_in_place(total, exp(row));
    return total;
  };
  expect_loop(f, x);
  const auto zeros = [](const Tensor& row) {
    Tensor total = op("full", {ints({4}), value(0.0), dtype_value(BP_FLOAT64)});
    add_in_place(total, row);
    return total;
  };
  expect_loop([&](const Tensor& row) { return zeros(row); }, counting({4, 4}));
}

TEST(BatchLevel, AWriteIntoABatchedInputStaysInside) {
  Tensor x = counting({3, 4});
  const std::vector<double> before = values(x);
  Tensor found = batched(
      [](std::span<const Tensor> in) {
        add_in_place(in[0], in[0]);
        return std::vector<Tensor>{in[0]};
      },
      {x}, {0});
  EXPECT_EQ(values(x), before);
  EXPECT_EQ(data_of(found)[5], 2 * before[5]);
}

TEST(BatchLevel, ACapturedTensorRefusesABatchedWrite) {
  Tensor x = counting({3, 4}), captured = counting({4});
  expect_error(
      [&] {
        batched(
            [&](std::span<const Tensor> in) {
              add_in_place(captured, in[0]);
              return std::vector<Tensor>{captured};
            },
            {x}, {0});
      },
      {"vmap", "copy(x) or x.clone()"});
}

// ---- errors ----

Tensor identity_row(std::span<const Tensor> in) { return exp(in[0]); }

TEST(BatchLevel, ErrorsNameTransformArgumentFoundAndExpected) {
  Tensor x = counting({3, 4}), y = counting({2, 4}), s = scalar(1);
  const Function f = [](std::span<const Tensor> in) { return std::vector<Tensor>{identity_row(in)}; };
  const std::vector<Tensor> both = {x, y};
  expect_error([&] { vmap(f, both); }, {"vmap", "argument 1", "size 2", "expected 3"});
  expect_error([&] { vmap(f, {&s, 1}); }, {"vmap", "axis 0", "argument 0"});
  expect_error([&] { vmap(f, {}); }, {"vmap", "no input"});
  expect_error([&] { BatchScope(-1); }, {"vmap", "-1"});
  expect_error([&] { BatchScope(4).enter(x, 2); }, {"axis 2", "argument 0", "2 dims"});
  BatchScope scope(3);
  Tensor in = scope.enter(x, 0);
  expect_error([&] { scope.leave(in, std::nullopt); }, {"vmap", "result 0", "row to row"});
  expect_error([&] { scope.leave(in, 2); }, {"out axis 2", "2 dims"});
  EXPECT_EQ(shape_of(scope.leave(x, std::nullopt)), (Ints{3, 4}));
}

TEST(BatchLevel, ErrorsSpeakOfTheShapesOfARow) {
  Tensor x = counting({3, 4}), y = counting({3, 5});
  const Function sums = [](std::span<const Tensor> in) { return std::vector<Tensor>{add(in[0], in[1])}; };
  expect_error([&] { batched(sums, {x, y}, {0, 0}); }, {"add", "(5,)", "(4,)"});
  expect_error(
      [&] { batched([](std::span<const Tensor> in) { return std::vector<Tensor>{summed(in[0], {1})}; }, {x}, {0}); },
      {"sum", "axis 1", "1 dim"});
  expect_error(
      [&] { batched([](std::span<const Tensor> in) { return std::vector<Tensor>{reshaped(in[0], {3})}; }, {x}, {0}); },
      {"reshape", "(4,)", "(3,)"});
}

TEST(BatchLevel, AnOpWhoseShapeDependsOnValuesIsRefused) {
  Tensor x = counting({3, 4});
  for (const char* name : {"argwhere"})
    expect_error(
        [&] {
          batched([&](std::span<const Tensor> in) { return std::vector<Tensor>{op(name, {value(in[0])})}; }, {x}, {0});
        },
        {name, "vmap", "depends on the values"});
  expect_error(
      [&] {
        batched(
            [&](std::span<const Tensor> in) {
              return std::vector<Tensor>{op("masked_select", {value(in[0]), value(in[0])})};
            },
            {x}, {0});
      },
      {"masked_select", "vmap", "depends on the values"});
}

TEST(BatchLevel, AnEscapedTensorIsAnError) {
  Tensor x = counting({3}), kept;
  batched([&](std::span<const Tensor> in) { return std::vector<Tensor>{kept = exp(in[0])}; }, {x}, {0});
  expect_error([&] { exp(kept); }, {"exp", "vmap", "return it"});
}

TEST(BatchLevel, RandomNumbersNeedAPolicy) {
  Tensor x = counting({3});
  const bp_generator_state state{1, 0};
  bp_value generator{};
  generator.tag = BP_TAG_GENERATOR;
  generator.u.g = &state;
  expect_error(
      [&] {
        vmap(
            [&](std::span<const Tensor> in) {
              op("random_bits", {ints({4}), dtype_value(BP_UINT32), bp_value{}, generator});
              return std::vector<Tensor>{in[0]};
            },
            {&x, 1});
      },
      {"vmap", "random_bits", "randomness='different'"});
}

// ---- the registry's rules ----

bool codegen_derived(const bp_op_def& op) {
  for (uint32_t i = 0; i < op.formulas.count; ++i) {
    const auto& f = *reinterpret_cast<const bp_formula*>(static_cast<const char*>(op.formulas.data) +
                                                         uint64_t{i} * op.formulas.stride);
    if (f.rule == BP_RULE_BATCH) return (f.flags & BP_FORMULA_DERIVED) && !(f.flags & BP_FORMULA_REFUSED);
  }
  return false;
}

// What codegen put into the record is what runs.
TEST(BatchLevel, EveryEntryHasARule) {
  null_backend();
  int loops = 0, batching = 0;
  for (OpHandle handle : all_ops()) {
    const std::string rule = batch_rule(handle);
    EXPECT_NE(rule, "missing") << op_def(handle).name;
    EXPECT_EQ(rule == "derived", codegen_derived(op_def(handle))) << op_def(handle).name;
    if (rule == "creation" || rule == "refused") continue;
    ++batching;
    loops += rule == "loop";
  }
  EXPECT_LE(loops * 100, batching * 3);
}

// A record that is filled by hand says itself that its rule follows from its shape: nothing is derived from the word.
TEST(BatchLevel, ARecordSaysWhetherItsRuleFollows) {
  const auto rule_of = [](const char* name, bool says) {
    core::ToyRecord toy(name);
    toy.tensors({"x", "y"});
    if (says) toy.formula(BP_RULE_BATCH, {}, {}, BP_FORMULA_DERIVED);
    Registration registration(name);
    return std::string(batch_rule(registration.define(toy.def(), {}, nullptr)));
  };
  EXPECT_EQ(rule_of("toy::silent", false), "missing");
  EXPECT_EQ(rule_of("toy::says", true), "derived");
}

}  // namespace
}  // namespace backplane::testing
