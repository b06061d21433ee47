// Laws of the tape under threads: uses that docs/concepts/threads.md allows do not race and lose nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "backplane/autograd.hpp"
#include "null_backend.hpp"

namespace backplane::testing::threads_test {
namespace {

constexpr int kRounds = 400;

Tensor variable(std::initializer_list<double> v) {
  Tensor t = tensor(v, {static_cast<int64_t>(v.size())});
  set_requires_grad(t, true);
  return t;
}

void run_backward_from(const Tensor& root, BackwardOptions options = {}) { backward({&root, 1}, {}, options); }

// Each on a thread of its own, all begun at once.
void at_once(const std::vector<std::function<void()>>& works) {
  std::atomic<size_t> ready{0};
  std::vector<std::thread> threads;
  for (const auto& work : works)
    threads.emplace_back([&] {
      ++ready;
      while (ready < works.size()) std::this_thread::yield();
      work();
    });
  for (std::thread& thread : threads) thread.join();
}

std::function<void()> again(const std::function<void()>& work) {
  return [work] {
    for (int i = 0; i < kRounds; ++i) work();
  };
}

TEST(Threads, GradientsOfOneLeafAddUp) {
  Tensor x = variable({1, 1});
  const auto pass = again([&] { run_backward_from(sum(multiply(x, x))); });
  at_once({pass, pass, pass});
  EXPECT_EQ(values(grad_of(x)), (std::vector<double>{6.0 * kRounds, 6.0 * kRounds}));
}

TEST(Threads, HooksComeAndGoBesidePasses) {
  Tensor x = variable({1});
  Tensor y = multiply(x, x);
  std::atomic<int> runs{0};
  const auto come_and_go = [&](const Tensor& t) {
    return again([&runs, t] {
      const uint64_t id = add_hook(t, [&runs](const Tensor&) {
        ++runs;
        return Tensor();
      });
      remove_hook(t, id);
    });
  };
  const auto pass = again([&] { run_backward_from(sum(y), {.retain_graph = true}); });
  at_once({come_and_go(x), come_and_go(y), pass, pass});
  const int before = runs;
  run_backward_from(sum(y));
  EXPECT_EQ(runs, before) << "none is left";
}

TEST(Threads, AGradientIsReadSetAndClearedBesidePasses) {
  Tensor x = variable({1, 2});
  at_once({again([&] { run_backward_from(sum(multiply(x, x))); }), again([&] { set_grad_of(x, {}); }), again([&] {
             set_grad_of(x, tensor({1, 1}, {2}));
           }),
           again([&] {
             Tensor g = grad_of(x);
             EXPECT_TRUE(!g || g.ndim() == 1);
           })});
}

TEST(Threads, ATensorIsGivenAGradientByTwoAtOnce) {
  for (int i = 0; i < kRounds; ++i) {
    Tensor x = tensor({1}, {1});
    const auto give = [&] { set_grad_of(x, tensor({2}, {1})); };
    at_once({give, give, [&] { grad_of(x); }});
    EXPECT_EQ(item(grad_of(x)), 2);
  }
}

TEST(Threads, ALeafEndsBesideThePassThatReachesIt) {
  for (int i = 0; i < kRounds; ++i) {
    Tensor x = variable({1});
    add_hook(x, [](const Tensor&) { return Tensor(); });
    Tensor y = sum(add(x, x));  // keeps no value: nothing but x holds the leaf
    at_once({[&] { x = Tensor(); }, [&] { run_backward_from(y); }});
  }
}

// One pass takes the saved values, the others get an error.
TEST(Threads, OfTwoPassesThatKeepNothingOneIsRefused) {
  for (int i = 0; i < kRounds; ++i) {
    Tensor x = variable({3});
    Tensor shared = multiply(x, x);
    Tensor y = sum(shared), z = sum(shared);
    std::atomic<int> refused{0};
    const auto pass = [&](const Tensor& root) {
      try {
        run_backward_from(root);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), BP_ERROR_VALUE) << error.what();
        ++refused;
      }
    };
    at_once({[&] { pass(y); }, [&] { pass(z); }});
    EXPECT_EQ(refused, 1);
    EXPECT_EQ(item(grad_of(x)), 6);
  }
}

TEST(Threads, PassesThatRetainShareAGraph) {
  Tensor x = variable({3});
  Tensor shared = multiply(x, x);
  const auto pass = again([&] { run_backward_from(sum(shared), {.retain_graph = true}); });
  at_once({pass, pass, pass});
  EXPECT_EQ(item(grad_of(x)), 6 * 3 * kRounds);
}

// The first thread gives the view its history; the others, which may be reading it, record too.
TEST(Threads, AViewThatCameToAHistoryIsReadByManyAtOnce) {
  Tensor two = tensor({2}, {});
  for (int round = 0; round < kRounds; ++round) {
    Tensor x = variable({3, 4}), base = tensor({1, 1}, {2});
    Tensor view = select(base, 0, 1), other = select(base, 0, 1);
    bp_value args[] = {value(base), value(x)};
    ASSERT_EQ(call_inplace(find_op("bp::add"), args, 2), BP_OK) << last_error();
    std::atomic<int> recorded{0};
    const auto read = [&] {
      for (int i = 0; i < 4; ++i) {
        recorded += requires_grad(multiply(view, two));
        recorded += requires_grad(multiply(other, two));
      }
    };
    at_once({read, read, read});
    EXPECT_EQ(recorded, 3 * 4 * 2);
    run_backward_from(sum(multiply(other, two)));
    EXPECT_EQ(values(grad_of(x)), (std::vector<double>{0, 2}));
  }
}

TEST(Threads, AViewOfAChangedBaseIsReadByManyAtOnce) {
  for (int i = 0; i < kRounds; ++i) {
    Tensor x = variable({1, 2}), two = tensor({2}, {});
    Tensor base = multiply(x, x);
    Tensor view = select(base, 0, 1), other = select(base, 0, 1);
    bp_value args[] = {value(other), value(two)};
    ASSERT_EQ(call_inplace(find_op("bp::multiply"), args, 2), BP_OK) << last_error();
    const auto read = [&] { run_backward_from(sum(multiply(view, two)), {.retain_graph = true}); };
    at_once({read, read, read});
    EXPECT_EQ(values(grad_of(x)), (std::vector<double>{0, 3 * 2 * 2 * 4}));
  }
}

TEST(Threads, ALeafsHookMayRemoveItself) {
  Tensor x = variable({1});
  std::vector<int> ran;
  uint64_t own = 0;
  own = add_hook(x, [&](const Tensor&) {
    remove_hook(x, own);
    ran.push_back(1);
    return Tensor();
  });
  add_hook(x, [&](const Tensor&) {
    ran.push_back(2);
    return Tensor();
  });
  run_backward_from(sum(x));
  run_backward_from(sum(x));
  EXPECT_EQ(ran, (std::vector<int>{1, 2, 2}));
}

TEST(Threads, APassThatFailsAtANodeLeavesItsValues) {
  Tensor x = variable({3});
  Tensor y = sum(multiply(x, x));
  const uint64_t id = add_hook(x, [](const Tensor&) -> Tensor { throw Error(BP_ERROR_VALUE, "stop here"); });
  EXPECT_THROW(run_backward_from(y, {.retain_graph = true}), Error);
  remove_hook(x, id);
  run_backward_from(y);
  EXPECT_EQ(item(grad_of(x)), 6);
}

}  // namespace
}  // namespace backplane::testing::threads_test
