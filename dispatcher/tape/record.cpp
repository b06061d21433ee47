// Recording: from a call to its node. It saves only values that the needed formulas read.
#include "tape/record.hpp"

#include <bit>
#include <cstring>

#include "call/fast_call.hpp"
#include "call/formulas/decomposition.hpp"
#include "call/formulas/role_calls.hpp"
#include "call/view_record.hpp"
#include "levels/level.hpp"
#include "memory/process/epoch.hpp"
#include "record/dtype_rules.hpp"
#include "tape/captures.hpp"
#include "tape/saving.hpp"

namespace backplane::core {
namespace {

inline bool differentiable(const OpEntry& op, size_t result, const TensorImpl* t) {
  return t && (BP_DTYPE_BIT(t->dtype) & (BP_MASK_FLOATING | BP_MASK_COMPLEX)) &&
         !(op.record->results[result].flags & BP_RESULT_NONDIFF);
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

// Where histories lead, written one edge after another.
struct EdgeWriter {
  Edge* next;
  const Level* level;  // as in Recorded
  uint64_t needs = 0;
  uint32_t depth = 0;

  [[gnu::always_inline]] void add(uint32_t arg, bp_tensor* tensor) {
    TensorImpl* t = impl(tensor);
    const bool ours = t && wants_grad(t) && (!level || wrapper_of(*level, t));
    const Edge edge = ours ? edge_to(t) : Edge{nullptr, 0};
    *next++ = edge;
    if (!edge.node) return;
    needs |= uint64_t{1} << (arg < 63 ? arg : 63);
    if (edge.node->depth >= depth) depth = edge.node->depth + 1;
  }
};

// The form of a call, as far as it is known. If it is known at compile time, the loops over arguments unroll.
struct Form {
  uint32_t n_args;
  uint32_t n_outs;
  bool all_alike;  // every argument is a tensor, of the result's shape, dtype and device
};

// A node of the right size, with its edges.
[[gnu::always_inline]] inline Node* new_op_node(const Recorded& r, const Form& form) {
  const uint32_t n_args = form.n_args, n_outs = form.n_outs;
  uint32_t n_edges = 0;
  size_t extra = 0;
  for (uint32_t i = 0; i < n_args; ++i) {
    const bp_value& outer = r.outer[i];
    if (form.all_alike || outer.tag == BP_TAG_TENSOR)
      ++n_edges;
    else if (outer.tag == BP_TAG_TENSOR_LIST)
      n_edges += outer.count;
    else
      extra += extra_bytes(r.args[i]);
  }
  Node* node = new_node(Node::Kind::kOp, n_edges, n_args + n_outs, extra);
  node->op = &r.op;
  node->n_args = static_cast<uint8_t>(n_args);
  node->n_outs = static_cast<uint8_t>(n_outs);
  lease(r.op.owner, LeaseKind::kNode);
  EdgeWriter edges{node->edges(), form.all_alike ? nullptr : r.level};
  for (uint32_t i = 0; i < n_args; ++i) {
    const bp_value& outer = r.outer[i];
    if (form.all_alike || outer.tag == BP_TAG_TENSOR)
      edges.add(i, outer.u.t);
    else if (outer.tag == BP_TAG_TENSOR_LIST)
      for (uint32_t k = 0; k < outer.count; ++k) edges.add(i, outer.u.tensors[k]);
  }
  node->needs = edges.needs;
  node->depth = edges.depth;
  return node;
}

void set_metas(Node* node, const Recorded& r) {
  node->metas = new TensorMeta[node->n_outs]{};
  for (uint32_t j = 0; j < node->n_outs; ++j)
    if (r.results[j]) set_meta(node->metas[j], *r.results[j]);
}

[[gnu::always_inline]] inline void record_of_form(const Recorded& r, const Form& form) {
  uint32_t takers = 0;  // a bit per result that gets the node
  for (uint32_t j = 0; j < form.n_outs; ++j) takers |= uint32_t{differentiable(r.op, j, r.results[j])} << j;
  if (takers == 0) return;
  Node* node = new_op_node(r, form);
  if (!node->needs) [[unlikely]]
    return release(node);
  FreeNames computed;
  if (form.n_args > 3) computed = formulas_read(r.op, node->needs);
  Saving saving(node, r, form.n_args > 3 ? computed : r.op.reads[node->needs & 7]);
  saving.save_arguments(form.n_args, form.all_alike);
  saving.save_results(form.n_args, form.n_outs);
  if (form.n_outs > 1) set_metas(node, r);
  // The node's first reference is the last taker's.
  for (; takers; takers &= takers - 1) {
    const auto j = static_cast<uint32_t>(std::countr_zero(takers));
    if (takers & (takers - 1)) retain(node);
    attach_history(r.results[j], node, j, r.results[j]->wrapper ? 0 : kTapeKey);
  }
}

}  // namespace

void record_node(const Recorded& r) {
  if (r.same_meta && r.op.n_args == 2 && r.outer[0].tag == BP_TAG_TENSOR && r.outer[1].tag == BP_TAG_TENSOR)
    record_of_form(r, {2, 1, true});
  else
    record_of_form(r, {static_cast<uint32_t>(r.op.n_args), static_cast<uint32_t>(r.op.n_results), false});
}

void record_move(const Tensor& from, const Tensor& to) {
  if (thread_state.grad_disabled || !wants_grad(impl(from))) return;
  if (Captures* captures = thread_state.captures) {
    captures->note(impl(from));
    return captures->mark({&to, 1}, nullptr);
  }
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
  const std::string_view name = call.op.record->name;
  for (const TensorImpl* t = target; t; t = t->view ? t->view->base : nullptr) {
    BP_CHECK(t->node || !(t->autograd && t->autograd->requires_grad), VALUE, name, ": an in-place change of a ",
             t == target ? "tensor" : "view of a tensor",
             " that requires a gradient and is a leaf; use the out-of-place form, or change it with gradients off "
             "(no_grad)");
    if (!t->view) continue;
    check_writable_view(*t);
    const bp_formula* put = t->view->op->record->find_formula(BP_RULE_PUT);
    BP_CHECK(put && !(put->flags & BP_FORMULA_REFUSED), VALUE, name, ": writing through the result of ",
             t->view->op->record->name, " is refused while a gradient is recorded", put && put->text ? ": " : "",
             put && put->text ? put->text : "", "; copy it first");
  }
}

// The arguments of an in-place call as its formulas shall read them. Where they read the target, that is its value
// before the change: a recorded copy.
struct BeforeChange {
  bp_value args[kMaxArgs];
  Tensor copy;

