// How an op batches: read from its record at registration (batch/batch_rules.cpp), and kept in its entry.
#pragma once

#include <cstdint>

#include "backplane/abi/op.h"

namespace backplane::core {

struct OpRecord;
struct ShapeResult;  // record/shape_rules.hpp
class BatchedCall;   // batch/batched_call.hpp

struct BatchRule {
  // The first that applies, but for a refusal in writing, which comes before all.
  enum class Kind : uint8_t {
    kStated,     // a formula of the entry, on tensors whose batch is at axis 0
    kDerived,    // from the shape class
    kDecompose,  // by its parts
    kLoop,       // row by row, where the entry says so
    kCreation,   // no tensor argument: nothing to batch
    kRefused,    // in writing, or since a result's shape depends on values
    kMissing     // none: an error at use
  };
  // `row`: what the shape rule says of the first result of one row; nullptr for an elementwise op.
  using Derived = void (*)(BatchedCall& call, const ShapeResult* row);

  Kind kind = Kind::kMissing;
  bool elementwise = false;             // of a derived rule: shapes are inferred per row only to explain an error
  Derived derived = nullptr;            // of a derived rule
  const char* word = "";                // of a derived rule: the shape's word
  const bp_formula* formula = nullptr;  // what the entry states
};

}  // namespace backplane::core
