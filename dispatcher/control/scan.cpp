// scan: a body over the first axis of some tensors, carrying others along.
//
// Arguments: the carry, the sequences, and the constants. The body takes all three, with one slice of each
// sequence. It returns the new carry and one slice of each further result. A backward pass keeps the carry
// of each step, and computes the rest of the step again.
#include "backplane/transforms.hpp"
#include "call/formulas/role_calls.hpp"
#include "control/structured.hpp"
#include "functions/graph_rules.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/interrupt.hpp"

namespace backplane::core {
namespace {

struct Sizes {
  size_t carried, through, kept;
  size_t all() const { return carried + through + kept; }
};

class Scan final : public Structured {
 public:
  Scan(const OpEntry& op, Body body, Sizes sizes, int64_t length, bool reverse)
      : Structured(op, {std::move(body)}, {sizes.carried, sizes.through, sizes.kept}),
        sizes_(sizes),
        length_(length),
        reverse_(reverse) {}
  bool has(Rule) const noexcept override { return true; }

  Tensors call(Args args) override {
    check_lengths(args);
    Tensors carry(args.begin(), args.begin() + static_cast<ptrdiff_t>(sizes_.carried));
    std::vector<Tensors> slices;  // per step
    for (int64_t step = 0; step < length_; ++step) {
      check_interrupt();
      const Tensors x = slice(args, reverse_ ? length_ - 1 - step : step);
      Tensors found = bodies_[0]->call(joined({carry, x, group(args, 2)}));
      check_carry(args.first(sizes_.carried), found);
      slices.emplace_back(found.begin() + static_cast<ptrdiff_t>(sizes_.carried), found.end());
      if (step == 0) check_room(slices[0]);
      found.resize(sizes_.carried);
      carry = std::move(found);
    }
    if (reverse_) std::reverse(slices.begin(), slices.end());
    return joined({carry, stacked(args, slices)});
  }

  // The carry into each step is one more result, before the body's own slices.
  Forward forward(Args args) override {
    const Body body = bodies_[0];
    const Sizes sizes = sizes_;
    const size_t n = sizes.carried;
    std::vector<uint64_t> moves = moves_of(body);
    for (size_t i = 0; i < moves.size(); ++i) {
      const uint64_t of_body = moves[i];
      moves[i] = i < n ? Forward::bit(n + i) : 0;
      for (size_t j = 0; j < 64; ++j)
        if (of_body >> j & 1) moves[i] |= Forward::bit(j < n ? j : n + j);
    }
    const auto note = [self = std::static_pointer_cast<Scan>(shared_from_this()), body, n](Args all) {
      const ByForwardRules forward;
      const Tensors found = body->call(all);
      self->check_carry(all.first(n), found);
      return joined({Args(found).first(n), all.first(n), Args(found).subspan(n)});
    };
    const Tensors found = run(make_body(body->name(), note, std::move(moves)), sizes_, args);
    const Tensors results = joined({Args(found).first(n), Args(found).subspan(2 * n)});
    Forward forward{results, {joined({Args(found).subspan(n, n), args.subspan(n)}), nullptr}};
    forward.residuals.rest = std::make_shared<Tensors>(joined({args.first(sizes.carried), results}));
    return forward;
  }

  Tensors backward(const Residuals& residuals, Args cotangents) override {
    const Sizes sizes = sizes_;
    const size_t n = sizes.carried, p = sizes.through;
    const Args kept_values = residuals.tensors;  // carries into steps, what is gone through, constants
    const auto& rest = *static_cast<const Tensors*>(residuals.rest.get());
    const Args init = Args(rest).first(n), results = Args(rest).subspan(n);
    const std::vector<bool> given = present_of(cotangents);
    std::vector<bool> moving = moving_for(init, given), reached;
    for (size_t i = 0; i < sizes.all(); ++i) reached.push_back(follows(i));
    flag_moved_carry(bodies_[0], init, n, reached, Mode::kReverse);
    for (size_t i = 0; i < sizes.all(); ++i) moving[i] = moving[i] && reached[i];
    const std::vector<size_t> c = inexact_of(init, moving), x = inexact_of(kept_values.subspan(n, p), moving, n),
                              k = inexact_of(kept_values.subspan(n + p), moving, n + p),
                              y = inexact_of(results.subspan(n), given, n);
    if (c.empty() && x.empty() && k.empty()) return Tensors(sizes.all());
    const Tensors constants = picked(kept_values.subspan(n + p), k);
    Tensors zeros;
    for (const Tensor& t : constants) zeros.push_back(zeros_of(t.shape(), t));
    const Tensors args = joined({filled_up(picked(cotangents, c), picked(results, c)), zeros, kept_values.first(n + p),
                                 picked(cotangents.subspan(n), y), kept_values.subspan(n + p)});
    const auto back = std::make_shared<Scan>(
        op_, pullback_body(c, x, k, y), Sizes{c.size() + k.size(), n + p + y.size(), sizes.kept}, length_, !reverse_);
    const Tensors found = call_structured(back, args);
    Tensors cotangents_of_args(sizes.all());
    size_t next = 0;
    for (size_t i : c) cotangents_of_args[i] = found[next++];
    for (size_t i : k) cotangents_of_args[n + p + i] = found[next++];
    for (size_t i : x) cotangents_of_args[n + i] = found[next++];
    return cotangents_of_args;
  }