  BeforeChange(const Call& call, TensorImpl* target) {
    uint64_t needs = 0, changed = 0;
    for (int32_t i = 0; i < call.n_args; ++i) {
      args[i] = call.args[i];
      const uint64_t bit = uint64_t{1} << (i < 63 ? i : 63);
      each_tensor(args + i, 1, [&](TensorImpl* t) { needs |= wants_grad(t) ? bit : 0; });
      if (args[i].tag == BP_TAG_TENSOR && impl(args[i].u.t) == target) changed |= bit;
    }
    const FreeNames names = call.n_args <= 3 ? call.op.reads[needs & 7] : formulas_read(call.op, needs);
    if (!(names.args & changed)) return;
    copy = roles::copy(target, call.mask);
    for (int32_t i = 0; i < call.n_args; ++i)
      if (args[i].tag == BP_TAG_TENSOR && impl(args[i].u.t) == target) args[i] = value(copy);
  }
};

// A view's base sees the change as `put`.
void put_into_base(TensorImpl* target) {
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
  for (size_t i = 0; i < n_args; ++i) {
    node->values()[i] = i == record.def.alias ? bp_value{} : copy_plain(view.args()[i], place);
    node->saved()[i] = Saved::kPlain;
  }
  node->metas = new TensorMeta[1]{};
  set_meta(node->metas[0], *target);
  node->edges()[0] = edge_to(view.base);
  if (target->node) retain(target->node);
  node->edges()[1] = {target->node, target->node_output};
  for (const Edge& edge : {node->edges()[0], node->edges()[1]})
    if (edge.node && edge.node->depth >= node->depth) node->depth = edge.node->depth + 1;
  set_history(view.base, node, 0, kTapeKey);
  release(node);
  ++autograd_of(view.base).stamp;
}

// Up the chain of views, each base gets its new history. Down again, each view becomes a view of its new base.
void rebase(TensorImpl* target) {
  inplace_changes.fetch_add(1, std::memory_order_release);
  std::vector<TensorImpl*> chain;
  for (TensorImpl* t = target; t->view; t = t->view->base) {
    put_into_base(t);
    chain.push_back(t);
  }
  for (size_t i = chain.size(); i-- > 0;) {
    ViewRecord& view = *chain[i]->view;
    view.base_stamp = view.base->autograd->stamp;
    ++autograd_of(chain[i]).stamp;
    bp_value out = tensor_value(chain[i]);
    record_node({*view.op, view.args(), &out, view.args(), &chain[i], nullptr, 0});
  }
}

// What the target's views, or the tensors that it is a view of, make of its new history.
void hand_on_history(TensorImpl* target) {
  if (target->view)
    rebase(target);
  else
    renew_views(target);
}

void end_history(TensorImpl* target) {
  attach_history(target, nullptr, 0, 0);
  target->set_keys(target->keys_seen() & ~kTapeKey);
}

void record_inplace(const Call& call, TensorImpl* target) {
  check_target(call, target);
  if (target->view) refresh_view(target);
  uint32_t version = target->storage->version.load(std::memory_order_relaxed);
  const bp_storage* storage = target->storage;
  const BeforeChange before(call, target);
  dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey});
  if (!wants_any(call)) return;
  bp_value out = tensor_value(target);
  const Node* const had = target->node;
  record_node({call.op, before.args, &out, call.args, &target, storage, version});
  if (had && target->node == had) end_history(target);  // the result has no derivative
  hand_on_history(target);
}

