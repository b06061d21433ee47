// The registry as the kit sees it: every entry of the samples.json files, which codegen writes beside the op records.
//
// Found beside the installed SDK for the ops of backplane itself, and as NAME.samples.json beside a plugin's manifest.
// Read once, never changed. Functions throw Error.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "backplane/op.hpp"

namespace backplane::conformance {

struct TensorSpec {
  std::vector<int64_t> shape;
  bp_dtype dtype = BP_DTYPE_NONE;  // none stated: the case's
  std::string generator;           // as written; "": the default
  std::string layout;              // "": contiguous
};

// What a sample says of one argument: tensors, the state of a generator, or a literal.
struct SampleValue {
  std::vector<std::optional<TensorSpec>> tensors;
  bool is_tensors = false;
  bool is_list = false;
  std::optional<bp_generator_state> generator;
  nlohmann::json literal;
};

struct Sample {
  std::map<std::string, SampleValue> values;  // by argument; what is left out takes its default
  std::vector<TensorSpec> expected;           // per result, with its values; none where the entry states none
  std::string error;                          // "": the call succeeds
  bool large = false;                         // of a size at which devices change their method: the check `large` alone
  // Of a sample that codegen derived: the argument that is another one than in the entry's own. The op may refuse it.
  std::string varies;

  bool is_usual() const { return error.empty() && !large; }
};

struct Argument {
  std::string name;
  std::string type;
  bool is_list = false;
  bool promotes = false;
  bp_dtype_mask accepts = 0;

  bool is_tensor() const { return type == "Tensor"; }
};

struct Entry {
  bool has(const char* flag) const { return flags.count(flag) != 0; }
  bool has_generator() const;
  // Do equal arguments give equal results, within the tolerance?
  bool is_repeatable() const { return compare != "metadata" && (compare != "distribution" || has_generator()); }
  bool exempt(const char* law) const { return exempted.count(law) != 0; }

  std::string name;
  OpHandle op = BP_NO_OP;
  std::vector<Argument> args;
  std::vector<std::string> result_names;
  std::vector<bool> list_results;    // per result: is it a list?
  std::vector<bool> differentiable;  // per result
  std::vector<bool> padded;          // per result but the last, the count: are its rows from the count on padding?
  std::set<std::string> flags;
  std::string family;
  std::map<std::string, std::string> vjp;  // argument -> kind
  double tolerance = 4;
  std::string compare;
  bool decomposes = false;
  std::map<std::string, std::string> exempted;  // law -> reason
  std::vector<Sample> samples;
};

// The widest dtype of the same kind that every promoting argument takes: what a result in `dtype` is held against.
bp_dtype widest_taken(const Entry& entry, bp_dtype dtype);

// The entries of the file whose ops are registered; those that no loaded plugin brings are left out.
std::vector<Entry> read_samples(const std::string& path);

// Where the samples of backplane's own ops are: BACKPLANE_SAMPLES, or in share/backplane above this program.
std::string base_samples_path();

// Dtypes that every promoting tensor of the sample takes, in their order; empty where no tensor promotes.
std::vector<bp_dtype> dtypes_of(const Entry& entry, const Sample& sample);

}  // namespace backplane::conformance
