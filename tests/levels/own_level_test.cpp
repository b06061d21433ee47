// A transform of this test's own: a level that counts the multiplications and additions of what runs inside it. It is
// this file alone; nothing of the dispatcher knows it, and it nests with the transforms that exist.
#include <gtest/gtest.h>

#include "backplane/transforms.hpp"
#include "call/dispatch.hpp"
#include "levels/level.hpp"
#include "null_backend.hpp"
#include "record/owned_value.hpp"

namespace backplane::testing {
namespace {

using namespace core;

class CountingLevel final : public Level {
 public:
  CountingLevel() : Level("count") {}

  Tensor enter(const Tensor& input) {
    retain(impl(input));
    return Tensor::adopt(wrap(*this, impl(input)));
  }
  Tensor leave(const Tensor& result) {
    const TensorImpl* inner = unwrap(*this, impl(result));
    return inner ? Tensor::share(const_cast<TensorImpl*>(inner)) : result;
  }

  void handle(const Call& call) override {
    const Unwrapped inner(*this, call);
    {
      BelowLevel below(*this);
      dispatch({call.op, inner.args, call.n_args, call.outs, call.n_outs, call.mask});
    }
    for (int32_t i = 0; i < call.n_outs; ++i) {
      if (call.outs[i].tag != BP_TAG_TENSOR) continue;
      TensorImpl* out = impl(call.outs[i].u.t);
      if ((call.op.flags & BP_OP_ELEMENTWISE) && inner.any) flops += element_count(*out);
      call.outs[i].u.t = wrap(*this, out);
    }
  }
  std::vector<Tensor> call_graph(const OpEntry&, GraphFunction& function, std::span<const Tensor> args) override {
    return function.call(args);
  }

  int64_t flops = 0;
};

int64_t flops_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& x, Tensor* result = nullptr) {
  CountingLevel level;
  const Tensor found = level.leave(f(level.enter(x)));
  if (result) *result = found;
  return level.flops;
}

Tensor gradient(const Tensor& x) {
  return value_and_grad([](std::span<const Tensor> in) { return std::vector<Tensor>{sum(multiply(in[0], in[0]))}; },
                        {&x, 1})
      .gradients[0];
}

TEST(OwnLevel, CountsWhatRunsInside) {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  Tensor y;
  EXPECT_EQ(flops_of([](const Tensor& v) { return add(multiply(v, v), v); }, x, &y), 12);
  EXPECT_EQ(values(y), (std::vector<double>{2, 6, 12, 20, 30, 42}));
  EXPECT_EQ(flops_of([&](const Tensor&) { return multiply(x, x); }, x), 0);  // not of the level's tensors
}

TEST(OwnLevel, NestsWithGradientsAndBatchesBothWays) {
  const Tensor x = tensor({1, 2, 3}, {3});
  Tensor g;
  const int64_t both = flops_of(gradient, x, &g);
  EXPECT_EQ(values(g), (std::vector<double>{2, 4, 6}));
  EXPECT_GT(both, 3);  // the function's, and its backward pass's
  int64_t inside = 0;
  const Tensor d = value_and_grad(
                       [&](std::span<const Tensor> in) {
                         Tensor y;
                         inside = flops_of([](const Tensor& v) { return multiply(v, v); }, in[0], &y);
                         return std::vector<Tensor>{sum(y)};
                       },
                       {&x, 1})
                       .gradients[0];
  EXPECT_EQ(inside, 3);
  EXPECT_EQ(values(d), (std::vector<double>{2, 4, 6}));
  const Tensor rows = tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(flops_of(
                [](const Tensor& v) {
                  return vmap([](std::span<const Tensor> in) { return std::vector<Tensor>{multiply(in[0], in[0])}; },
                              {&v, 1})[0];
                },
                rows),
            6);
}

TEST(OwnLevel, AnInPlaceChangeReachesItAsTheFunctionalOp) {
  const Tensor x = tensor({1, 2, 3}, {3});
  Tensor y;
  EXPECT_EQ(flops_of(
                [](const Tensor& v) {
                  bp_value args[] = {value(v), value(v)};
                  EXPECT_EQ(call_inplace(find_op("bp::multiply"), args, 2), BP_OK) << last_error();
                  return v;
                },
                x, &y),
            3);
  EXPECT_EQ(values(y), (std::vector<double>{1, 4, 9}));
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3}));
}

}  // namespace
}  // namespace backplane::testing
