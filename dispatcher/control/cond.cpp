// cond: one of two bodies, by a bool.
#include "backplane/transforms.hpp"
#include "control/structured.hpp"
#include "graph/graph_body.hpp"

namespace backplane::core {
namespace {

// Arguments: the condition, then the operands of both bodies.
class Cond final : public Structured {
 public:
  using Structured::Structured;
  bool has(Rule) const noexcept override { return true; }

  Tensors call(Args args) override { return bodies_[read_condition(args[0], name()) ? 0 : 1]->call(args.subspan(1)); }

  Forward forward(Args args) override {
    Forward forward{call_with(bodies_, args), {{args.begin(), args.end()}, nullptr}};
    forward.residuals.rest = std::make_shared<Tensors>(forward.results);
    return forward;
  }

  Tensors backward(const Residuals& residuals, Args cotangents) override {
    const Args args = residuals.tensors;
    const auto& results = *static_cast<const Tensors*>(residuals.rest.get());
    const std::vector<size_t> wanted = inexact_of(args.subspan(1)), given = inexact_of(results);
    Tensors found(args.size());
    if (wanted.empty() || given.empty()) return found;
    std::vector<Body> pullbacks;
    for (const Body& body : bodies_)
      pullbacks.push_back(make_body(body->name(), [body, wanted, given, n = args.size() - 1](Args all) {
        const auto of_wanted = [&](Args some) {
          Tensors operands(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
          for (size_t k = 0; k < wanted.size(); ++k) operands[wanted[k]] = some[k];
          return picked(body->call(operands), given);
        };
        return vjp(of_wanted, picked(all.first(n), wanted)).pullback(all.subspan(n), false);
      }));
    const Tensors g = filled_up(picked(cotangents, given), picked(results, given));
    const Tensors moved = call_with(pullbacks, joined({args, g}));
    for (size_t k = 0; k < wanted.size(); ++k) found[wanted[k] + 1] = moved[k];
    return found;
  }

  Duals jvp(Args primals, Args tangents) override {
    const std::vector<size_t> moving = inexact_of(primals.subspan(1));
    std::vector<Body> bodies;
    for (const Body& body : bodies_)
      bodies.push_back(make_body(body->name(), [body, moving, n = primals.size() - 1](Args all) {
        const auto of_moving = [&](Args some) {
          Tensors operands(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
          for (size_t k = 0; k < moving.size(); ++k) operands[moving[k]] = some[k];
          return body->call(operands);
        };
        ValuesAndTangents both = backplane::jvp(of_moving, picked(all.first(n), moving), all.subspan(n));
        const Tensors inexact = picked(both.tangents, inexact_of(both.values));
        return joined({both.values, inexact});
      }));
    const Tensors found = call_with(bodies, joined({primals, picked(tangents.subspan(1), moving)}));
    return split_duals(found);
  }

  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override {
    const std::vector<bool> operands(batched.begin() + 1, batched.end());
    const std::vector<Body> bodies{batched_body(bodies_[0], size, operands), batched_body(bodies_[1], size, operands)};
    if (!batched[0]) {
      Tensors results = call_with(bodies, args);
      std::vector<bool> all(results.size(), true);
      return {std::move(results), std::move(all)};
    }
    Tensors chosen = bodies[0]->call(args.subspan(1)), others = bodies[1]->call(args.subspan(1));
    for (size_t j = 0; j < chosen.size(); ++j) {
      const Tensor mask = row_mask(args[0], chosen[j]);
      chosen[j] = call_tagged("role:where", {value(mask), value(chosen[j]), value(others[j])});
    }
    std::vector<bool> all(chosen.size(), true);
    return {std::move(chosen), std::move(all)};
  }

  Tensors body_examples(size_t, Args args) const override { return {args.begin() + 1, args.end()}; }
  Tensors result_examples(Args args, const std::vector<Tensors>& of_bodies) const override {
    check_condition(args[0], name());
    check_alike(of_bodies[0], of_bodies[1]);
    return of_bodies[0];
  }
  void check_alike(Args a, Args b) const {
    BP_CHECK(a.size() == b.size(), TYPE, name(), ": one function returns ", a.size(), " tensors, the other ", b.size());
    for (size_t j = 0; j < a.size(); ++j)
      BP_CHECK(same_shape(*a[j].get(), *b[j].get()) && a[j].dtype() == b[j].dtype(), SHAPE, name(),
               ": the two functions return results of other shapes or dtypes: result ", j, " is ", form_text(a[j]),
               " of the first and ", form_text(b[j]),
               " of the second. Fix: make them alike, with astype, reshape or broadcast_to");
  }

 private:
  Tensors call_with(const std::vector<Body>& bodies, Args args) const {
    return call_structured(std::make_shared<Cond>(op_, bodies, std::vector<size_t>{1, args.size() - 1}), args);
  }

  // Values, then the tangents of those that are inexact.
  static Duals split_duals(const Tensors& found) {
    size_t n = 0, tangents = 0;
    for (; n + tangents < found.size(); ++n) tangents += is_floating_value(found[n]);
    Duals duals{{found.begin(), found.begin() + static_cast<ptrdiff_t>(n)}, Tensors(n)};
    for (size_t j = 0, next = n; j < n; ++j)
      if (is_floating_value(found[j])) duals.tangents[j] = found[next++];
    return duals;
  }
  static bool is_floating_value(const Tensor& t) { return !inexact_of({&t, 1}).empty(); }
};

[[gnu::constructor]] void register_cond() {
  add_function_maker("role:cond", [](const Call& call) -> std::shared_ptr<GraphFunction> {
    const std::vector<Body> bodies = bodies_of(call);
    auto made = std::make_shared<Cond>(call.op, bodies, counts_of(call));
    const auto* on_true = dynamic_cast<const graph::GraphBody*>(bodies[0].get());
    const auto* on_false = dynamic_cast<const graph::GraphBody*>(bodies[1].get());
    if (on_true && on_false) made->check_alike(on_true->result_examples(), on_false->result_examples());
    return made;
  });
}

}  // namespace
}  // namespace backplane::core
