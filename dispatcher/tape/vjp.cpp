// One node backwards: its saved values are checked and handed to the formulas of its record.
#include "tape/vjp.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/device.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/run_formula.hpp"
#include "levels/inplace.hpp"
#include "levels/level.hpp"
#include "record/owned_value.hpp"
#include "tape/engine.hpp"
#include "tape/sites.hpp"
#include "tape/sums.hpp"

namespace backplane::core {
namespace {

void check_version(const Node& node, const bp_tensor* tensor, uint32_t saved) {
  auto* t = static_cast<TensorImpl*>(const_cast<bp_tensor*>(tensor));
  if (t->wrapper && t->view) refresh(t);  // its base may have changed since
  const uint32_t now = version_now(*t);
  BP_CHECK(now == saved, VALUE, "backward: a tensor that ", node.op->record->name,
           " saved was changed in place since: it had version ", saved, ", now ", now,
           ". Fix: use the out-of-place form, or copy the tensor before the change");
}

Tensor zeros(const TensorMeta& meta) {
  return filled(Shape(meta.shape(), static_cast<size_t>(meta.ndim)), 0.0, meta.dtype, meta.device);
}

bool leads(const PathsTo* paths, const Edge& edge) { return edge.node && (!paths || paths->leads(edge.node)); }

void put_vjp(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, const PathsTo* paths) {
  const OpEntry& op = *node->op;
  const OpRecord& record = *op.record;
  const bp_formula* put = record.find_formula(BP_RULE_PUT);
  BP_CHECK(put, INTERNAL, record.name, ": a view without a put formula was written to");
  bp_value args[kMaxArgs];
  for (uint32_t i = 0; i < node->n_args; ++i) args[i] = node->values()[i];
  args[record.def.alias] = cotangents[0];
  if (leads(paths, node->edges()[1])) out[1] = Tensor::adopt(call_one(op, args, node->n_args));
  if (!leads(paths, node->edges()[0])) return;
  Tensor piece = zeros(node->metas[0]);
  out[0] = run_put(op, *put, args, value(piece));
}

// The arguments and results as the formulas read them.
struct Environment {
  bp_value args[kMaxArgs];
  bp_value outs[kMaxResults];
  bp_value cotangents[kMaxResults];
  std::vector<Tensor> held;
};

void load_saved(Node* node, uint32_t i, bp_value& to, const bp_value& like, bool create_graph, Environment& env) {
  const bp_value& v = node->values()[i];
  to = v;
  switch (node->saved()[i]) {
    case Saved::kTensor:
      check_version(*node, v.u.t, v.count);
      to.count = 0;
      break;
    case Saved::kResult:
      check_version(*node, v.u.t, v.count);
      to.count = 0;
      // Constant results (integers, nondiff) never had a history.
      if (TensorImpl* t = impl(v.u.t); create_graph && is_inexact(t->dtype) &&
                                       !(node->op->record->results[i - node->n_args].flags & BP_RESULT_NONDIFF)) {
        env.held.push_back(Tensor::adopt(new_alias(*t)));
        set_history(impl(env.held.back()), node, i - node->n_args, kTapeKey);
        to.u.t = env.held.back().get();
      }
      break;
    case Saved::kLikeOutput:
      to = like;
      break;
    case Saved::kList:
      for (uint32_t k = 0; k < v.count; ++k)
        if (v.u.tensors[k])
          check_version(*node, v.u.tensors[k],
                        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(v.u.tensors[v.count + k])));
      break;
    case Saved::kPlain:
      if (v.tag == BP_TAG_ABSENT) to.count = 0;
      break;
    case Saved::kMeta:
      break;
  }
}

void load(Node* node, const bp_value* cotangents, bool create_graph, Environment& env) {
  for (uint32_t i = 0; i < node->n_args; ++i) load_saved(node, i, env.args[i], cotangents[0], create_graph, env);
  for (uint32_t j = 0; j < node->n_outs; ++j) {
    load_saved(node, node->n_args + j, env.outs[j], cotangents[0], create_graph, env);
    env.cotangents[j] = cotangents[j];
  }
}

uint32_t edge_count(Node* node, uint32_t i) {
  if (node->op->record->args[i].type != BP_TYPE_TENSOR) return 0;
  const bp_value& v = node->values()[i];
  switch (node->saved()[i]) {
    case Saved::kList:
      return v.count;
    case Saved::kPlain:
      return v.tag == BP_TAG_ABSENT ? v.count : 0;  // an argument that nothing reads keeps its count
    default:
      return 1;
  }
}

// A list of cotangents has one per tensor of its argument.
void check_list(Node& node, uint32_t arg, const bp_value& found, bp_value* results, uint32_t n_results) {
  const uint32_t expected = edge_count(&node, arg), count = found.count;
  if (count == expected) [[likely]]
    return;
  for (uint32_t k = 0; k < n_results; ++k) release_owned(results[k], [](bp_tensor* t) { release(impl(t)); });
  const OpRecord& record = *node.op->record;
  detail::fail(BP_ERROR_VALUE, record.name, ": its vjp rule gives ", count, " cotangents for \"", record.args[arg].name,
               "\"; expected one per tensor, ", expected);
}

void make_absent_cotangents(Node* node, const bp_formula& formula, Environment& env) {
  if (formula.flags & BP_FORMULA_PASS_ZEROS) return;
  for (uint32_t j = 0; j < node->n_outs; ++j)
    if (env.cotangents[j].tag == BP_TAG_ABSENT && node->metas &&
        !(node->op->record->results[j].flags & BP_RESULT_NONDIFF)) {
      env.held.push_back(zeros(node->metas[j]));
      env.cotangents[j] = value(env.held.back());
    }
}

}  // namespace

