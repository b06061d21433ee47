#include "control/structured.hpp"

#include <string_view>

#include "backplane/device.hpp"
#include "backplane/transforms.hpp"
#include "call/formulas/role_calls.hpp"
#include "memory/devices/device.hpp"
#include "record/dtype_rules.hpp"
#include "record/shape_rules.hpp"
#include "tape/engine.hpp"
#include "tape/node.hpp"

namespace backplane::core {

Structured::Structured(const OpEntry& op, std::vector<Body> bodies, std::vector<size_t> counts)
    : ClosedFunction(std::string(op.record->name)), op_(op), bodies_(std::move(bodies)), counts_(std::move(counts)) {}

Args Structured::group(Args args, size_t k) const {
  size_t first = 0;
  for (size_t i = 0; i < k; ++i) first += counts_[i];
  return args.subspan(first, counts_[k]);
}

void Structured::check_carry(Args carried, Args found) const {
  BP_CHECK(found.size() >= carried.size(), TYPE, name(), ": its body returns ", found.size(), " tensors, but carries ",
           carried.size());
  for (size_t i = 0; i < carried.size(); ++i) {
    const bool same_dtype = carried[i].dtype() == found[i].dtype();
    BP_CHECK(same_dtype && same_shape(*carried[i].get(), *found[i].get()), SHAPE, name(),
             ": its body changes the shape or the dtype of the carry: element ", i, " comes as ", form_text(carried[i]),
             " and is returned as ", form_text(found[i]), ". Fix: ",
             same_dtype ? "return it with its original shape, or start with the returned shape"
                        : "cast the returned value with astype, or start with a value of the returned dtype");
  }
}

Tensors Structured::result_forms(Args args) const {
  std::vector<Tensors> of_bodies;
  for (size_t b = 0; b < bodies_.size(); ++b)
    of_bodies.push_back(static_cast<const ClosedFunction&>(*bodies_[b]).result_forms(body_examples(b, args)));
  return result_examples(args, of_bodies);
}

std::vector<Body> bodies_of(const Call& call) {
  std::vector<Body> bodies;
  for (int32_t i = 0; i < call.n_args; ++i) {
    if (call.args[i].tag != BP_TAG_GRAPH) continue;
    auto* function = static_cast<GraphFunction*>(const_cast<void*>(call.args[i].u.p));
    BP_CHECK(is_closed(*function), TYPE, call.op.record->name, ": its functions are graphs; found ", function->name());
    bodies.push_back(function->shared_from_this());
  }
  return bodies;
}

std::vector<size_t> counts_of(const Call& call) {
  std::vector<size_t> counts;
  for (int32_t i = 0; i < call.n_args; ++i) {
    const bp_arg_def& arg = call.op.record->args[static_cast<size_t>(i)];
    if (arg.type == BP_TYPE_TENSOR) counts.push_back(arg.flags & BP_ARG_LIST ? call.args[i].count : 1);
  }
  return counts;
}

Tensors call_structured(const std::shared_ptr<Structured>& function, Args args) {
  return call_graph(function->op(), *function, args);
}

Tensors (*traced_forms)(const Body& body, Args args) = nullptr;

namespace {

class BodyOfCallable final : public ClosedFunction {
 public:
  BodyOfCallable(const std::string& name, std::function<Tensors(Args)> function, std::vector<uint64_t> moves,
                 std::vector<uint64_t> forward_moves = {})
      : ClosedFunction(name, true),
        function_(std::move(function)),
        moves_(std::move(moves)),
        forward_moves_(std::move(forward_moves)) {}
  Tensors call(Args args) override { return function_(args); }
  std::vector<uint64_t> moves() const override { return moves_; }
  std::vector<uint64_t> forward_moves() const override { return forward_moves_; }
  Tensors result_forms(Args args) const override {
    return traced_forms(const_cast<BodyOfCallable*>(this)->shared_from_this(), args);
  }

