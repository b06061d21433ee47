// The form of the tables that codegen makes of `spellings` (ops/*.yaml): words for arguments, and signatures with the
// calls that they mean, as flat nodes. Constant data.
#pragma once

#include <cstdint>

namespace backplane::python {

struct SpelledLiteral {
  enum Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kDtype };
  Kind kind;
  int64_t integer;
  double number;
  const char* text;
};

// Another word for an argument of an op, under all names of the op.
struct SpelledWord {
  const char* op;  // "namespace::name"
  const char* word;
  int32_t argument;
};

struct SpelledParameter {
  enum Dtypes : uint8_t { kAll = 0, kBools = 1, kIntegers = 2, kComplex = 4 };
  const char* name;
  uint16_t type;   // BP_TYPE_*
  uint16_t flags;  // BP_ARG_*
  Dtypes dtypes;   // of a tensor: those that select the signature
  SpelledLiteral default_value;
};

// One argument of a called op: the value of an earlier node of the same call.
struct SpelledInput {
  uint16_t argument;
  uint16_t node;
};

struct SpelledNode {
  enum Kind : uint8_t { kParameter, kLiteral, kCall };
  Kind kind;
  uint16_t parameter;  // within its call
  uint16_t first_input, n_inputs;
  const char* op;  // of a call
  SpelledLiteral literal;
};

// A signature of an op under one name, and the call that it means: the last of its nodes.
struct SpelledCall {
  const char* op;         // "namespace::name"
  const char* name;       // the name that is called
  const char* signature;  // as Python writes it
  uint16_t first_parameter, n_parameters;
  uint16_t first_node, n_nodes;
};

}  // namespace backplane::python
