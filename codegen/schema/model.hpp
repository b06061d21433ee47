// The typed model of a registry file: what its author wrote, with the place of everything.
//
// Made by read_registry, never changed afterwards. All Texts point into Sources that the
// RegistryFile owns.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backplane/abi/op.h"
#include "schema/formula.hpp"
#include "schema/yaml_tree.hpp"

namespace backplane::codegen {

struct Literal {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kString, kDtype, kInts, kFloats };
  Kind kind = Kind::kNone;
  int64_t integer = 0;  // of bool, int, dtype
  double number = 0;
  std::string text;  // of a string; otherwise as written
  std::vector<int64_t> ints;
  std::vector<double> floats;
};

struct Arg {
  std::string name;
  uint16_t type = 0;   // BP_TYPE_*
  uint16_t flags = 0;  // BP_ARG_*
  uint32_t since = 0;
  Literal default_value;      // with BP_ARG_HAS_DEFAULT
  Text doc;                   // its meaning, of the entry's `args`; argument_doc() also asks those of the file
  std::vector<Text> choices;  // of a str: the words that it takes; none where any is taken
  std::string only;           // of a Tensor of a spelling: the dtypes that select it, "bool", "integer" or "complex"
  size_t offset = 0;          // within the signature

  bool has(uint16_t flag) const { return (flags & flag) != 0; }
  bool is_tensor() const { return type == BP_TYPE_TENSOR; }
  // Is the word a choice? Any is where none are stated.
  bool may_be(std::string_view word) const {
    bool found = choices.empty();
    for (const Text& choice : choices) found = found || choice.value == word;
    return found;
  }
};

struct ResultSpec {
  std::string name;
  bool is_list = false;
  bool nondiff = false;
  size_t offset = 0;
};

struct Signature {
  Text text;
  std::string name;  // with its overload, "sum.axis"
  std::vector<Arg> args;
  std::vector<ResultSpec> results;
  bool changes = false;  // written with Tensor(mut): the results are new values of arguments

  int find_arg(std::string_view name) const;     // -1: none
  int find_result(std::string_view name) const;  // -1: none
};

struct Rule {
  // kDamaged: stated, but its text could not be read; that is reported already.
  enum class Kind : uint8_t { kFormula, kZero, kRefused, kLinear, kLoop, kDecompose, kDamaged };
  Kind kind = Kind::kFormula;
  Location where;
  Text text;  // the formula, or the reason of a refusal
  ExprPtr expr;
  std::vector<uint32_t> targets;
  // jvp of an op with several results: one addend each; expr is then empty.
  std::vector<std::pair<Text, ExprPtr>> per_result;
};

// A name that all rules of an entry may use; each rule computes it where it does.
struct Let {
  Text name;
  Text text;
  ExprPtr expr;  // nullptr: damaged
};

// Coefficients that formulas name: a list of numbers.
struct Table {
  Text name;
  ExprPtr list;
};

// A formula with named parameters: `define: {halves(x): x * 0.5}`.
struct Definition {
  Text name;  // with its parameters
  std::string word;
  std::vector<std::string> params;
  Text text;
  ExprPtr expr;  // nullptr: damaged
};

// What the files of a registry state for the formulas of all of its entries.
struct SharedNames {
  const Definition* find_definition(std::string_view word) const {
    for (const Definition& definition : definitions)
      if (definition.word == word) return &definition;
    return nullptr;
  }

  std::map<std::string, Table, std::less<>> tables;
  std::map<std::string, Text, std::less<>> args;  // meanings of arguments, by "NAME" or "TYPE NAME"
  std::vector<Definition> definitions;
};

// What an elementwise op does to one element, for some compute dtypes.
struct ScalarRule {
  bp_dtype_mask dtypes = 0;
  Location where;
  Text text;
  ExprPtr expr;  // nullptr: damaged
};

// In what the formulas of an op compute on half floats; kDerived: in float32 where they round more than once.
enum class HalfCompute : uint8_t { kDerived, kAccumulate, kOwn };

struct DtypeRule {
  Location where;
  HalfCompute half = HalfCompute::kDerived;
  std::vector<bp_dtype_mask> accepts;  // per argument
  uint64_t promote = 0;
  uint32_t flags = 0;
  std::vector<bp_result_dtype> results;
};

struct ShapeSpec {
  Text text;
  ExprPtr expr;  // a kCall of the vocabulary, kName "dynamic", or a formula; nullptr: damaged
};

struct TensorSample {
  std::vector<int64_t> shape;
  std::string dtype;   // "" : the law's
  std::string gen;     // as written; "" : the default
  std::string layout;  // "" : contiguous
};

struct SampleValue {
  enum class Kind : uint8_t { kLiteral, kTensor, kTensorList, kGenerator };
  Kind kind = Kind::kLiteral;
  Literal literal;
  std::vector<std::optional<TensorSample>> tensors;
  uint64_t key = 0, counter = 0;
  Location where;
};