 private:
  std::function<Tensors(Args)> function_;
  std::vector<uint64_t> moves_, forward_moves_;
};

}  // namespace

std::vector<uint64_t> moves_of(const Body& body) { return static_cast<const ClosedFunction&>(*body).moves(); }

Body make_body(const std::string& name, std::function<Tensors(Args)> function, std::vector<uint64_t> moves) {
  return std::make_shared<BodyOfCallable>(name, std::move(function), std::move(moves));
}

namespace {
std::vector<uint64_t> forward_moves_of(const Body& body) {
  return static_cast<const ClosedFunction&>(*body).forward_moves();
}
}  // namespace

uint64_t moved_results(const Body& body, const std::vector<bool>& moving, Mode mode) {
  const std::vector<uint64_t> moves = mode == Mode::kForward ? forward_moves_of(body) : moves_of(body);
  uint64_t results = 0;
  for (size_t i = 0; i < moving.size(); ++i)
    if (moving[i]) results |= moves.empty() ? ~uint64_t{0} : moves[i];
  return results;
}

std::vector<bool> moving_arguments(const Body& body, uint64_t results, size_t n_args) {
  const std::vector<uint64_t> moves = moves_of(body);
  std::vector<bool> moving;
  for (size_t i = 0; i < n_args; ++i) moving.push_back(((moves.empty() ? ~uint64_t{0} : moves[i]) & results) != 0);
  return moving;
}

void flag_moved_carry(const Body& body, Args args, size_t n_carried, std::vector<bool>& moving, Mode mode) {
  for (bool more = true; more;) {
    more = false;
    for (const size_t i : inexact_of(args.first(n_carried), moved_results(body, moving, mode))) {
      more = more || !moving[i];
      moving[i] = true;
    }
  }
}

Body batched_body(const Body& body, int64_t size, std::vector<bool> batched) {
  return std::make_shared<BodyOfCallable>(
      body->name(),
      [body, size, batched = std::move(batched)](Args args) {
        BatchScope scope(size, Randomness::kError, "vmap");
        Tensors rows;
        for (size_t i = 0; i < args.size(); ++i) rows.push_back(batched[i] ? scope.enter(args[i], 0) : args[i]);
        Tensors results = body->call(rows);
        for (Tensor& t : results) t = scope.leave(t, 0);
        return results;
      },
      moves_of(body), forward_moves_of(body));
}

Tensor example_of(Shape shape, const Tensor& like) {
  return Tensor::adopt(
      new_handle(device_at(like.device()), like.dtype(), static_cast<int32_t>(shape.size()), shape.data()));
}

std::vector<size_t> inexact_of(Args tensors) {
  std::vector<size_t> which;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (is_inexact(tensors[i].dtype())) which.push_back(i);
  return which;
}

std::vector<size_t> inexact_of(Args tensors, const std::vector<bool>& flags, size_t first_flag) {
  std::vector<size_t> which;
  for (size_t i : inexact_of(tensors))
    if (flags[first_flag + i]) which.push_back(i);
  return which;
}

std::vector<size_t> inexact_of(Args tensors, uint64_t bits, size_t first) {
  std::vector<size_t> which;
  for (size_t i : inexact_of(tensors))
    if (GraphFunction::Forward::bit(first + i) & bits) which.push_back(i);
  return which;
}

std::vector<bool> present_of(Args tensors) {
  std::vector<bool> present;
  for (const Tensor& t : tensors) present.push_back(static_cast<bool>(t));
  return present;
}

Tensors picked(Args tensors, const std::vector<size_t>& which) {
  Tensors found;
  for (size_t i : which) found.push_back(tensors[i]);
  return found;
}

Tensors joined(std::initializer_list<Args> lists) {
  Tensors all;
  for (Args list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Tensor zeros_of(Shape shape, const Tensor& like) { return filled(shape, 0.0, like.dtype(), like.device()); }

Tensor row_mask(const Tensor& rows, const Tensor& like) {
  std::vector<int64_t> shape(static_cast<size_t>(like.ndim()), 1);
  shape[0] = rows.shape()[0];
  return roles::reshape(impl(rows), shape);
}

Tensors filled_up(Args tensors, Args like) {
  Tensors full(tensors.begin(), tensors.end());
  for (size_t i = 0; i < full.size(); ++i)
    if (!full[i]) full[i] = zeros_of(like[i].shape(), like[i]);
  return full;
}

void check_condition(const Tensor& condition, const std::string& who) {
  BP_CHECK(condition.dtype() == BP_BOOL && element_count(*condition.get()) == 1, TYPE, who,
           ": its condition is a tensor of dtype ", dtype_name(condition.dtype()), " with ",
           element_count(*condition.get()), " elements; expected one bool. Fix: compare, or reduce with all or any");
}

bool read_condition(const Tensor& condition, const std::string& who) {
  check_condition(condition, who);
  uint8_t byte = 0;
  to_host(condition, &byte);
  return byte != 0;
}

std::string form_text(const Tensor& tensor) {
  return std::string(kDtypeNames[tensor.dtype()]) + " of shape " + shape_text(tensor.shape());
}

Tensor call_tagged(const char* tag, std::initializer_list<bp_value> args) {
  return Tensor::adopt(call_one(tagged_op(tag), args.begin(), static_cast<int32_t>(args.size())));
}

}  // namespace backplane::core
