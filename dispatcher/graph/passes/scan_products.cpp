#include "graph/passes/scan_products.hpp"

#include <algorithm>

#include "graph/extract.hpp"
#include "graph/passes/dead_code.hpp"
#include "graph/passes/products.hpp"
#include "graph/shown_values.hpp"
#include "record/dtype_rules.hpp"
#include "registry/tagged_op.hpp"

namespace backplane::core::graph {
namespace {

constexpr int64_t kMostBytes = 64 << 20;

using Values = std::vector<ValueId>;
using Dims = std::vector<Dim>;

bool may_move(const Node& node) {
  return is_product(node) && node.n_arguments == 2 && !(node.flags & Node::kRecomputed);
}

// The arguments of a scan: its body, carry, sequences and constants, each a tensor of the graph.
struct ScanCall {
  uint32_t body = 0;
  Values groups[3];
  size_t group_at[3] = {}, body_at = 0;
  int64_t length = -1;  // no number

  const Values& carried() const { return groups[0]; }
  const Values& through() const { return groups[1]; }
  const Values& kept() const { return groups[2]; }

  ScanCall(const Graph& graph, const Node& node) {
    const std::span<const Argument> arguments = graph.arguments(node);
    for (size_t i = 0, next = 0; i < arguments.size(); ++i) {
      const Argument& a = arguments[i];
      if (a.is_graph()) body = a.graph(), body_at = i;
      if (a.is_values() && next < 3) {
        for (const ValueId v : a.values()) groups[next].push_back(graph.resolve(v));
        group_at[next++] = i;
      }
      if (a.plain.tag == BP_TAG_INT && !a.is_symbolic()) length = a.plain.u.i;
    }
  }
};

// One scan. `outer` values belong to the graph around the body.
class Moving {
 public:
  // `body_use`: how often nodes of the graph have each of its functions.
  Moving(Graph& graph, NodeId scan, std::span<const uint32_t> body_use)
      : graph_(graph),
        body_use_(body_use),
        scan_(scan),
        node_(graph.node(scan)),
        call_(graph, node_),
        body_holder_(graph.graphs[call_.body]),
        body_(*body_holder_) {}
  size_t run();

 private:
  // A result that was a product, and now is its left operand.
  struct Late {
    size_t result;
    ValueId product;
  };
  // A carry that adds left.mT @ right in each step, and becomes one such product of all rows.
  struct Sum {
    size_t carried;
    ValueId left, right;
    const OpEntry* product;
  };

  bool is_readable() const;
  void read_body();
  void find_early(const Node& node);
  void find_late(size_t result);
  void find_sum(size_t carried);
  const Node& maker(ValueId v) const { return body_.node(body_.value(v).node); }
  bool is_of_one_reader(ValueId v) const { return body_.value(v).kind == Value::Kind::kResult && uses_[v] == 1; }
  ValueId operand(const Node& node, size_t i) const { return body_.arguments(node)[i].value(); }
  bool is_constant_matrix(ValueId v) const { return constant_[v] && body_.dims(v).size() == 2; }
  bool fits(ValueId v) const;

  ValueId input(size_t i) const { return body_.inputs()[i].value; }
  bool is_summed(size_t carried) const {
    return std::ranges::any_of(sums_, [&](const Sum& s) { return s.carried == carried; });
  }
  size_t result(ValueId v);
  void list_results();
  void insert_scan();
  void replace_results();

  Dims stacked(ValueId v) const;
  ValueId insert(const OpEntry& op, std::span<const Argument> arguments, const Type& type) {
    return graph_.node(graph_.insert_node(scan_, op, arguments, {&type, 1}, node_.location, node_.flags)).first_result;
  }
  ValueId outer_constant(ValueId v);
  ValueId product_of_all(const Node& product, ValueId outer_left);
  ValueId rows_of_all(ValueId v);
  ValueId transposed(ValueId outer);
  ValueId outer_result(size_t i) const { return first_result_ + static_cast<ValueId>(carried_on_.size() + i); }