  Duals jvp(Args primals, Args tangents) override {
    const Sizes sizes = sizes_;
    const size_t n = sizes.carried, p = sizes.through;
    std::vector<bool> moving = present_of(tangents);
    flag_moved_carry(bodies_[0], primals, n, moving);
    const uint64_t moved = moved_results(bodies_[0], moving);
    const std::vector<size_t> c = inexact_of(primals.first(n), moving),
                              x = inexact_of(primals.subspan(n, p), moving, n),
                              k = inexact_of(primals.subspan(n + p), moving, n + p);
    const Tensors args =
        joined({primals.first(n), filled_up(picked(tangents, c), picked(primals, c)), primals.subspan(n, p),
                picked(tangents.subspan(n, p), x), primals.subspan(n + p), picked(tangents.subspan(n + p), k)});
    const Sizes wide{n + c.size(), p + x.size(), sizes.kept + k.size()};
    const Tensors found = run(tangent_body(c, x, k, moved), wide, args);
    // Carry, its tangents; results, theirs.
    Duals duals{{found.begin(), found.begin() + static_cast<ptrdiff_t>(n)}, Tensors(n)};
    for (size_t i = 0; i < c.size(); ++i) duals.tangents[c[i]] = found[n + i];
    const Args slices = Args(found).subspan(wide.carried);
    size_t count = 0, with_tangent = 0;
    for (; count + with_tangent < slices.size(); ++count)
      with_tangent += inexact_of(slices.subspan(count, 1), moved, n + count).size();
    duals.results.insert(duals.results.end(), slices.begin(), slices.begin() + static_cast<ptrdiff_t>(count));
    duals.tangents.resize(n + count);
    for (size_t next = count; size_t j : inexact_of(slices.first(count), moved, n))
      duals.tangents[n + j] = slices[next++];
    return duals;
  }

  // The batch is axis 0 of the carry, and axis 1 of the sequences.
  Batched batch(int64_t size, const std::vector<bool>& batched, Args args) override {
    Tensors rows(args.begin(), args.end());
    std::vector<bool> have = batched;
    for (size_t i = 0; i < sizes_.carried; ++i) {
      if (have[i]) continue;
      rows[i] = roles::repeated(impl(args[i]), size);
      have[i] = true;
    }
    for (size_t i = sizes_.carried; i < sizes_.carried + sizes_.through; ++i)
      if (have[i]) rows[i] = swapped(rows[i]);
    Tensors found = run(batched_body(bodies_[0], size, have), sizes_, rows);
    for (size_t j = sizes_.carried; j < found.size(); ++j) found[j] = swapped(found[j]);
    std::vector<bool> all(found.size(), true);
    return {std::move(found), std::move(all)};
  }

  Tensors body_examples(size_t, Args args) const override {
    check_lengths(args);
    Tensors examples(args.begin(), args.end());
    for (size_t i = sizes_.carried; i < sizes_.carried + sizes_.through; ++i)
      examples[i] = example_of(args[i].shape().subspan(1), args[i]);
    return examples;
  }
  Tensors result_examples(Args args, const std::vector<Tensors>& of_bodies) const override {
    check_carry(args.first(sizes_.carried), of_bodies[0]);
    Tensors examples = of_bodies[0];
    for (size_t j = sizes_.carried; j < examples.size(); ++j) {
      std::vector<int64_t> shape{length_};
      shape.insert(shape.end(), examples[j].shape().begin(), examples[j].shape().end());
      examples[j] = example_of(shape, examples[j]);
    }
    return examples;
  }
  bp_value plain_argument(size_t i) const override {
    return op_.record->args[i].type == BP_TYPE_SIZE ? value(length_) : value(reverse_);
  }

 private:
  Tensors run(const Body& body, Sizes sizes, Args args) const {
    return call_structured(std::make_shared<Scan>(op_, body, sizes, length_, reverse_), args);
  }

