// Laws of the eager tape: gradients, accumulation, versions, hooks, in-place changes, and graphs of very many nodes.
#include <gtest/gtest.h>

#include <cmath>

#include "backplane/autograd.hpp"
#include "memory/tensors/history.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

Tensor variable(std::initializer_list<double> v, std::initializer_list<int64_t> shape) {
  Tensor t = tensor(v, shape);
  set_requires_grad(t, true);
  return t;
}

void run_backward_from(const Tensor& root, BackwardOptions options = {}) { backward({&root, 1}, {}, options); }

std::vector<double> grad(const Tensor& t) { return values(grad_of(t)); }

TEST(Tape, ProductRule) {
  Tensor a = variable({2, 3}, {2}), b = variable({5, 7}, {2});
  run_backward_from(sum(multiply(a, b)));
  EXPECT_EQ(grad(a), (std::vector<double>{5, 7}));
  EXPECT_EQ(grad(b), (std::vector<double>{2, 3}));
}

TEST(Tape, BroadcastArgumentsAreSummedBack) {
  Tensor a = variable({2, 3}, {2, 1}), b = variable({5, 7, 1}, {3});
  run_backward_from(sum(multiply(a, b)));
  EXPECT_EQ(grad(a), (std::vector<double>{13, 13}));
  EXPECT_EQ(grad(b), (std::vector<double>{5, 5, 5}));
}

TEST(Tape, GradientsAccumulateOverUsesAndPasses) {
  Tensor a = variable({3}, {1});
  run_backward_from(sum(add(multiply(a, a), a)));
  EXPECT_EQ(grad(a), (std::vector<double>{7}));
  run_backward_from(sum(a));
  EXPECT_EQ(grad(a), (std::vector<double>{8}));
}

TEST(Tape, TwoLeavesNeverShareOneGradient) {
  Tensor a = variable({1}, {1}), b = variable({1}, {1});
  run_backward_from(sum(add(a, b)));
  EXPECT_NE(grad_of(a).get()->storage, grad_of(b).get()->storage);
}

TEST(Tape, SecondDerivative) {
  Tensor x = variable({2}, {1});
  Tensor y = sum(multiply(multiply(x, x), x));
  std::vector<Tensor> first = gradients({&y, 1}, {}, {&x, 1}, {.create_graph = true});
  EXPECT_EQ(item(first[0]), 12);
  Tensor g = sum(first[0]);
  std::vector<Tensor> second = gradients({&g, 1}, {}, {&x, 1}, {});
  EXPECT_EQ(item(second[0]), 12);
}

TEST(Tape, SecondDerivativeThroughASavedResult) {
  Tensor x = variable({0.5}, {1});
  Tensor y = sum(exp(x));
  Tensor g = gradients({&y, 1}, {}, {&x, 1}, {.create_graph = true})[0];
  Tensor s = sum(g);
  EXPECT_DOUBLE_EQ(item(gradients({&s, 1}, {}, {&x, 1}, {})[0]), std::exp(0.5));
}

TEST(Tape, AnInputThatWasNotReachedHasNoGradient) {
  Tensor x = variable({1}, {1}), z = variable({1}, {1});
  Tensor y = sum(x), inputs[] = {x, z};
  std::vector<Tensor> g = gradients({&y, 1}, {}, inputs, {});
  EXPECT_TRUE(g[0]);
  EXPECT_FALSE(g[1]);
}

TEST(Tape, TheGraphIsUsedOnceUnlessRetained) {
  Tensor x = variable({2}, {1});
  Tensor y = sum(multiply(x, x));
  run_backward_from(y, {.retain_graph = true});
  run_backward_from(y);
  EXPECT_EQ(grad(x), (std::vector<double>{8}));
  try {
    run_backward_from(y);
    FAIL() << "a third pass must be refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("retain_graph"), std::string::npos) << error.what();
  }
}

TEST(Tape, ASavedTensorThatChangedIsAnError) {
  Tensor x = variable({2}, {1});
  Tensor y = multiply(x, x), z = multiply(y, y), one = tensor({1}, {1});
  bp_value args[] = {value(y), value(one)};
  ASSERT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
  try {
    run_backward_from(sum(z));
    FAIL() << "the saved y was changed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("bp::multiply"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("version"), std::string::npos) << error.what();
  }
}