  Graph& graph_;
  const std::span<const uint32_t> body_use_;
  const NodeId scan_;
  const Node node_;
  const ScanCall call_;
  const std::shared_ptr<const Graph> body_holder_;
  const Graph& body_;
  // By value of the body.
  std::vector<uint32_t> uses_;
  std::vector<bool> constant_;  // the same in all steps: something kept, or a view of it
  Values outer_constants_;      // of the constant ones, once made
  Values outer_rows_;           // of all steps: of what is gone through, and of products before the scan
  Values early_;
  std::vector<Late> late_;
  std::vector<Sum> sums_;
  Values carried_on_, results_;  // what the new body gives
  ValueId first_result_ = kNone;
};

bool Moving::is_readable() const {
  const size_t n = call_.carried().size();
  return call_.length > 1 && body_.symbols().empty() && body_.draws.empty() && body_.updates.empty() &&
         body_.inputs().size() == n + call_.through().size() + call_.kept().size() && body_.outputs.size() >= n &&
         body_.outputs.size() == node_.n_results;
}

void Moving::read_body() {
  const size_t n = call_.carried().size(), p = call_.through().size(), count = body_.values().size();
  uses_.assign(count, 0);
  constant_.assign(count, false);
  outer_constants_.assign(count, kNone);
  outer_rows_.assign(count, kNone);
  for (size_t i = 0; i < p; ++i) outer_rows_[input(n + i)] = call_.through()[i];
  for (size_t i = 0; i < call_.kept().size(); ++i) {
    constant_[input(n + p + i)] = true;
    outer_constants_[input(n + p + i)] = call_.kept()[i];
  }
  for (const ValueId v : body_.outputs) ++uses_[v];
  const std::vector<bool> needed = needed_nodes(body_, body_.outputs);
  for (NodeId id = 0; id < body_.nodes().size(); ++id) {
    if (!needed[id]) continue;
    const Node& node = body_.node(id);
    bool constant = is_view(node) && node.n_results == 1;
    for (const Argument& a : body_.arguments(node)) constant = constant && !a.is_values();
    Graph::each_value(body_.arguments(node), [&](ValueId v) {
      ++uses_[v];
      constant = constant && constant_[v];
    });
    constant_[node.first_result] = constant;
    find_early(node);
  }
}

// Are the rows of all steps of a bearable size?
bool Moving::fits(ValueId v) const {
  int64_t bytes = call_.length * kItemSize[body_.value(v).dtype];
  for (const Dim dim : body_.dims(v))
    if (__builtin_mul_overflow(bytes, dim.number(), &bytes)) return false;
  return bytes <= kMostBytes;
}

void Moving::find_early(const Node& node) {
  if (!may_move(node)) return;
  const ValueId left = operand(node, 0), product = node.first_result;
  if (outer_rows_[left] == kNone || body_.dims(left).empty() || !is_constant_matrix(operand(node, 1)) || !fits(product))
    return;
  outer_rows_[product] = product_of_all(node, outer_rows_[left]);
  early_.push_back(product);
}

void Moving::find_late(size_t result) {
  const ValueId product = body_.outputs[result];
  if (!is_of_one_reader(product) || !may_move(maker(product)) || outer_rows_[product] != kNone) return;
  const ValueId left = operand(maker(product), 0);
  if (constant_[left] || body_.dims(left).empty() || !is_constant_matrix(operand(maker(product), 1)) || !fits(left) ||
      !fits(product))
    return;
  late_.push_back({result, product});
}

void Moving::find_sum(size_t carried) {
  const ValueId before = input(carried), after = body_.outputs[carried];
  if (uses_[before] != 1 || !is_of_one_reader(after) || maker(after).op != &role_op(Role::kAdd)) return;
  const std::span<const Argument> terms = body_.arguments(maker(after));
  if (!terms[0].is_value() || !terms[1].is_value() || (terms[0].value() != before && terms[1].value() != before))
    return;
  const ValueId product = terms[terms[0].value() == before].value();
  if (!is_of_one_reader(product) || !may_move(maker(product))) return;
  const Type type = body_.type(before), of_product = body_.type(product);
  if (type.dtype != of_product.dtype || !std::ranges::equal(type.dims, of_product.dims)) return;
  const ValueId turned = operand(maker(product), 0), right = operand(maker(product), 1);
  if (body_.value(turned).kind != Value::Kind::kResult || maker(turned).op != &role_op(Role::kPermute)) return;
  const ValueId left = operand(maker(turned), 0);
  const bp_value& axes = body_.arguments(maker(turned))[1].plain;
  if (axes.count != 2 || axes.u.ints[0] % 2 == 0 || body_.dims(right).size() != 2 || constant_[left] ||
      constant_[right] || !fits(left) || !fits(right))
    return;
  sums_.push_back({carried, left, right, maker(product).op});
}

// Its place among the results of the new body.
size_t Moving::result(ValueId v) {
  const auto found = std::ranges::find(results_, v);
  if (found == results_.end()) results_.push_back(v);
  return static_cast<size_t>(found - results_.begin());
}

Dims Moving::stacked(ValueId v) const {
  Dims dims{call_.length};
  const std::span<const Dim> own = body_.dims(v);
  dims.insert(dims.end(), own.begin(), own.end());
  return dims;
}

ValueId Moving::outer_constant(ValueId v) {
  if (outer_constants_[v] != kNone) return outer_constants_[v];
  std::vector<Argument> arguments;
  for (const Argument& a : body_.arguments(maker(v)))
    arguments.push_back(a.is_value() ? Argument::of(outer_constant(a.value())) : graph_.copy(a.plain));
  return outer_constants_[v] = insert(*maker(v).op, arguments, body_.type(v));
}

ValueId Moving::product_of_all(const Node& product, ValueId outer_left) {
  const Argument factors[] = {Argument::of(outer_left), Argument::of(outer_constant(operand(product, 1)))};
  const Type type = body_.type(product.first_result);
  const Dims dims = stacked(product.first_result);
  return insert(*product.op, factors, {type.dtype, type.device, dims});
}

// The matrices of all steps, one below the other.
ValueId Moving::rows_of_all(ValueId v) {
  const ValueId outer = outer_rows_[v] != kNone ? outer_rows_[v] : outer_result(result(v));
  const Type type = body_.type(v);
  const Dims dims{call_.length * type.dims[0].number(), type.dims[1]};
  const Argument arguments[] = {Argument::of(outer), graph_.sizes_of(dims)};
  return insert(role_op(Role::kReshape), arguments, {type.dtype, type.device, dims});
}

ValueId Moving::transposed(ValueId outer) {
  const Type type = graph_.type(outer);
  const Dims dims{type.dims[1], type.dims[0]};
  const int64_t axes[] = {1, 0};
  const Argument arguments[] = {Argument::of(outer), graph_.copy(backplane::value(Shape(axes)))};
  return insert(role_op(Role::kPermute), arguments, {type.dtype, type.device, dims});
}

// The carry, the earlier results, and the factors that are multiplied once all steps have run.
void Moving::list_results() {
  const size_t n = call_.carried().size();
  for (size_t i = 0; i < n; ++i)
    if (!is_summed(i)) carried_on_.push_back(body_.outputs[i]);
  results_.assign(body_.outputs.begin() + static_cast<ptrdiff_t>(n), body_.outputs.end());
  for (const Late& late : late_) results_[late.result - n] = operand(maker(late.product), 0);
  for (const Sum& s : sums_)
    for (const ValueId v : {s.left, s.right})
      if (outer_rows_[v] == kNone) result(v);
}

void Moving::insert_scan() {
  const size_t n = call_.carried().size(), p = call_.through().size();
  Values outputs = carried_on_;
  outputs.insert(outputs.end(), results_.begin(), results_.end());
  std::vector<bool> read(body_.values().size(), false);
  const std::vector<bool> needed = needed_nodes(body_, outputs, early_);
  for (NodeId id = 0; id < body_.nodes().size(); ++id)
    if (needed[id]) Graph::each_value(body_.arguments(body_.node(id)), [&](ValueId v) { read[v] = true; });
  for (const ValueId v : outputs) read[v] = true;

  Values inputs, groups[3];
  for (size_t i = 0; i < n; ++i)
    if (!is_summed(i)) inputs.push_back(input(i)), groups[0].push_back(call_.carried()[i]);
  for (size_t i = 0; i < p; ++i)
    if (read[input(n + i)]) inputs.push_back(input(n + i)), groups[1].push_back(call_.through()[i]);
  for (const ValueId v : early_)
    if (read[v]) inputs.push_back(v), groups[1].push_back(outer_rows_[v]);
  for (size_t i = 0; i < call_.kept().size(); ++i)
    if (read[input(n + p + i)]) inputs.push_back(input(n + p + i)), groups[2].push_back(call_.kept()[i]);

  const bool is_shared = body_use_[call_.body] > 1;
  const auto body = is_shared ? static_cast<uint32_t>(graph_.graphs.size()) : call_.body;
  if (is_shared) graph_.graphs.emplace_back();
  graph_.graphs[body] = extract(body_, inputs, outputs);
  const std::span<const Argument> old = graph_.arguments(node_);
  std::vector<Argument> arguments(old.begin(), old.end());
  arguments[call_.body_at] = Argument::of_graph(body);
  for (size_t g = 0; g < 3; ++g) arguments[call_.group_at[g]] = graph_.list(groups[g]);
  std::vector<Dims> dims;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::span<const Dim> own = body_.dims(outputs[i]);
    dims.push_back(i < carried_on_.size() ? Dims(own.begin(), own.end()) : stacked(outputs[i]));
  }
  std::vector<Type> types;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Type type = body_.type(outputs[i]);
    types.push_back({type.dtype, type.device, dims[i]});
  }
  const NodeId scan = graph_.insert_node(scan_, *node_.op, arguments, types, node_.location, node_.flags);
  first_result_ = graph_.node(scan).first_result;
}

