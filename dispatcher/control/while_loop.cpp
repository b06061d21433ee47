// while_loop: runs a body as long as a condition holds for the carry.
#include "backplane/transforms.hpp"
#include "call/formulas/role_calls.hpp"
#include "control/structured.hpp"
#include "memory/process/interrupt.hpp"

namespace backplane::core {
namespace {

// Arguments: the carry, then the constants; both bodies take both.
class While final : public Structured {
 public:
  using Structured::Structured;
  bool has(Rule) const noexcept override { return true; }

  Tensors call(Args args) override {
    Tensors all(args.begin(), args.end());
    for (;;) {
      check_interrupt();
      const Tensors condition = bodies_[0]->call(all);
      check_one(condition);
      if (!read_condition(condition[0], name())) break;
      Tensors next = bodies_[1]->call(all);
      check_next(args, next);
      std::move(next.begin(), next.end(), all.begin());
    }
    all.resize(counts_[0]);
    return all;
  }

  Forward forward(Args) override {
    detail::fail(BP_ERROR_NOT_IMPLEMENTED, name(),
                 ": has no reverse mode, because the number of its steps is not known in advance. Fix: use scan with a "
                 "fixed number of steps, or forward mode (jvp)");
  }

  Duals jvp(Args primals, Args tangents) override {
    const size_t n = counts_[0], m = counts_[1];
    std::vector<bool> moving_args = present_of(tangents);
    flag_moved_carry(bodies_[1], primals, n, moving_args);
    const std::vector<size_t> carried = inexact_of(primals.first(n), moving_args),
                              kept = inexact_of(primals.subspan(n), moving_args, n);
    const size_t t = carried.size();
    const Body condition = bodies_[0], body = bodies_[1];
    // All: carry, its tangents; constants, theirs.
    const auto values_of = [n, m, t](Args all) { return joined({all.first(n), all.subspan(n + t, m)}); };
    std::vector<Body> bodies{
        make_body(condition->name(), [condition, values_of](Args all) { return condition->call(values_of(all)); }),
        make_body(body->name(), [body, values_of, carried, kept, n, m, t](Args all) {
          const Tensors values = values_of(all);
          std::vector<size_t> moving = carried;
          for (size_t k : kept) moving.push_back(n + k);
          const auto of_moving = [&](Args some) {
            Tensors full = values;
            for (size_t k = 0; k < moving.size(); ++k) full[moving[k]] = some[k];
            return body->call(full);
          };
          const ValuesAndTangents both =
              backplane::jvp(of_moving, picked(values, moving), joined({all.subspan(n, t), all.subspan(n + t + m)}));
          return joined({both.values, picked(both.tangents, carried)});
        })};
    const Tensors args = joined({primals.first(n), filled_up(picked(tangents, carried), picked(primals, carried)),
                                 primals.subspan(n), picked(tangents.subspan(n), kept)});
    const Tensors found =
        call_structured(std::make_shared<While>(op_, bodies, std::vector<size_t>{n + t, m + kept.size()}), args);
    Duals duals{{found.begin(), found.begin() + static_cast<ptrdiff_t>(n)}, Tensors(n)};
    for (size_t k = 0; k < t; ++k) duals.tangents[carried[k]] = found[n + k];
    return duals;
  }

  // Rows that are done stay as they are while others go on.
  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override {
    const size_t n = counts_[0];
    Tensors rows(args.begin(), args.end());
    std::vector<bool> have = batched;
    for (size_t i = 0; i < n; ++i) {
      if (have[i]) continue;
      rows[i] = roles::repeated(impl(args[i]), size);
      have[i] = true;
    }
    const Body condition = batched_body(bodies_[0], size, have), body = batched_body(bodies_[1], size, have);
    std::vector<Body> bodies{
        make_body(condition->name(),
                  [condition](Args all) { return Tensors{call_tagged("role:any", {value(condition->call(all)[0])})}; }),
        make_body(body->name(), [condition, body, n](Args all) {
          const Tensor going = condition->call(all)[0];
          Tensors next = body->call(all);
          for (size_t i = 0; i < n; ++i) {
            const Tensor mask = row_mask(going, next[i]);
            next[i] = call_tagged("role:where", {value(mask), value(next[i]), value(all[i])});
          }
          return next;
        })};
    Tensors found = call_structured(std::make_shared<While>(op_, bodies, counts_), rows);
    return {std::move(found), std::vector<bool>(n, true)};
  }

  Tensors body_examples(size_t, Args args) const override { return {args.begin(), args.end()}; }
  Tensors result_examples(Args args, const std::vector<Tensors>& of_bodies) const override {
    check_one(of_bodies[0]);
    check_condition(of_bodies[0][0], name());
    check_next(args, of_bodies[1]);
    return of_bodies[1];
  }

 private:
  void check_one(Args condition) const {
    BP_CHECK(condition.size() == 1, TYPE, name(), ": its condition returns ", condition.size(),
             " tensors, expected one bool");
  }
  void check_next(Args args, Args next) const {
    BP_CHECK(next.size() == counts_[0], TYPE, name(), ": its body returns ", next.size(), " tensors, expected ",
             counts_[0], ", the size of its carry");
    check_carry(args.first(counts_[0]), next);
  }
};

[[gnu::constructor]] void register_while() {
  add_function_maker("role:while_loop", [](const Call& call) -> std::shared_ptr<GraphFunction> {
    return std::make_shared<While>(call.op, bodies_of(call), counts_of(call));
  });
}

}  // namespace
}  // namespace backplane::core
