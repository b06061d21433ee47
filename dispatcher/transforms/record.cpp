// Recording: from a call to its node. What is saved is what the formulas that are still needed read.
#include <cstring>

#include "core/device_call.hpp"
#include "core/dtype_rules.hpp"
#include "core/epoch.hpp"
#include "transforms/level.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {
namespace {

bool differentiable(const OpEntry& op, size_t result, const TensorImpl* t) {
  return t && (BP_DTYPE_BIT(t->dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) &&
         !(op.record->results[result].flags & BP_RESULT_NONDIFF);
}

size_t extra_bytes(const bp_value& v) {
  switch (v.tag) {
    case BP_TAG_STRING:
      return (v.count + 8u) & ~size_t{7};
    case BP_TAG_COMPLEX:
      return 2 * sizeof(double);
    case BP_TAG_GENERATOR:
      return sizeof(bp_generator_state);
    case BP_TAG_INT_LIST:
      return v.count * sizeof(int64_t);
    case BP_TAG_FLOAT_LIST:
      return v.count * sizeof(double);
    case BP_TAG_BOOL_LIST:
      return (v.count + 7u) & ~size_t{7};
    case BP_TAG_VALUE_LIST:
      return v.count * sizeof(bp_value);
    default:
      return 0;
  }
}

// What a value points to moves behind `place`.
bp_value copy_plain(const bp_value& v, char*& place) {
  bp_value copy = v;
  size_t bytes = extra_bytes(v);
  if (bytes == 0) return copy;
  size_t exact = v.tag == BP_TAG_STRING ? v.count + 1u : v.tag == BP_TAG_BOOL_LIST ? v.count : bytes;
  std::memcpy(place, v.u.p, exact);
  copy.u.p = place;
  place += bytes;
  return copy;
}

uint32_t version_now(const TensorImpl& t, const Recorded& r) {
  if (!t.storage) return t.wrapper ? t.wrapper->version : 0;
  return t.storage == r.mutated ? r.version : t.storage->version.load(std::memory_order_relaxed);
}

void save_tensor(Node* node, size_t i, TensorImpl* t, const Recorded& r) {
  retain(t);
  node->values()[i] = tensor_value(t);
  node->values()[i].count = version_now(*t, r);
  node->saved()[i] = Saved::kTensor;
}

void save_list(Node* node, size_t i, const bp_value& v, const Recorded& r) {
  auto** copy = new bp_tensor*[2 * static_cast<size_t>(v.count)];
  for (uint32_t k = 0; k < v.count; ++k) {
    copy[k] = v.u.tensors[k];
    if (copy[k]) retain(impl(copy[k]));
    copy[v.count + k] = reinterpret_cast<bp_tensor*>(uintptr_t{copy[k] ? version_now(*impl(copy[k]), r) : 0});
  }
  node->values()[i] = v;
  node->values()[i].u.tensors = copy;
  node->saved()[i] = Saved::kList;
}

void save_argument(Node* node, size_t i, const Recorded& r, const FreeNames& reads, const bp_tensor* out0,
                   char*& place) {
  const bp_value& v = r.args[i];
  uint64_t bit = uint64_t{1} << (i < 63 ? i : 63);
  if (v.tag == BP_TAG_TENSOR_LIST) {
    if ((reads.args | reads.arg_metadata) & bit)
      save_list(node, i, v, r);
    else
      node->values()[i].count = v.count;  // as many edges
  } else if (v.tag != BP_TAG_TENSOR) {
    node->values()[i] = copy_plain(v, place);
    node->values()[i].flags = v.flags;
  } else if (reads.args & bit) {
    save_tensor(node, i, impl(v.u.t), r);
  } else if (reads.arg_metadata & bit) {
    if (out0 && out0->dtype == v.u.t->dtype && same_shape(*out0, *v.u.t)) {
      node->saved()[i] = Saved::kLikeOutput;
    } else {
      node->values()[i] =
          tensor_value(new_handle(device_of(*impl(v.u.t)), v.u.t->dtype, v.u.t->dl.ndim, v.u.t->dl.shape));
      node->saved()[i] = Saved::kMeta;
    }
  } else {
    node->values()[i].count = 1;  // an edge
  }
}

// A result is kept without its history, or node and result would own each other.
void save_result(Node* node, size_t slot, TensorImpl* inner, bool is_result, const Recorded& r) {
  if (!is_result) return save_tensor(node, slot, inner, r);
  retain(inner->storage);
  TensorImpl* alias = new_tensor_over(inner->storage, inner->dtype, inner->dl.ndim, inner->dl.shape, inner->dl.strides,
                                      inner->dl.byte_offset);
  node->values()[slot] = tensor_value(alias);
  node->values()[slot].count = inner->storage->version.load(std::memory_order_relaxed);
  node->saved()[slot] = Saved::kResult;
}

void set_meta(TensorMeta& meta, const bp_tensor& t) {
  meta.device = {t.backend, t.ordinal};
  meta.dtype = t.dtype;
  meta.ndim = t.dl.ndim;
  int64_t* sizes = meta.sizes;
  if (t.dl.ndim > 4) {
    meta.more = std::make_unique<int64_t[]>(static_cast<size_t>(t.dl.ndim));
    sizes = meta.more.get();
  }
  std::memcpy(sizes, t.dl.shape, sizeof(int64_t) * static_cast<size_t>(t.dl.ndim));
}

uint32_t count_edges(const OpEntry& op, const bp_value* outer) {
  uint32_t n = 0;
  for (size_t i = 0; i < op.record->args.size(); ++i)
    n += outer[i].tag == BP_TAG_TENSOR ? 1 : outer[i].tag == BP_TAG_TENSOR_LIST ? outer[i].count : 0;
  return n;
}

void make_edges(Node* node, const OpEntry& op, const bp_value* outer) {
  uint32_t e = 0;
  for (size_t i = 0; i < op.record->args.size(); ++i) {
    uint32_t n = outer[i].tag == BP_TAG_TENSOR ? 1 : outer[i].tag == BP_TAG_TENSOR_LIST ? outer[i].count : 0;
    for (uint32_t k = 0; k < n; ++k, ++e) {
      bp_tensor* t = outer[i].tag == BP_TAG_TENSOR ? outer[i].u.t : outer[i].u.tensors[k];
      if (!t || !wants_grad(impl(t))) continue;
      Edge edge = edge_to(impl(t));
      node->edges()[e] = edge;
      if (!edge.node) continue;
      node->needs |= uint64_t{1} << (i < 63 ? i : 63);
      if (edge.node->depth >= node->depth) node->depth = edge.node->depth + 1;
    }
  }
}

}  // namespace

FreeNames formulas_read(const OpEntry& op, uint64_t needs) {
  FreeNames all;
  const bp_formula* last = nullptr;
  for (size_t i = 0; i < op.vjp_of_arg.size(); ++i) {
    const bp_formula* formula = op.vjp_of_arg[i];
    if (!formula || formula == last || !(needs >> (i < 63 ? i : 63) & 1)) continue;
    last = formula;
    const FreeNames& names = free_names(*op.record, *formula);
    all.args |= names.args;
    all.outs |= names.outs;
    all.arg_metadata |= names.arg_metadata;
    all.out_metadata |= names.out_metadata;
  }
  return all;
}

void record_node(const Recorded& r) {
  const OpRecord& record = *r.op.record;
  size_t n_args = record.args.size(), n_outs = record.results.size();
  bool any = false;
  for (size_t j = 0; j < n_outs; ++j) any = any || differentiable(r.op, j, r.results[j]);
  if (!any) return;
  size_t extra = 0;
  for (size_t i = 0; i < n_args; ++i) extra += extra_bytes(r.args[i]);
  Node* node = new_node(Node::Kind::kOp, count_edges(r.op, r.outer), static_cast<uint32_t>(n_args + n_outs), extra);
  for (size_t i = 0; i < n_args + n_outs; ++i) node->values()[i] = bp_value{};
  node->op = &r.op;
  node->n_args = static_cast<uint16_t>(n_args);
  node->n_outs = static_cast<uint16_t>(n_outs);
  lease(r.op.owner, LeaseKind::kNode);
  make_edges(node, r.op, r.outer);
  const FreeNames reads = n_args <= 3 ? r.op.reads[node->needs & 7] : formulas_read(r.op, node->needs);
  char* place = node->extra();
  const bp_tensor* out0 = n_outs == 1 && r.outs[0].tag == BP_TAG_TENSOR ? r.outs[0].u.t : nullptr;
  for (size_t i = 0; i < n_args; ++i) save_argument(node, i, r, reads, out0, place);
  for (size_t j = 0; j < n_outs; ++j)
    if (r.outs[j].tag != BP_TAG_TENSOR)
      continue;
    else if ((reads.outs | (n_outs > 1 ? reads.out_metadata : 0)) >> j & 1)
      save_result(node, n_args + j, impl(r.outs[j].u.t), impl(r.outs[j].u.t) == r.results[j], r);
    else if (reads.out_metadata >> j & 1)
      node->saved()[n_args + j] = Saved::kLikeOutput;
  if (n_outs > 1) {
    node->metas = new TensorMeta[n_outs]{};
    for (size_t j = 0; j < n_outs; ++j)
      if (r.results[j]) set_meta(node->metas[j], *r.results[j]);
  }
  for (size_t j = 0; j < n_outs; ++j)
    if (differentiable(r.op, j, r.results[j]))
      set_history(r.results[j], node, static_cast<uint32_t>(j), r.results[j]->wrapper ? 0 : kTapeKey);
  release(node);
}

void record_move(const Tensor& from, const Tensor& to) {
  if (thread_state.grad_disabled || !wants_grad(impl(from))) return;
  Node* node = new_node(Node::Kind::kMove, 1, 0, 0);
  node->n_outs = 1;
  node->source = from.device();
  node->edges()[0] = edge_to(impl(from));
  node->depth = node->edges()[0].node->depth + 1;
  set_history(impl(to), node, 0, kTapeKey);
  release(node);
}

namespace {

bool wants_any(const Call& call) {
  bool any = false;
  each_tensor(call.args, call.n_args, [&](TensorImpl* t) { any = any || wants_grad(t); });
  return any;
}

// An in-place change needs the history of its target to be replaceable.
void check_target(const Call& call, const TensorImpl* target) {
  for (const TensorImpl* t = target; t; t = t->view ? t->view->base : nullptr)
    BP_CHECK(t->node || !(t->autograd && t->autograd->requires_grad), VALUE, call.op.record->name,
             ": an in-place change of a ", t == target ? "tensor" : "view of a tensor",
             " that requires a gradient and is a leaf; use the out-of-place form, or change it under no_grad()");
}

// The base of a view sees the change as `put`; the view is then a view of the new base.
void rebase(TensorImpl* target) {
  ViewRecord& view = *target->view;
  const OpRecord& record = *view.op->record;
  size_t n_args = record.args.size();
  size_t extra = 0;
  for (size_t i = 0; i < n_args; ++i) extra += extra_bytes(view.args()[i]);
  Node* node = new_node(Node::Kind::kPut, 2, static_cast<uint32_t>(n_args), extra);
  node->op = view.op;
  node->n_args = static_cast<uint16_t>(n_args);
  node->n_outs = 1;
  lease(view.op->owner, LeaseKind::kNode);
  char* place = node->extra();
  for (size_t i = 0; i < n_args; ++i)
    node->values()[i] = i == record.def.alias ? bp_value{} : copy_plain(view.args()[i], place);
  node->metas = new TensorMeta[1]{};
  set_meta(node->metas[0], *target);
  node->edges()[0] = edge_to(view.base);
  retain(target->node);
  node->edges()[1] = {target->node, target->node_output};
  for (const Edge& edge : {node->edges()[0], node->edges()[1]})
    if (edge.node && edge.node->depth >= node->depth) node->depth = edge.node->depth + 1;
  set_history(view.base, node, 0, kTapeKey);
  release(node);
  ++autograd_of(view.base).stamp;
  if (view.base->view) rebase(view.base);
  view.base_stamp = view.base->autograd->stamp;
  ++autograd_of(target).stamp;
  bp_value out = tensor_value(target);
  record_node({*view.op, view.args(), &out, view.args(), &target, nullptr, 0});
}

void record_inplace(const Call& call, TensorImpl* target) {
  check_target(call, target);
  if (target->view) refresh_view(target);
  uint32_t version = target->storage->version.load(std::memory_order_relaxed);
  const bp_storage* storage = target->storage;
  dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey});
  if (!wants_any(call)) return;
  bp_value out = tensor_value(target);
  record_node({call.op, call.args, &out, call.args, &target, storage, version});
  if (target->view) rebase(target);
}

}  // namespace