struct Sample {
  Location where;
  std::vector<std::pair<uint32_t, SampleValue>> values;  // by argument, in the order of the signature
  std::vector<TensorSample> expected;                    // per result: its shape and values; none where none are stated
  std::string error;                                     // "" : the call must succeed
  std::string varies;  // of a derived one: the argument that is another one than in the sample that it is made of
};

// Another way to call an op from Python: a word for an argument, or a signature and its call.
struct OpSpelling {
  Location where;
  Text text;                           // the word, or the signature
  Text meaning;                        // the argument, or the call
  std::optional<Signature> signature;  // without results
  ExprPtr call;                        // of a signature; nullptr: damaged
  uint32_t argument = 0;               // of a word
};

// The numbers that a Scalar may be, for derived samples.
struct FuzzRange {
  uint32_t arg = 0;
  double low = 0, high = 0;
};

// A rule of graphs: where `from` stands, `to` may stand, if all of `when` hold.
struct Rewrite {
  Location where;
  Text from, to;
  std::vector<Text> when;
  ExprPtr from_expr, to_expr;  // nullptr: damaged
  std::vector<ExprPtr> when_exprs;
};

using WordMap = std::vector<std::pair<Text, Text>>;

struct Entry {
  // Takes a function, whose rules are the op's.
  bool is_higher_order() const {
    for (const Arg& arg : signature.args)
      if (arg.type == BP_TYPE_GRAPH) return true;
    return false;
  }

  // The Tensors that a call must name, where it must name nothing else; 0 where it must.
  size_t operands() const {
    size_t count = 0;
    for (const Arg& arg : signature.args) {
      if (arg.has(BP_ARG_HAS_DEFAULT)) continue;
      if (!arg.is_tensor() || arg.has(BP_ARG_LIST) || arg.has(BP_ARG_KEYWORD_ONLY)) return 0;
      ++count;
    }
    return count;
  }

  const FuzzRange* fuzz_of(uint32_t arg) const;  // nullptr: none is stated

  Location where;
  std::string_view file;  // its document's name
  std::string ns;
  std::string full_name;  // "bp::add"
  Signature signature;
  Text doc, family, put_text, example, since, compare;
  Text operator_symbol;  // what formulas may write for this op
  std::vector<Text> source, tags, aliases;
  bool composite = false, host = false, moves = false, random = false, pass_zeros = false;
  uint64_t computes_where = 0;  // with `moves`: a bit per bool argument that, where true, makes it compute
  bool view = false, maybe_view = false, inplace = false, out_variant = false;
  uint32_t alias = BP_NO_ARG;
  std::optional<uint64_t> faults;  // BP_FAULT_*
  uint16_t region = BP_REGION_DERIVED, join = BP_JOIN_NONE;
  Text region_text;
  DtypeRule dtypes;
  std::vector<Let> lets;                // each may use those before it
  const SharedNames* shared = nullptr;  // of its file
  std::vector<ShapeSpec> shapes;
  std::vector<Rule> partial, vjp, jvp;
  std::optional<Rule> batch, decompose, put;
  bool states_vjp = false, states_jvp = false;
  std::vector<ScalarRule> scalars;  // the first that has the dtype holds
  bool states_scalar = false;       // if only that there is none
  WordMap errors, except;
  std::vector<Sample> samples, large_samples;
  std::vector<FuzzRange> fuzz;
  std::vector<OpSpelling> spellings;
  double tolerance = 4;
  uint32_t revision = 0;
  // Of the padded form of an op with `dynamic(max=N)`: per result but the count, is its first size the largest one?
  std::vector<bool> padded;
  const Entry* made_of = nullptr;  // of such an op: its padded form
  bool damaged = false;            // its signature could not be read: checks skip it
  bool imported = false;           // may be called, is not emitted

  const std::string& name() const { return signature.name; }
};

// What an argument means: the text of its entry, else the text of the files for its type and name or for its name;
// "" where none states one. read_arguments.cpp
std::string argument_doc(const Entry& entry, const Arg& arg);
std::string type_text(const Arg& arg);  // as signatures write it: "Axes?", "Size[]"

// One file of text: the registry file itself, or one that it includes.
struct Document {
  std::string name;  // from the folder of the registry file: "ops.yaml", "ops/linalg.yaml"
  std::unique_ptr<Source> source;
  std::unique_ptr<YamlTree> tree;
};

struct RegistryFile {
  std::vector<std::unique_ptr<Document>> documents;  // the registry file itself comes first
  std::string ns;
  bool imported = false;  // may be called, is not emitted
  SharedNames shared;
  std::deque<Entry> entries;
  std::deque<Rewrite> rewrites;
};

}  // namespace backplane::codegen