void node_vjp(Node* node, const bp_value* cotangents, std::vector<Tensor>& out, bool create_graph, const PathsTo* paths,
              const Tensor* const* sums) {
  const AtSite at(*node);
  if (node->kind == Node::Kind::kPut) return put_vjp(node, cotangents, out, paths);
  if (node->kind == Node::Kind::kGraph) return node->graph->backward(node, cotangents, out, create_graph);
  if (node->kind == Node::Kind::kMove) {
    out[0] = to_device(Tensor::share(cotangents[0].u.t), node->source);
    return;
  }
  const OpEntry& op = *node->op;
  const OpRecord& record = *op.record;
  Environment env;
  load(node, cotangents, create_graph, env);
  FormulaInputs inputs;
  inputs.args = env.args;
  inputs.outs = env.outs;
  inputs.cotangents = env.cotangents;
  uint64_t needs = node->needs;
  uint32_t first_edge[kMaxArgs];
  for (uint32_t i = 0, e = 0; i < node->n_args; ++i) {
    first_edge[i] = e;
    const uint32_t end = e + edge_count(node, i);
    if (paths && i < 63 &&
        std::none_of(node->edges() + e, node->edges() + end, [&](const Edge& edge) { return leads(paths, edge); }))
      needs &= ~(uint64_t{1} << i);
    e = end;
  }
  inputs.needs = needs;
  uint64_t done = 0;
  for (uint32_t i = 0; i < node->n_args; ++i) {
    if (!(needs >> (i < 63 ? i : 63) & 1) || (i < 64 && done >> i & 1)) continue;
    const bp_formula* formula = op.vjp_of_arg[i];
    BP_CHECK(formula, NOT_IMPLEMENTED, record.name, ": has no derivative with respect to \"", record.args[i].name,
             "\"; state one under vjp in its entry (", record.def.file ? record.def.file : "?", ":", record.def.line,
             ")");
    BP_CHECK(!(formula->flags & BP_FORMULA_REFUSED), NOT_IMPLEMENTED, record.name,
             ": has no derivative with respect to \"", record.args[i].name, "\": ", formula->text ? formula->text : "");
    for (uint32_t k = 0; k < formula->n_targets; ++k) done |= uint64_t{1} << formula->targets[k];
    if (formula->flags & BP_FORMULA_ZERO) continue;
    make_absent_cotangents(node, *formula, env);
    if (sums && sums[first_edge[i]] && add_part(op, i, *formula, inputs, *sums[first_edge[i]], create_graph)) continue;
    bp_value results[kMaxArgs];
    std::fill_n(results, formula->n_targets, bp_value{});
    run_formula(op, *formula, inputs, results);
    for (uint32_t k = 0; k < formula->n_targets; ++k) {
      bp_value& r = results[k];
      uint32_t edge = first_edge[formula->targets[k]];
      if (r.tag == BP_TAG_TENSOR_LIST) {
        check_list(*node, formula->targets[k], r, results, formula->n_targets);
        for (uint32_t m = 0; m < r.count; ++m)
          if (r.u.tensors[m]) out[edge + m] = Tensor::share(r.u.tensors[m]);
      } else if (r.tag == BP_TAG_TENSOR) {
        out[edge] = Tensor::share(r.u.t);
      }
      release_owned(r, [](bp_tensor* t) { release(impl(t)); });
    }
  }
}

}  // namespace backplane::core
