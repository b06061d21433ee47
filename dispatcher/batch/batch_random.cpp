#include "batch/batch_random.hpp"

#include <algorithm>

#include "batch/batch_loop.hpp"
#include "batch/batch_stated.hpp"
#include "levels/random_log.hpp"

namespace backplane::core {
namespace {

// The one Shape argument that gives every result its shape, or -1.
int32_t shape_argument(const OpRecord& op) {
  int32_t found = -1;
  for (const bp_shape_rule& rule : op.shapes) {
    if (std::string_view(rule.name) != "arg" || op.args[rule.args[0]].type != BP_TYPE_SHAPE) return -1;
    if (found >= 0 && found != static_cast<int32_t>(rule.args[0])) return -1;
    found = static_cast<int32_t>(rule.args[0]);
  }
  return found;
}

// All rows in one draw, from a sequence of their own.
void draw_rows(BatchedCall& c, int32_t shape_arg) {
  bp_value& shape = c.args[shape_arg];
  int64_t* sizes = c.ints(shape.count + 1);
  sizes[0] = c.size();
  std::copy_n(shape.u.ints, shape.count, sizes + 1);
  c.set_ints(shape_arg, sizes, shape.count + 1);
  const RowGenerator generator(c, 0, c.args);
  c.run();
}

}  // namespace

RowGenerator::RowGenerator(const BatchedCall& c, int64_t row, bp_value* args) {
  if (c.level.randomness != Randomness::kDifferent) return;
  size_t n = 0;
  for (int32_t i = 0; i < c.call.n_args; ++i) {
    if (args[i].tag != BP_TAG_GENERATOR) continue;
    BP_CHECK(n < std::size(states_), NOT_IMPLEMENTED, c.record.name, ": takes more than ", std::size(states_),
             " generators, which ", c.level.transform, " does not know how to split");
    states_[n] = derived_generator(*args[i].u.g, static_cast<uint64_t>(row));
    args[i].u.g = &states_[n++];
  }
}

bool run_random(BatchedCall& c) {
  const BatchRule& rule = c.call.op.batch;
  BP_CHECK(c.level.randomness != Randomness::kError, VALUE, c.level.transform, ": the function draws random numbers (",
           c.record.name,
           "), but the call does not state whether the rows share them. Fix: pass randomness='different' ",
           c.level.transform, " for different numbers in each row, or randomness='same'");
  BelowLevel below(c.level);
  const bool same = c.level.randomness == Randomness::kSame;
  if (same && !c.any) {
    c.run();
    return false;
  }
  const int32_t shape = shape_argument(c.record);
  if (!c.any && shape >= 0) {
    draw_rows(c, shape);
    return true;
  }
  ShapeResult row;
  for (int32_t j = 0; j < c.call.n_outs; ++j) c.infer_row(j, row);
  if (c.size() == 0) {
    no_rows(c);
  } else if (!same && c.any && rule.kind == BatchRule::Kind::kStated) {
    const RowGenerator generator(c, 0, c.args);
    run_stated(c);
  } else if (c.any && (rule.kind == BatchRule::Kind::kMissing || rule.kind == BatchRule::Kind::kRefused)) {
    refuse_batch(c);
  } else {
    run_loop(c);
  }
  return true;
}

}  // namespace backplane::core