void record_call(const Call& call, bool last) {
  if (call.op.derivative == Derivative::kDecompose && wants_any(call)) {
    bool given = false;
    for (int32_t i = 0; i < call.n_outs; ++i) given = given || (call.outs[i].flags & BP_VALUE_GIVEN);
    if (!given) return call_decomposition(call);
  }
  for (int32_t i = 0; i < call.n_outs; ++i) {
    if (!(call.outs[i].flags & BP_VALUE_GIVEN)) continue;
    bool inplace = i == 0 && call.n_outs == 1 && call.n_args > 0 && call.args[0].tag == BP_TAG_TENSOR &&
                   call.args[0].u.t == call.outs[0].u.t;
    if (inplace) return record_inplace(call, impl(call.outs[0].u.t));
    BP_CHECK(!wants_any(call) && !wants_grad(impl(call.outs[i].u.t)), VALUE, call.op.record->name,
             ": out= cannot be recorded for a gradient; use the result that the op returns, or no_grad()");
  }
  const Call below{call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey};
  last ? call_below_keys(below) : dispatch(below);
  if (!wants_any(call)) return;
  TensorImpl* results[kMaxResults];
  for (int32_t i = 0; i < call.n_outs; ++i)
    results[i] = call.outs[i].tag == BP_TAG_TENSOR ? impl(call.outs[i].u.t) : nullptr;
  record_node({call.op, call.args, call.outs, call.args, results, nullptr, 0});
}

void remember_view(const Call& call, TensorImpl* view) {
  auto n_args = static_cast<uint32_t>(call.n_args);
  size_t extra = 0;
  for (uint32_t i = 0; i < n_args; ++i) extra += extra_bytes(call.args[i]);
  ViewRecord* record = new_view_record(impl(call.args[call.op.record->def.alias].u.t), call.op, n_args, extra);
  auto* place = reinterpret_cast<char*>(record->args() + n_args);
  for (uint32_t i = 0; i < n_args; ++i) record->args()[i] = copy_plain(call.args[i], place);
  view->view = record;
}

}  // namespace backplane::core