// All of the target gets another tensor's value, and with it that one's history, or none.
void record_overwrite(const Call& call, TensorImpl* target) {
  const bool recorded = wants_any(call), followed = recorded || wants_grad(target);
  if (followed) check_target(call, target);
  if (target->view) refresh_view(target);
  dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey});
  if (!followed) return;
  bp_value out = tensor_value(target);
  if (recorded)
    record_node({call.op, call.args, &out, call.args, &target, nullptr, 0});
  else
    end_history(target);
  hand_on_history(target);
}

}  // namespace

namespace {

// Decomposes, or writes into what the caller gave. False: neither.
bool record_otherwise(const Call& call) {
  bool given = false;
  for (int32_t i = 0; i < call.n_outs; ++i) given = given || (call.outs[i].flags & BP_VALUE_GIVEN);
  if (!given) {
    if (call.op.derivative != Derivative::kDecompose || !wants_any(call)) return false;
    if (!record_recomputed(call, nullptr)) call_decomposition(call);
    return true;
  }
  const bool inplace =
      call.n_outs == 1 && call.n_args > 0 && call.args[0].tag == BP_TAG_TENSOR && call.args[0].u.t == call.outs[0].u.t;
  if (inplace) {
    record_inplace(call, impl(call.outs[0].u.t));
    return true;
  }
  if (&call.op == &role_op(Role::kCopy)) {
    record_overwrite(call, impl(call.outs[0].u.t));
    return true;
  }
  for (int32_t i = 0; i < call.n_outs; ++i)
    BP_CHECK(
        !(call.outs[i].flags & BP_VALUE_GIVEN) || (!wants_any(call) && !wants_grad(impl(call.outs[i].u.t))), VALUE,
        call.op.record->name,
        ": writing into a given output (out) cannot be recorded for a gradient; use the result that the op returns, or "
        "switch gradients off (no_grad)");
  return false;
}

}  // namespace

void refuse_lists(const Call& call, const char* transform) {
  for (int32_t j = 0; j < call.n_outs; ++j) {
    if (call.outs[j].tag != BP_TAG_TENSOR_LIST) continue;
    bool followed = false;
    each_tensor(call.outs + j, 1,
                [&](TensorImpl* t) { followed = followed || differentiable(call.op, static_cast<size_t>(j), t); });
    if (!followed) continue;
    bp_value empty[kMaxResults] = {};
    release_outputs(call.outs, call.n_outs, empty);
    detail::fail(
        BP_ERROR_NOT_IMPLEMENTED, call.op.record->name, ": ", transform,
        " differentiates a list of tensors only through a decomposition. Fix: state one, or that the result has no "
        "derivative (nondiff)");
  }
}

void record_call(const Call& call) {
  if (thread_state.captures) [[unlikely]] {
    thread_state.captures->note(call, nullptr);
    dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey});
    return thread_state.captures->mark(call, nullptr);
  }
  if (record_otherwise(call)) return;
  dispatch({call.op, call.args, call.n_args, call.outs, call.n_outs, call.mask & ~kTapeKey});
  if (!wants_any(call)) return;
  refuse_lists(call, "the tape");
  TensorImpl* results[kMaxResults];
  for (int32_t i = 0; i < call.n_outs; ++i)
    results[i] = call.outs[i].tag == BP_TAG_TENSOR ? impl(call.outs[i].u.t) : nullptr;
  record_node({call.op, call.args, call.outs, call.args, results, nullptr, 0});
}

bool record_fast(const Call& call, const Operands& operands) {
  const OpEntry& op = call.op;
  if (op.derivative == Derivative::kDecompose || thread_state.level || thread_state.captures) return false;
  const auto served = [&]<FastPath kPath>() {
    return call_fast<kPath>(op, op.plan(), call.args, call.outs, call.mask & ~kTapeKey, operands);
  };
  const bool elementwise = op.fast_path == FastPath::kLikeOperands;
  if (!(elementwise                             ? served.operator()<FastPath::kLikeOperands>()
        : op.fast_path == FastPath::kInferred   ? served.operator()<FastPath::kInferred>()
        : op.fast_path == FastPath::kFromKernel ? served.operator()<FastPath::kFromKernel>()
        : op.fast_path == FastPath::kSeveral    ? served.operator()<FastPath::kSeveral>()
                                                : false))
    return false;
  TensorImpl* results[kMaxFastResults];
  for (int32_t i = 0; i < call.n_outs; ++i)
    results[i] = call.outs[i].tag == BP_TAG_TENSOR ? impl(call.outs[i].u.t) : nullptr;
  const bool same_meta = elementwise && results[0]->dtype == operands.first->dtype;
  record_node({op, call.args, call.outs, call.args, results, nullptr, 0, same_meta});
  return true;
}

namespace {
[[gnu::constructor]] void register_handlers() {
  register_layer(
      kTapeKey, "autograd", kTapeRank, [](const Call& call, const KeySlot*) { record_call(call); }, record_fast);
  device_copy_hook = record_move;
}
}  // namespace

}  // namespace backplane::core
