// The batch rules that follow from a word of the shape vocabulary.
#pragma once

#include "record/op_record.hpp"
#include "registry/batch_rule.hpp"

namespace backplane::core {

// A word's rule, for a record that says that it follows (bp_batch_follows of backplane/abi/vocabulary.h).
struct DerivedRule {
  const char* word;
  BatchRule::Derived run;
};
const DerivedRule* find_derived_rule(std::string_view word) noexcept;

// Pieces that rules share. The axis arguments of a call, which count the axes of a tensor of `rank` dims per row, past
// the batch: negative ones are made positive, and absent `Axes` are all of them.
void shift_axes(BatchedCall& call, int32_t rank);

}  // namespace backplane::core
