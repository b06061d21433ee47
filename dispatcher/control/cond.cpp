// cond: one of two bodies, by a bool.
#include "backplane/autograd.hpp"
#include "backplane/transforms.hpp"
#include "control/structured.hpp"
#include "graph/graph_body.hpp"
#include "record/dtype_rules.hpp"
#include "tape/node.hpp"

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
    const std::vector<size_t> given = inexact_of(results, present_of(cotangents));
    uint64_t bits = 0;
    for (size_t j : given) bits |= Forward::bit(j);
    std::vector<bool> moving = moving_arguments(bodies_[0], bits, args.size() - 1);
    const std::vector<bool> of_other = moving_arguments(bodies_[1], bits, args.size() - 1);
    for (size_t i = 0; i < moving.size(); ++i) moving[i] = (moving[i] || of_other[i]) && follows(i + 1);
    const std::vector<size_t> wanted = inexact_of(args.subspan(1), moving);
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
    const Tensors moved = call_with(pullbacks, joined({args, picked(cotangents, given)}));
    for (size_t k = 0; k < wanted.size(); ++k) found[wanted[k] + 1] = moved[k];
    return found;
  }

  Duals jvp(Args primals, Args tangents) override {
    const std::vector<bool> present = present_of(tangents.subspan(1));
    const std::vector<size_t> moving = inexact_of(primals.subspan(1), present);
    const uint64_t moved = moved_results(bodies_[0], present) | moved_results(bodies_[1], present);
    std::vector<Body> bodies;
    for (const Body& body : bodies_)
      bodies.push_back(make_body(body->name(), [body, moving, moved, n = primals.size() - 1](Args all) {
        const auto of_moving = [&](Args some) {
          Tensors operands(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
          for (size_t k = 0; k < moving.size(); ++k) operands[moving[k]] = some[k];
          return body->call(operands);
        };
        ValuesAndTangents both = backplane::jvp(of_moving, picked(all.first(n), moving), all.subspan(n));
        return joined({both.values, picked(both.tangents, inexact_of(both.values, moved))});
      }));
    const Tensors found = call_with(bodies, joined({primals, picked(tangents.subspan(1), moving)}));
    return split_duals(found, moved);
  }

  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override {
    const std::vector<bool> operands(batched.begin() + 1, batched.end());
    const std::vector<Body> bodies{batched_body(bodies_[0], size, operands), batched_body(bodies_[1], size, operands)};
    if (batched[0] && size == 0) return with_rows(bodies[0]->call(args.subspan(1)));
    if (!batched[0]) {
      return with_rows(call_with(bodies, args));
    }
    const Tensor negated = call_tagged("role:logical_not", {value(args[0])});
    Tensors chosen = bodies[0]->call(of_choosing_rows(args[0], operands, args.subspan(1)));
    const Tensors others = bodies[1]->call(of_choosing_rows(negated, operands, args.subspan(1)));
    for (size_t j = 0; j < chosen.size(); ++j) {
      const Tensor mask = row_mask(args[0], chosen[j]);
      chosen[j] = call_tagged("role:where", {value(mask), value(chosen[j]), value(others[j])});
    }
    return with_rows(std::move(chosen));
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
               ": the two functions return different shapes or dtypes: result ", j, " is ", form_text(a[j]),
               " of the first and ", form_text(b[j]),
               " of the second. Fix: make them equal with astype, reshape or broadcast_to");
  }

 private:
  // The operands of a body that computes all rows: rows that did not choose it get the operands of the first that did.
  // So it computes nothing that no row asks for: not the logarithm of a negative number, whose derivative times the
  // cotangent 0 is NaN. Where no row chose the body, no derivative comes out of it.
  static Tensors of_choosing_rows(const Tensor& chose, const std::vector<bool>& batched, Args operands) {
    Tensors safe(operands.begin(), operands.end());
    const bool traced = every_call_taken();
    const Tensor first = call_tagged("role:argmax", {value(chose), value(int64_t{0}), value(true)});
    const Tensor any = call_tagged("role:any", {value(chose)});
    for (size_t i = 0; i < safe.size(); ++i) {
      const Tensor& x = operands[i];
      const bool inexact = is_inexact(x.dtype());
      if (!batched[i] && !(inexact && (traced || differentiated_by(x) || requires_grad(x)))) continue;
      const Tensor constant = inexact ? call_tagged("role:stop_gradient", {value(x)}) : x;
      if (!batched[i]) {
        safe[i] = call_tagged("role:where", {value(any), value(x), value(constant)});
        continue;
      }
      const Tensor row = call_tagged("role:take", {value(constant), value(first), value(int64_t{0})});
      safe[i] = call_tagged("role:where", {value(row_mask(chose, x)), value(x), value(row)});
    }
    return safe;
  }

  static Batched with_rows(Tensors results) {
    std::vector<bool> all(results.size(), true);
    return {std::move(results), std::move(all)};
  }

  Tensors call_with(const std::vector<Body>& bodies, Args args) const {
    return call_structured(std::make_shared<Cond>(op_, bodies, std::vector<size_t>{1, args.size() - 1}), args);
  }

  // Values, then the tangents of those that are inexact and moved.
  static Duals split_duals(const Tensors& found, uint64_t moved) {
    size_t n = 0, tangents = 0;
    for (; n + tangents < found.size(); ++n) tangents += inexact_of({&found[n], 1}, moved, n).size();
    Duals duals{{found.begin(), found.begin() + static_cast<ptrdiff_t>(n)}, Tensors(n)};
    for (size_t j : inexact_of(duals.results, moved)) duals.tangents[j] = found[n++];
    return duals;
  }
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
