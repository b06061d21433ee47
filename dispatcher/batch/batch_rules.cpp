// Which batch rule an op has, and the rules of elementwise ops, reductions, ops along axes, and joins.
//
// A rule is derived only where the shape's word says all: an op with further tensors, or with arguments that have an
// entry per axis, needs a formula or a decomposition.
#include "batch/batch_rules.hpp"

#include <algorithm>

#include "batch/batched_call.hpp"

namespace backplane::core {

BatchSignature::BatchSignature(const OpRecord& record) {
  for (const bp_arg_def& arg : record.args) {
    const bool list = (arg.flags & BP_ARG_LIST) != 0;
    switch (arg.type) {
      case BP_TYPE_TENSOR:
        ++tensors;
        lists = lists || list;
        break;
      case BP_TYPE_AXIS:
        axes = true;
        may_flatten = may_flatten || (!list && (arg.flags & BP_ARG_OPTIONAL));
        break;
      case BP_TYPE_AXES:
        axes = true;
        break;
      case BP_TYPE_SHAPE:
      case BP_TYPE_GRAPH:
        per_axis = true;
        break;
      default:
        per_axis = per_axis || list;
    }
  }
}

void shift_axes(BatchedCall& c, int32_t rank) {
  for (int32_t i = 0; i < c.call.n_args; ++i) {
    const uint16_t type = c.record.args[static_cast<size_t>(i)].type;
    if (type != BP_TYPE_AXIS && type != BP_TYPE_AXES) continue;
    bp_value& v = c.args[i];
    if (v.tag == BP_TAG_INT) {
      v.u.i = normalize_axis(c.record, v.u.i, rank) + 1;
    } else if (v.tag == BP_TAG_INT_LIST) {
      int64_t* list = c.ints(v.count);
      for (uint32_t k = 0; k < v.count; ++k) list[k] = normalize_axis(c.record, v.u.ints[k], rank) + 1;
      v.u.ints = list;
    } else if (v.tag == BP_TAG_ABSENT && type == BP_TYPE_AXES) {
      int64_t* list = c.ints(static_cast<size_t>(rank));
      for (int32_t d = 0; d < rank; ++d) list[d] = d + 1;
      c.set_ints(i, list, static_cast<size_t>(rank));
    }
  }
}

namespace {

bool has_param(const bp_shape_rule& rule, uint32_t i) { return i < rule.n_args && rule.args[i] != BP_NO_ARG; }
int32_t first_arg(const BatchedCall& c) { return static_cast<int32_t>(c.record.shapes[0].args[0]); }

// ---- elementwise: every tensor broadcasts with every other ----

bool broadcasts_all(const OpRecord& record, const bp_shape_rule& rule, const BatchSignature& s) {
  if (s.lists || s.axes || s.per_axis) return false;
  uint64_t seen = 0;
  for (uint32_t k = 0; k < rule.n_args; ++k) seen |= uint64_t{1} << rule.args[k];
  return seen == record.tensor_args;
}

// Sizes align from the right, so a batched tensor of fewer dims than another gets axes of size 1 behind its batch.
void elementwise(BatchedCall& c, const ShapeResult*) {
  int32_t highest = 0, lowest = kMaxRank;
  for (int32_t i = 0; i < c.call.n_args; ++i) {
    if (!c.is_tensor(i)) continue;
    highest = std::max(highest, c.row(i).ndim);
    if (c.batched[i]) lowest = std::min(lowest, c.row(i).ndim);
  }
  if (lowest < highest) {
    for (int32_t i = 0; i < c.call.n_args; ++i)
      if (c.batched[i]) c.set_tensor(i, c.padded(c.inner(i), highest));
  }
  c.run();
}

// ---- ops along axes of their one tensor ----

// Without axes it could be anything, such as a share of the whole; but not if its family is unary.
bool along_axes(const OpRecord& record, const bp_shape_rule&, const BatchSignature& s) {
  if (s.tensors != 1 || s.lists || s.per_axis) return false;
  return s.axes ? !s.may_flatten : record.def.family && std::string_view(record.def.family) == "unary";
}

void shifted(BatchedCall& c, const ShapeResult*) {
  shift_axes(c, c.row(first_arg(c)).ndim);
  c.run();
}

bool reduces(const OpRecord& record, const bp_shape_rule& rule, const BatchSignature& s) {
  if (s.tensors != 1 || s.lists || s.per_axis || !has_param(rule, 1)) return false;
  const uint16_t type = record.args[rule.args[1]].type;
  return type == BP_TYPE_AXIS || type == BP_TYPE_AXES;
}

// An absent `Axis?` is the flattened tensor: each row is flattened to one axis.
void reduce_flattened(BatchedCall& c, int32_t axis, const ShapeResult& row) {
  const int32_t x = first_arg(c);
  const int64_t shape[] = {c.size(), element_count(*c.call.args[x].u.t)};
  c.set_tensor(x, c.reshape(c.inner(x), shape, 2));
  c.args[axis] = value(int64_t{1});
  c.run();
  int64_t* kept = c.ints(static_cast<size_t>(row.ndim) + 1);
  kept[0] = c.size();
  std::copy_n(row.sizes, row.ndim, kept + 1);
  for (int32_t j = 0; j < c.call.n_outs; ++j)
    if (impl(c.call.outs[j].u.t)->dl.ndim != row.ndim + 1) c.reshape_result(j, kept, static_cast<size_t>(row.ndim) + 1);
}

void reduce(BatchedCall& c, const ShapeResult* row) {
  const auto axis = static_cast<int32_t>(c.record.shapes[0].args[1]);
  if (c.args[axis].tag == BP_TAG_ABSENT && c.record.args[static_cast<size_t>(axis)].type == BP_TYPE_AXIS)
    return reduce_flattened(c, axis, *row);
  shifted(c, row);
}

// ---- joins ----

bool joins(const OpRecord&, const bp_shape_rule& rule, const BatchSignature& s) {
  return s.tensors == 1 && s.lists && !s.per_axis && has_param(rule, 1);
}

void join(BatchedCall& c, int32_t added) {
  const int32_t list = first_arg(c);
  const bp_value& given = c.call.args[list];
  shift_axes(c, given.u.tensors[0]->dl.ndim + added);
  c.batch_list(list);
  c.run();
}
void concat(BatchedCall& c, const ShapeResult*) { join(c, 0); }
void stack(BatchedCall& c, const ShapeResult*) { join(c, 1); }

bool two_tensors(const OpRecord&, const bp_shape_rule&, const BatchSignature& s) {
  return s.tensors == 2 && !s.lists && !s.axes && !s.per_axis;
}

constexpr DerivedRule kRules[] = {
    {"broadcast", broadcasts_all, elementwise},
    {"concat", joins, concat},
    {"matmul", two_tensors, batch_matmul},
    {"reduce", reduces, reduce},
    {"same", along_axes, shifted},
    {"stack", joins, stack},
};

bool same_rule(const bp_shape_rule& a, const bp_shape_rule& b) {
  return std::string_view(a.name) == b.name && a.n_args == b.n_args && std::equal(a.args, a.args + a.n_args, b.args);
}

const DerivedRule* derived_rule_of(const OpRecord& record) {
  const bp_shape_rule& first = record.shapes[0];
  for (const bp_shape_rule& rule : record.shapes)
    if (!same_rule(first, rule)) return nullptr;
  if ((record.def.flags & BP_OP_RANDOM) || first.n_args == 0) return nullptr;
  const DerivedRule* derived = record.shape_words[0] ? find_derived_rule(first.name) : nullptr;
  return derived && derived->applies(record, first, BatchSignature(record)) ? derived : nullptr;
}

}  // namespace

const DerivedRule* find_derived_rule(std::string_view word) noexcept {
  for (const DerivedRule& rule : kRules)
    if (word == rule.word) return &rule;
  for (size_t i = 0; i < kViewRuleCount; ++i)
    if (word == kViewRules[i].word) return &kViewRules[i];
  return nullptr;
}

namespace {

BatchRule batch_rule_of(const OpRecord& record) {
  using Kind = BatchRule::Kind;
  BatchRule rule;
  rule.formula = record.find_formula(BP_RULE_BATCH);
  const uint32_t flags = rule.formula ? rule.formula->flags : 0;
  const bool dynamic = (record.def.flags & BP_OP_DYNAMIC) != 0;
  const bool loop = (flags & BP_FORMULA_LOOP) != 0;  // then nothing shall be derived
  const bool stated = rule.formula && (rule.formula->n_roots || (flags & BP_FORMULA_NATIVE_ONLY));
  if ((flags & BP_FORMULA_REFUSED) || (dynamic && !stated && !record.find_formula(BP_RULE_DECOMPOSE))) {
    rule.kind = Kind::kRefused;
  } else if (stated) {
    rule.kind = Kind::kStated;
  } else if (record.tensor_args == 0) {
    rule.kind = Kind::kCreation;
  } else if (record.def.flags & BP_OP_COMPOSITE) {
    rule.kind = Kind::kDecompose;
  } else if (const DerivedRule* derived = loop ? nullptr : derived_rule_of(record)) {
    rule.kind = Kind::kDerived;
    rule.derived = derived->run;
    rule.elementwise = derived->run == elementwise;
    rule.word = derived->word;
  } else if (record.find_formula(BP_RULE_DECOMPOSE)) {
    rule.kind = Kind::kDecompose;
  } else if (loop) {
    rule.kind = Kind::kLoop;
  }
  return rule;
}

[[gnu::constructor]] void register_resolver() {
  add_resolver([](OpEntry& entry) {
    entry.batch = batch_rule_of(*entry.record);
    const BatchRule::Kind kind = entry.batch.kind;
    const bool own = kind == BatchRule::Kind::kStated || kind == BatchRule::Kind::kRefused;
    if ((entry.flags & BP_OP_COMPOSITE) && own) entry.flags |= kBatchedWhole;
  });
}

}  // namespace
}  // namespace backplane::core
