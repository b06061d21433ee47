// Recording: from a call to its node. What is saved is what the formulas that are still needed read.
#include <cstring>

#include "core/device_call.hpp"
#include "core/dtype_rules.hpp"
#include "core/epoch.hpp"
#include "transforms/level.hpp"
#include "transforms/tape.hpp"

namespace backplane::core {
namespace {

inline bool differentiable(const OpEntry& op, size_t result, const TensorImpl* t) {
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

// What is kept of value `i`; with `kind` one that the node owns.
inline void keep(Node* node, size_t i, const bp_value& value, Saved kind) {
  node->values()[i] = value;
  node->saved()[i] = kind;
  if (kind != Saved::kPlain && kind != Saved::kLikeOutput) ++node->n_owned;
}

inline void save_tensor(Node* node, size_t i, TensorImpl* t, const Recorded& r) {
  retain(t);
  bp_value value = tensor_value(t);
  value.count = version_now(*t, r);
  keep(node, i, value, Saved::kTensor);
}

void save_list(Node* node, size_t i, const bp_value& v, const Recorded& r) {
  auto** copy = new bp_tensor*[2 * static_cast<size_t>(v.count)];
  for (uint32_t k = 0; k < v.count; ++k) {
    copy[k] = v.u.tensors[k];
    if (copy[k]) retain(impl(copy[k]));
    copy[v.count + k] = reinterpret_cast<bp_tensor*>(uintptr_t{copy[k] ? version_now(*impl(copy[k]), r) : 0});
  }
  bp_value value = v;
  value.u.tensors = copy;
  keep(node, i, value, Saved::kList);
}

// As many edges as an argument has that nothing reads.
inline bp_value edges_only(uint32_t count) {
  bp_value v{};
  v.count = count;
  return v;
}

void save_other(Node* node, size_t i, const Recorded& r, bool read, char*& place) {
  const bp_value& v = r.args[i];
  if (v.tag != BP_TAG_TENSOR_LIST) return keep(node, i, copy_plain(v, place), Saved::kPlain);
  read ? save_list(node, i, v, r) : keep(node, i, edges_only(v.count), Saved::kPlain);
}

// Of a tensor whose data nobody reads: often the result, and so its cotangent, has the same form.
inline void save_form(Node* node, size_t i, const TensorImpl& t, const bp_tensor* out0) {
  if (out0 && out0->dtype == t.dtype && same_shape(*out0, t)) return keep(node, i, bp_value{}, Saved::kLikeOutput);
  keep(node, i, tensor_value(new_handle(device_of(t), t.dtype, t.dl.ndim, t.dl.shape)), Saved::kMeta);
}

inline void save_argument(Node* node, size_t i, const Recorded& r, const FreeNames& reads, const bp_tensor* out0,
                          char*& place) {
  const bp_value& v = r.args[i];
  const uint64_t bit = uint64_t{1} << (i < 63 ? i : 63);
  if (v.tag != BP_TAG_TENSOR) return save_other(node, i, r, (reads.args | reads.arg_metadata) & bit, place);
  if (reads.args & bit) return save_tensor(node, i, impl(v.u.t), r);
  if (reads.arg_metadata & bit) return save_form(node, i, *impl(v.u.t), out0);
  keep(node, i, edges_only(1), Saved::kPlain);
}

// A result is kept without its history, or node and result would own each other.
void save_result(Node* node, size_t slot, TensorImpl* inner, bool is_result, const Recorded& r) {
  if (!is_result) return save_tensor(node, slot, inner, r);
  retain(inner->storage);
  TensorImpl* alias = new_tensor_over(inner->storage, inner->dtype, inner->dl.ndim, inner->dl.shape, inner->dl.strides,
                                      inner->dl.byte_offset);
  bp_value value = tensor_value(alias);
  value.count = inner->storage->version.load(std::memory_order_relaxed);
  keep(node, slot, value, Saved::kResult);
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

uint32_t edges_of(const bp_value& outer) {
  return outer.tag == BP_TAG_TENSOR ? 1 : outer.tag == BP_TAG_TENSOR_LIST ? outer.count : 0;
}

inline void make_edge(Node* node, uint32_t e, size_t arg, bp_tensor* t) {
  const Edge edge = t && wants_grad(impl(t)) ? edge_to(impl(t)) : Edge{nullptr, 0};
  node->edges()[e] = edge;
  if (!edge.node) return;
  node->needs |= uint64_t{1} << (arg < 63 ? arg : 63);
  if (edge.node->depth >= node->depth) node->depth = edge.node->depth + 1;
}

void make_edges(Node* node, const Recorded& r) {
  uint32_t e = 0;
  for (size_t i = 0; i < node->n_args; ++i) {
    const bp_value& outer = r.outer[i];
    if (outer.tag == BP_TAG_TENSOR) [[likely]]
      make_edge(node, e++, i, outer.u.t);
    else if (outer.tag == BP_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < outer.count; ++k) make_edge(node, e++, i, outer.u.tensors[k]);
  }
}

// A node of the right size, with its edges.
Node* new_op_node(const Recorded& r) {
  const auto n_args = static_cast<uint32_t>(r.op.n_args), n_outs = static_cast<uint32_t>(r.op.n_results);
  uint32_t n_edges = 0;
  size_t extra = 0;
  for (uint32_t i = 0; i < n_args; ++i) {
    if (r.outer[i].tag == BP_TAG_TENSOR) {
      ++n_edges;
      continue;
    }
    n_edges += edges_of(r.outer[i]);
    extra += extra_bytes(r.args[i]);
  }
  Node* node = new_node(Node::Kind::kOp, n_edges, n_args + n_outs, extra);
  node->op = &r.op;
  node->n_args = static_cast<uint8_t>(n_args);
  node->n_outs = static_cast<uint8_t>(n_outs);
  lease(r.op.owner, LeaseKind::kNode);
  make_edges(node, r);
  return node;
}

void save_results(Node* node, const Recorded& r, const FreeNames& reads) {
  const uint32_t n_outs = node->n_outs;
  const uint64_t whole = reads.outs | (n_outs > 1 ? reads.out_metadata : 0);
  for (uint32_t j = 0; j < n_outs; ++j) {
    const size_t slot = size_t{node->n_args} + j;
    if (r.outs[j].tag == BP_TAG_TENSOR && (whole >> j & 1))
      save_result(node, slot, impl(r.outs[j].u.t), impl(r.outs[j].u.t) == r.results[j], r);
    else
      keep(node, slot, bp_value{},
           r.outs[j].tag == BP_TAG_TENSOR && (reads.out_metadata >> j & 1) ? Saved::kLikeOutput : Saved::kPlain);
  }
  if (n_outs == 1) return;
  node->metas = new TensorMeta[n_outs]{};
  for (uint32_t j = 0; j < n_outs; ++j)
    if (r.results[j]) set_meta(node->metas[j], *r.results[j]);
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
  uint32_t takers = 0;
  for (int32_t j = 0; j < r.op.n_results; ++j) takers += differentiable(r.op, static_cast<size_t>(j), r.results[j]);
  if (takers == 0) return;
  Node* node = new_op_node(r);
  FreeNames computed;
  if (node->n_args > 3) computed = formulas_read(r.op, node->needs);
  const FreeNames& reads = node->n_args > 3 ? computed : r.op.reads[node->needs & 7];
  char* place = node->extra();
  const bp_tensor* out0 = node->n_outs == 1 && r.outs[0].tag == BP_TAG_TENSOR ? r.outs[0].u.t : nullptr;
  for (size_t i = 0; i < node->n_args; ++i) save_argument(node, i, r, reads, out0, place);
  save_results(node, r, reads);
  // The node's first reference is the last taker's.
  for (int32_t j = 0; j < r.op.n_results; ++j) {
    if (!differentiable(r.op, static_cast<size_t>(j), r.results[j])) continue;
    if (--takers > 0) retain(node);
    give_history(r.results[j], node, static_cast<uint32_t>(j), r.results[j]->wrapper ? 0 : kTapeKey);
  }
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
  node->n_args = static_cast<uint8_t>(n_args);
  node->n_outs = 1;
  lease(view.op->owner, LeaseKind::kNode);
  char* place = node->extra();
  for (size_t i = 0; i < n_args; ++i)
    keep(node, i, i == record.def.alias ? bp_value{} : copy_plain(view.args()[i], place), Saved::kPlain);
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
