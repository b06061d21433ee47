#include "graph/updates.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "backplane/autograd.hpp"
#include "backplane/operand.hpp"
#include "call/formulas/role_calls.hpp"
#include "levels/level.hpp"
#include "memory/tensors/shared_bytes.hpp"
#include "registry/tagged_op.hpp"
#include "tape/node.hpp"

namespace backplane::core::graph {
namespace {

// The setting of the innermost level that has one, for a scope.
class WithoutRecording {
 public:
  explicit WithoutRecording(bool wanted) : wanted_(wanted), before_(wanted && set_grad_enabled(false)) {}
  ~WithoutRecording() {
    if (wanted_) set_grad_enabled(before_);
  }
  WithoutRecording(const WithoutRecording&) = delete;

 private:
  const bool wanted_, before_;
};

// A copy into a given output has no history; an in-place call has one.
void write(const Tensor& target, const Tensor& value, bool recorded) {
  // The levels would take a copy between tensors from outside for a value of their own.
  std::optional<BelowLevel> outside;
  if (Level* lowest = thread_state.level; lowest && !impl(target)->wrapper && !impl(value)->wrapper) {
    while (lowest->below) lowest = lowest->below;
    outside.emplace(*lowest);
  }
  const WithoutRecording without(!recorded);
  if (!grad_enabled() || !(wants_grad(impl(target)) || wants_grad(impl(value))))
    return roles::cast_into(impl(value), impl(target), roles::kAllKeys);
  static const OpHandle assign = tagged_op("role:assign").handle;
  const Shape none;
  const bp_value args[] = {backplane::value(target), backplane::value(value), backplane::value(none),
                           backplane::value(none),   backplane::value(none),  backplane::value(none)};
  detail::call_in_place(assign, args);
}

// Was the value written where the target is, by a plan?
bool is_in_place(const Tensor& target, const Tensor& value) {
  const TensorImpl *t = impl(target), *v = impl(value);
  return t->storage && t->storage == v->storage && t->dl.byte_offset == v->dl.byte_offset && !t->wrapper;
}

// Whose memory it is: its storage, or the tensor of a transform that it is a view of.
const void* memory_of(const Tensor& tensor) {
  const TensorImpl* t = impl(tensor);
  if (!t->wrapper) return t->storage;
  while (t->view) t = t->view->base;
  return t;
}

}  // namespace

std::string name_of_target(const Graph& graph, const Update& update) {
  const Value& value = graph.value(update.target);
  if (value.kind == Value::Kind::kInput) return "its argument " + graph.inputs()[value.index].name;
  const std::string& name = graph.constants()[value.index].name;
  return "a tensor from outside" + (name.empty() ? "" : " (" + name + ")");
}

Updates::Updates(const Graph& graph) : graph_(graph) {
  if (empty()) return;
  std::unordered_map<ValueId, size_t> updates;
  for (size_t i = 0; i < graph.updates.size(); ++i) updates.emplace(graph.outputs[graph.n_results() + i], i);
  for (size_t k = 0; k < graph.n_results(); ++k) {
    ViewChain chain = view_chain(graph, graph.outputs[k], [&](ValueId v) { return updates.contains(v); });
    if (chain.base != kNone) views_.push_back({k, updates.at(chain.base), std::move(chain)});
  }
}

const Tensor& Updates::target(std::span<const Tensor> inputs, size_t update) const {
  const Value& value = graph_.value(graph_.updates[update].target);
  return value.kind == Value::Kind::kInput ? inputs[value.index] : graph_.constants()[value.index].tensor;
}

std::string Updates::name_of_value(ValueId value) const { return name_of_target(graph_, {value, true}); }

namespace {

struct Place {
  const void* memory;
  ValueId value;
  const Tensor* tensor;
};

bool share(const Place& a, const Place& b) {
  const TensorImpl *s = impl(*a.tensor), *t = impl(*b.tensor);
  if (s->wrapper || t->wrapper) return a.memory == b.memory;
  return may_share_bytes(*s, *t);
}

}  // namespace

std::string Updates::shared_memory(std::span<const Tensor> inputs) const {
  if (empty() || inputs.size() != graph_.inputs().size()) return "";  // a run says the latter
  std::vector<Place> places;
  for (size_t i = 0; i < inputs.size(); ++i)
    places.push_back({memory_of(inputs[i]), graph_.inputs()[i].value, &inputs[i]});
  for (const Constant& c : graph_.constants()) places.push_back({memory_of(c.tensor), c.value, &c.tensor});
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.memory < b.memory; });
  const auto number = [&](ValueId v) {
    const Value& value = graph_.value(v);
    return value.index + (value.kind == Value::Kind::kConstant ? graph_.inputs().size() : 0);
  };
  std::vector<const Place*> of_value(places.size(), nullptr), external;
  for (const Place& p : places) {
    of_value[number(p.value)] = &p;
    if (!impl(*p.tensor)->wrapper && is_external(impl(*p.tensor)->storage)) external.push_back(&p);
  }
  for (const Update& update : graph_.updates) {
    const Place& own = *of_value[number(update.target)];
    const auto refuse = [&](const Place& other) {
      return "graph " + graph_.name + ": changes " + name_of_target(graph_, update) + " in place, with which " +
             name_of_value(other.value) + " shares memory";
    };
    const auto [first, last] = std::equal_range(places.begin(), places.end(), own,
                                                [](const Place& a, const Place& b) { return a.memory < b.memory; });
    for (auto other = first; other != last; ++other)
      if (&*other != &own && share(own, *other)) return refuse(*other);
    if (external.empty()) continue;
    for (const Place& other : places)
      if (other.memory != own.memory && share(own, other)) return refuse(other);
  }
  return "";
}

void Updates::check(std::span<const Tensor> inputs) const {
  const std::string shared = shared_memory(inputs);
  BP_CHECK(shared.empty(), VALUE, shared, ". Fix: give it a copy, or call the function itself");
}

std::vector<Tensor> Updates::carry_out(std::span<const Tensor> inputs, std::vector<Tensor> outputs) const {
  if (empty()) return outputs;
  const size_t n = graph_.n_results();
  for (size_t i = 0; i < graph_.updates.size(); ++i)
    if (!is_in_place(target(inputs, i), outputs[n + i]))
      write(target(inputs, i), outputs[n + i], graph_.updates[i].recorded);
  outputs.resize(n);
  for (const View& view : views_) outputs[view.result] = taken(graph_, view.chain, target(inputs, view.update));
  return outputs;
}

}  // namespace backplane::core::graph