  // All: cotangents of the carry and of the constants so far; the carry into the step, its slices, the cotangents of
  // its results; constants.
  Body pullback_body(std::vector<size_t> c, std::vector<size_t> x, std::vector<size_t> k, std::vector<size_t> y) const {
    return make_body(
        bodies_[0]->name(),
        [body = bodies_[0], sizes = sizes_, c, x, k, y](Args all) {
          const size_t n = sizes.carried, p = sizes.through, first = c.size() + k.size();
          const Tensors values = joined({all.subspan(first, n + p), all.subspan(first + n + p + y.size())});
          const std::vector<size_t> moving = places(sizes, c, x, k);
          const auto of_moving = [&](Args some) {
            Tensors full = values;
            for (size_t i = 0; i < moving.size(); ++i) full[moving[i]] = some[i];
            const Tensors found = body->call(full);
            return joined({picked(Args(found).first(n), c), picked(Args(found).subspan(n), y)});
          };
          const Tensors g = joined({all.first(c.size()), all.subspan(first + n + p, y.size())});
          const Tensors found = vjp(of_moving, picked(values, moving)).pullback(g, false);  // of c, x, k
          Tensors next(found.begin(), found.begin() + static_cast<ptrdiff_t>(c.size()));
          for (size_t i = 0; i < k.size(); ++i)
            next.push_back(roles::add(impl(all[c.size() + i]), impl(found[c.size() + x.size() + i])));
          return joined({next, Args(found).subspan(c.size(), x.size())});
        },
        pullback_moves(c, x, k, y));
  }

  // What an argument moves in the cotangent of another one is what both move; a cotangent, what its result is moved by.
  std::vector<uint64_t> pullback_moves(const std::vector<size_t>& c, const std::vector<size_t>& x,
                                       const std::vector<size_t>& k, const std::vector<size_t>& y) const {
    const std::vector<uint64_t> of_body = moves_of(bodies_[0]);
    if (of_body.empty()) return {};
    const size_t n = sizes_.carried, p = sizes_.through;
    const std::vector<size_t> wanted = places(sizes_, c, {}, k), slices = places(sizes_, {}, x, {});
    const auto moved_by = [&](uint64_t results) {
      uint64_t bits = 0;
      for (size_t i = 0; i < wanted.size(); ++i)
        if (of_body[wanted[i]] & results) bits |= Forward::bit(i);
      for (size_t i = 0; i < slices.size(); ++i)
        if (of_body[slices[i]] & results) bits |= Forward::bit(wanted.size() + i);
      return bits;
    };
    std::vector<uint64_t> moves;
    for (size_t i : c) moves.push_back(moved_by(Forward::bit(i)));
    for (size_t i = 0; i < k.size(); ++i) moves.push_back(Forward::bit(c.size() + i));
    for (size_t i = 0; i < n + p; ++i) moves.push_back(moved_by(of_body[i]));
    for (size_t i : y) moves.push_back(moved_by(Forward::bit(n + i)));
    for (size_t i = n + p; i < sizes_.all(); ++i) moves.push_back(moved_by(of_body[i]));
    return moves;
  }

  // The arguments that have a cotangent if these results have one, or the carry has one in any step.
  std::vector<bool> moving_for(Args init, const std::vector<bool>& given) const {
    uint64_t bits = 0;
    for (size_t j = 0; j < given.size(); ++j)
      if (given[j]) bits |= Forward::bit(j);
    for (;;) {
      std::vector<bool> moving = moving_arguments(bodies_[0], bits, sizes_.all());
      uint64_t more = bits;
      for (size_t i : inexact_of(init, moving)) more |= Forward::bit(i);
      if (more == bits) {
        for (size_t i = 0; i < init.size(); ++i) moving[i] = moving[i] || given[i];
        return moving;
      }
      bits = more;
    }
  }

  // All: carry, its tangents; slices, theirs; constants, theirs. `moved`: the results that have one.
  Body tangent_body(std::vector<size_t> c, std::vector<size_t> x, std::vector<size_t> k, uint64_t moved) const {
    return make_body(bodies_[0]->name(), [body = bodies_[0], sizes = sizes_, c, x, k, moved](Args all) {
      const size_t n = sizes.carried, p = sizes.through, m = sizes.kept, tx = n + c.size() + p, tk = tx + x.size() + m;
      const Tensors values = joined({all.first(n), all.subspan(n + c.size(), p), all.subspan(tx + x.size(), m)});
      const std::vector<size_t> moving = places(sizes, c, x, k);
      const auto of_moving = [&](Args some) {
        Tensors full = values;
        for (size_t i = 0; i < moving.size(); ++i) full[moving[i]] = some[i];
        return body->call(full);
      };
      const Tensors t = joined({all.subspan(n, c.size()), all.subspan(tx, x.size()), all.subspan(tk)});
      const ValuesAndTangents both = backplane::jvp(of_moving, picked(values, moving), t);
      const Args found = both.values, along = both.tangents;
      return joined({found.first(n), picked(along.first(n), c), found.subspan(n),
                     picked(along.subspan(n), inexact_of(found.subspan(n), moved, n))});
    });
  }