TEST(Tape, InPlaceIsRecorded) {
  Tensor x = variable({2}, {1});
  Tensor y = multiply(x, x);
  bp_value args[] = {value(y), value(x)};
  ASSERT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
  EXPECT_EQ(item(y), 6);
  run_backward_from(sum(y));
  EXPECT_EQ(grad(x), (std::vector<double>{5}));
}

TEST(Tape, InPlaceThroughAViewReachesTheBase) {
  Tensor x = variable({2, 3}, {2}), w = variable({10}, {}), ten = tensor({10}, {});
  Tensor y = multiply(x, x);
  Tensor v = select(y, 0, 1);
  bp_value scale[] = {value(v), value(ten)}, shift[] = {value(v), value(w)};
  ASSERT_EQ(call_inplace(find_op("bp::multiply"), scale, 2), BP_OK) << last_error();
  ASSERT_EQ(call_inplace(find_op("bp::add"), shift, 2), BP_OK) << last_error();
  EXPECT_EQ(values(y), (std::vector<double>{4, 100}));
  run_backward_from(sum(y));
  EXPECT_EQ(grad(x), (std::vector<double>{4, 60}));
  EXPECT_EQ(grad(w), (std::vector<double>{1}));
}

TEST(Tape, InPlaceOnALeafIsRefused) {
  Tensor x = variable({2}, {1});
  bp_value args[] = {value(x), value(x)};
  EXPECT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_ERROR_VALUE);
  EXPECT_EQ(item(x), 2);
}

TEST(Tape, HooksReplaceCotangents) {
  Tensor x = variable({2}, {1});
  Tensor y = multiply(x, x);
  add_hook(y, [](const Tensor& g) { return add(g, g); });
  run_backward_from(sum(y));
  EXPECT_EQ(grad(x), (std::vector<double>{8}));
}

TEST(Tape, AHookKeepsShapeAndDtype) {
  for (const bool leaf : {true, false}) {
    Tensor x = variable({2, 3}, {2});
    Tensor y = multiply(x, x);
    add_hook(leaf ? x : y, [](const Tensor&) { return tensor({1, 2, 3}, {3}); });
    EXPECT_THROW(run_backward_from(sum(y)), Error);
    EXPECT_FALSE(grad_of(x));
  }
}

// A loop that takes views of views holds no more of them than differ.
TEST(Tape, AChainOfViewsDoesNotGrow) {
  Tensor base = tensor({1, 2, 3, 4}, {2, 2}), view = base;
  const std::vector<int64_t> order{1, 0};
  for (int i = 0; i < 50; ++i) view = op("permute_dims", {value(view), value(Shape(order))});
  int length = 0;
  for (const core::TensorImpl* t = core::impl(view); t->view; t = t->view->base) ++length;
  EXPECT_LE(length, 2);
  Tensor w = variable({5, 6, 7, 8}, {2, 2});
  bp_value args[] = {value(view), value(w)};
  ASSERT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
  run_backward_from(sum(multiply(base, base)));
  EXPECT_EQ(values(base), (std::vector<double>{6, 8, 10, 12}));
  EXPECT_EQ(grad(w), (std::vector<double>{12, 16, 20, 24}));
}

TEST(Tape, NothingIsRecordedWithoutGrad) {
  Tensor x = variable({2}, {1});
  set_grad_enabled(false);
  Tensor y = multiply(x, x);
  set_grad_enabled(true);
  EXPECT_TRUE(is_leaf(y));
  EXPECT_FALSE(requires_grad(y));
}

