// The batch rules that follow from a word of the shape vocabulary.
#pragma once

#include "record/op_record.hpp"
#include "registry/batch_rule.hpp"

namespace backplane::core {

// What of a signature decides whether a word's rule may be applied.
struct BatchSignature {
  explicit BatchSignature(const OpRecord& record);
  int32_t tensors = 0;       // arguments, a list counted once
  bool lists = false;        // a list among them
  bool axes = false;         // an Axis or Axes argument
  bool may_flatten = false;  // an `Axis?`, whose absence does not mean all axes
  bool per_axis = false;     // an argument with an entry per axis, or of unknown meaning: Shape, Size[], Index[], Graph
};

// A word's rule, where it holds for this record; `rule` is the record's of its first result, the others have the same.
struct DerivedRule {
  const char* word;
  bool (*applies)(const OpRecord& record, const bp_shape_rule& rule, const BatchSignature& signature);
  BatchRule::Derived run;
};
const DerivedRule* find_derived_rule(std::string_view word) noexcept;

// batch_views.cpp
extern const DerivedRule kViewRules[];
extern const size_t kViewRuleCount;
// batch_matmul.cpp
void batch_matmul(BatchedCall& call, const ShapeResult* row);

// Pieces that rules share. The axis arguments of a call, which count the axes of a tensor of `rank` dims per row, past
// the batch: negative ones are made positive, and absent `Axes` are all of them.
void shift_axes(BatchedCall& call, int32_t rank);

}  // namespace backplane::core
