// Which batch rule an op has by its record, and the rules of elementwise ops, reductions, ops along axes, and joins.
#include "batch/batch_rules.hpp"

#include <algorithm>

#include "batch/batch_matmul.hpp"
#include "batch/batch_views.hpp"
#include "batch/batched_call.hpp"

namespace backplane::core {

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

int32_t first_arg(const BatchedCall& c) { return static_cast<int32_t>(c.record.shapes[0].args[0]); }

// ---- elementwise: every tensor broadcasts with every other ----

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

void shifted(BatchedCall& c, const ShapeResult*) {
  shift_axes(c, c.row(first_arg(c)).ndim);
  c.run();
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

void join(BatchedCall& c, int32_t added) {
  const int32_t list = first_arg(c);
  const bp_value& given = c.call.args[list];
  shift_axes(c, given.u.tensors[0]->dl.ndim + added);
  c.batch_list(list);
  c.run();
}
void concat(BatchedCall& c, const ShapeResult*) { join(c, 0); }
void stack(BatchedCall& c, const ShapeResult*) { join(c, 1); }

constexpr DerivedRule kRules[] = {
    {"broadcast", elementwise}, {"concat", concat}, {"matmul", batch_matmul},
    {"reduce", reduce},         {"same", shifted},  {"stack", stack},
};

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
  const bool stated = rule.formula && (rule.formula->n_roots || (flags & BP_FORMULA_NATIVE_ONLY));
  if ((flags & BP_FORMULA_REFUSED) || (dynamic && !stated && !record.find_formula(BP_RULE_DECOMPOSE))) {
    rule.kind = Kind::kRefused;
  } else if (stated) {
    rule.kind = Kind::kStated;
  } else if (record.tensor_args == 0) {
    rule.kind = Kind::kCreation;
  } else if (record.def.flags & BP_OP_COMPOSITE) {
    rule.kind = Kind::kDecompose;
  } else if (flags & BP_FORMULA_DERIVED) {
    const DerivedRule* derived = find_derived_rule(record.shapes[0].name);
    BP_CHECK(derived, INTERNAL, record.name, ": no batch rule for the shape word ", record.shapes[0].name);
    rule.kind = Kind::kDerived;
    rule.derived = derived->run;
    rule.elementwise = derived->run == elementwise;
    rule.word = derived->word;
  } else if (record.find_formula(BP_RULE_DECOMPOSE)) {
    rule.kind = Kind::kDecompose;
  } else if (flags & BP_FORMULA_LOOP) {
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