// A view that was made unrecorded is a constant to readers; a recorded write through it reaches the base's history.
TEST(Tape, AWriteThroughAnUnrecordedViewHasItsDerivative) {
  Tensor x = variable({1, 2, 3, 4}, {2, 2});
  Tensor y = multiply(x, x);
  set_grad_enabled(false);
  const std::vector<int64_t> order{1, 0};
  Tensor view = op("permute_dims", {value(y), value(Shape(order))});
  set_grad_enabled(true);
  EXPECT_FALSE(requires_grad(view));
  bp_value args[] = {value(view), value(view)};
  ASSERT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
  EXPECT_TRUE(requires_grad(view));
  run_backward_from(sum(y));
  EXPECT_EQ(grad(x), (std::vector<double>{4, 8, 12, 16}));
}

TEST(Tape, AWriteThroughAnUnrecordedViewOfALeafIsRefused) {
  Tensor x = variable({1, 2, 3, 4}, {2, 2});
  set_grad_enabled(false);
  const std::vector<int64_t> order{1, 0};
  Tensor view = op("permute_dims", {value(x), value(Shape(order))});
  set_grad_enabled(true);
  bp_value args[] = {value(view), value(view)};
  EXPECT_NE(call_inplace(find_op("bp::add"), args, 2), BP_OK);
}

// More than any recursion has stack for; a sanitizer takes ten times as long for each.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kVeryMany = 100'000;
#else
constexpr int kVeryMany = 1'000'000;
#endif

Tensor chain(const Tensor& x, int n) {
  Tensor y = x;
  for (int i = 0; i < n; ++i) y = negative(y);
  return y;
}

TEST(Tape, VeryManyNodesRun) {
  Tensor x = variable({1}, {1});
  run_backward_from(sum(chain(x, kVeryMany)));
  EXPECT_EQ(grad(x), (std::vector<double>{1}));
}

TEST(Tape, VeryManyNodesAreDroppedUnused) {
  Tensor x = variable({1}, {1});
  { Tensor y = chain(x, kVeryMany); }
  EXPECT_FALSE(grad_of(x));
}

TEST(Tape, VeryManyNodesAreDroppedHalfWay) {
  Tensor x = variable({1}, {1});
  Tensor half = chain(x, kVeryMany / 2);
  add_hook(half, [](const Tensor&) -> Tensor { throw Error(BP_ERROR_VALUE, "stop here"); });
  {
    Tensor y = sum(chain(half, kVeryMany / 2));
    EXPECT_THROW(run_backward_from(y), Error);
  }
  EXPECT_FALSE(grad_of(x));
}

TEST(Tape, VeryManyNodesAreRetained) {
  Tensor x = variable({1}, {1});
  Tensor y = sum(chain(x, kVeryMany));
  run_backward_from(y, {.retain_graph = true});
  run_backward_from(y);
  EXPECT_EQ(grad(x), (std::vector<double>{2}));
}

TEST(Tape, VeryManyInPlaceStepsOnOneView) {
  Tensor x = variable({1, 1}, {2}), one = tensor({1}, {});
  Tensor y = negative(x);
  Tensor v = select(y, 0, 0);
  bp_value args[] = {value(v), value(one)};
  const OpHandle add_op = find_op("bp::add");
  for (int i = 0; i < kVeryMany; ++i) ASSERT_EQ(call_inplace(add_op, args, 2), BP_OK) << last_error();
  EXPECT_EQ(values(y), (std::vector<double>{kVeryMany - 1, -1}));
  run_backward_from(sum(y));
  EXPECT_EQ(grad(x), (std::vector<double>{-1, -1}));
}

TEST(Tape, SavedTensorsGoAsBackwardPassesThem) {
  constexpr int kSteps = 20;
  Tensor x = tensor({.1, .1, .1, .1, .1, .1, .1, .1, .1}, {9});  // more than a storage holds by itself
  set_requires_grad(x, true);
  int64_t at_the_end = 0;
  add_hook(x, [&](const Tensor&) {
    at_the_end = live_blocks();
    return Tensor();
  });
  Tensor y = x;
  for (int i = 0; i < kSteps; ++i) y = multiply(exp(y), x);
  y = sum(y);
  const int64_t before = live_blocks();
  backward({&y, 1}, {}, {});
  EXPECT_GE(before, kSteps);
  EXPECT_LE(at_the_end, 3) << "of " << before << " blocks: all but the cotangents in flight should be gone";
}

}  // namespace
}  // namespace backplane::testing