void Moving::replace_results() {
  const size_t n = call_.carried().size();
  ValueId next = first_result_;
  for (size_t i = 0; i < n; ++i)
    if (!is_summed(i)) graph_.replace_uses(node_.first_result + static_cast<ValueId>(i), next++);
  for (const Sum& s : sums_) {
    const Type type = body_.type(input(s.carried));
    const Argument factors[] = {Argument::of(transposed(rows_of_all(s.left))), Argument::of(rows_of_all(s.right))};
    const Argument terms[] = {Argument::of(call_.carried()[s.carried]),
                              Argument::of(insert(*s.product, factors, type))};
    graph_.replace_uses(node_.first_result + static_cast<ValueId>(s.carried), insert(role_op(Role::kAdd), terms, type));
  }
  for (size_t j = n; j < node_.n_results; ++j) {
    const auto late = std::ranges::find(late_, j, &Late::result);
    ValueId now = outer_result(j - n);
    if (late != late_.end()) now = product_of_all(maker(late->product), now);
    graph_.replace_uses(node_.first_result + static_cast<ValueId>(j), now);
  }
  graph_.erase(scan_);
}

size_t Moving::run() {
  if (!is_readable()) return 0;
  read_body();
  for (size_t i = 0; i < call_.carried().size(); ++i) find_sum(i);
  for (size_t j = call_.carried().size(); j < body_.outputs.size(); ++j) find_late(j);
  const size_t moved = early_.size() + late_.size() + sums_.size();
  if (moved == 0) return 0;
  list_results();
  insert_scan();
  replace_results();
  return moved;
}

}  // namespace

size_t move_products_out_of_scans(Graph& graph) {
  if (graph.graphs.empty()) return 0;
  const OpEntry& scan = tagged_op("role:scan");
  const auto n = static_cast<NodeId>(graph.nodes().size());
  std::vector<uint32_t> use(graph.graphs.size(), 0);
  for (NodeId id = 0; id < n; ++id)
    for (const Argument& a : graph.arguments(graph.node(id)))
      if (a.is_graph() && !graph.is_erased(id)) ++use[a.graph()];
  size_t moved = 0;
  for (NodeId id = 0; id < n; ++id)
    if (!graph.is_erased(id) && graph.node(id).op == &scan) moved += Moving(graph, id, use).run();
  if (moved) graph.compact();
  return moved;
}

}  // namespace backplane::core::graph