  static std::vector<size_t> places(Sizes sizes, const std::vector<size_t>& c, const std::vector<size_t>& x,
                                    const std::vector<size_t>& k) {
    std::vector<size_t> all = c;
    for (size_t i : x) all.push_back(sizes.carried + i);
    for (size_t i : k) all.push_back(sizes.carried + sizes.through + i);
    return all;
  }

  Tensors slice(Args args, int64_t index) const {
    Tensors slices;
    for (const Tensor& t : group(args, 1)) slices.push_back(roles::select(impl(t), 0, index));
    return slices;
  }

  Tensors stacked(Args args, const std::vector<Tensors>& slices) const {
    Tensors whole;
    if (slices.empty()) {
      // Without a step, no body runs: running it could fail or never end.
      const Tensors found = static_cast<const ClosedFunction&>(*bodies_[0]).result_forms(body_examples(0, args));
      for (size_t j = sizes_.carried; j < found.size(); ++j) {
        std::vector<int64_t> shape{0};
        shape.insert(shape.end(), found[j].shape().begin(), found[j].shape().end());
        whole.push_back(zeros_of(shape, found[j]));
      }
      return whole;
    }
    for (size_t j = 0; j < slices[0].size(); ++j) {
      Tensors rows;
      std::vector<bp_tensor*> pieces;
      for (const Tensors& step : slices) {
        std::vector<int64_t> shape{1};
        shape.insert(shape.end(), step[j].shape().begin(), step[j].shape().end());
        pieces.push_back(rows.emplace_back(roles::reshape(impl(step[j]), shape)).get());
      }
      whole.push_back(roles::concat(pieces));
    }
    return whole;
  }

  // What no memory holds once it is stacked is refused before the other steps, which would run for long.
  void check_room(Args slices) const {
    for (const Tensor& t : slices) {
      const uint64_t room = device_of(*t.get()).properties.total_memory;
      uint64_t needed = 0;
      const bool beyond = __builtin_mul_overflow(t.get()->nbytes, static_cast<uint64_t>(length_), &needed);
      BP_CHECK(room == 0 || (!beyond && needed <= room), MEMORY, name(), ": ", length_, " steps with a result of ",
               form_text(t), " make a tensor of ", beyond ? "more than 2^64" : std::to_string(needed),
               " bytes, and the device has ", room, ". Fix: return less for each step, or carry the needed part");
    }
  }

  static Tensor swapped(const Tensor& t) {
    std::vector<int64_t> axes(static_cast<size_t>(t.ndim()));
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
    std::swap(axes[0], axes[1]);
    return roles::permute(impl(t), axes);
  }

  void check_lengths(Args args) const {
    BP_CHECK(length_ >= 0, VALUE, name(), ": argument length: found ", length_, ", expected 0 or more");
    for (const Tensor& t : group(args, 1))
      BP_CHECK(t.ndim() > 0 && t.shape()[0] == length_, SHAPE, name(),
               ": argument xs: expected tensors with axis 0 of size ", length_, "; found one ",
               t.ndim() == 0 ? "without dimensions" : "of another size");
  }

  Sizes sizes_;
  int64_t length_;
  bool reverse_;
};

[[gnu::constructor]] void register_scan() {
  add_function_maker("role:scan", [](const Call& call) -> std::shared_ptr<GraphFunction> {
    const std::vector<size_t> counts = counts_of(call);
    int64_t length = 0;
    bool reverse = false;
    for (int32_t i = 0; i < call.n_args; ++i) {
      const uint16_t type = call.op.record->args[static_cast<size_t>(i)].type;
      if (type == BP_TYPE_SIZE) length = call.args[i].u.i;
      if (type == BP_TYPE_BOOL) reverse = call.args[i].u.i != 0;
    }
    return std::make_shared<Scan>(call.op, bodies_of(call)[0], Sizes{counts[0], counts[1], counts[2]}, length, reverse);
  });
}

}  // namespace
}  // namespace backplane::core
