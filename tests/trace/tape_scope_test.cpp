// A tape inside of a trace: a function that takes its own gradients and writes into its parameters, as a graph.
#include <gtest/gtest.h>

#include "backplane/autograd.hpp"
#include "backplane/graph.hpp"
#include "backplane/transforms.hpp"
#include "null_backend.hpp"

namespace backplane::testing {
namespace {

class Tape : public ::testing::Test {
 protected:
  void SetUp() override {
    null_backend();
    w = tensor({1, 2, 3}, {3});
    set_requires_grad(w, true);
  }
  // The gradient of sum(w * w * x) for w, as a graph of x.
  Graph traced(const Tensor& x) {
    TraceScope trace;
    const Tensor inside = trace.enter(x, "x", {});
    std::vector<Tensor> found;
    {
      TapeScope tape({&w, 1});
      const Tensor loss = sum(multiply(multiply(w, w), tape.inside(inside)));
      EXPECT_TRUE(requires_grad(loss));
      const Tensor none;
      found = tape.gradients({&loss, 1}, {&none, 1}, {&w, 1}, false);
    }
    return trace.leave(found, {});
  }
  Tensor w;
};

TEST_F(Tape, GivesGradientsOfTensorsFromOutside) {
  const Tensor x = tensor({1, 1, 1}, {3}), other = tensor({1, 10, 100}, {3});
  const Graph graph = traced(x);
  EXPECT_EQ(values(graph.call({&other, 1})[0]), (std::vector<double>{2, 40, 600}));
  EXPECT_FALSE(grad_of(w));
}

TEST_F(Tape, ReadsTheLeafAtEachCall) {
  const Tensor x = tensor({1, 1, 1}, {3});
  const Graph graph = traced(x);
  const bp_value args[] = {value(w), value(w)};
  set_grad_enabled(false);
  const bp_status status = call_inplace(find_op("bp::add"), args, 2);
  set_grad_enabled(true);
  ASSERT_EQ(status, BP_OK);
  EXPECT_EQ(values(graph.call({&x, 1})[0]), (std::vector<double>{4, 8, 12}));
}

TEST_F(Tape, BeginsInATraceAlone) { EXPECT_THROW(TapeScope({&w, 1}), Error); }

TEST_F(Tape, RefusesOtherTensorsThatRequireAGradient) {
  Tensor v = tensor({1, 1, 1}, {3});
  set_requires_grad(v, true);
  TraceScope trace;
  TapeScope tape({&w, 1});
  const Tensor loss = sum(multiply(v, w)), none;
  EXPECT_THROW(tape.gradients({&loss, 1}, {&none, 1}, {&w, 1}, false), Error);
}

TEST_F(Tape, AFrozenLeafIsAConstant) {
  TraceScope trace;
  TapeScope tape({&w, 1});
  tape.follow(w, false);
  EXPECT_FALSE(requires_grad(multiply(w, exp(w))));
  tape.follow(w, true);
  EXPECT_TRUE(requires_grad(multiply(w, w)));
}

}  // namespace
}  // namespace backplane::testing
