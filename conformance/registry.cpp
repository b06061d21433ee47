// Reading samples.json; see registry.hpp.
#include "registry.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "array.hpp"
#include "backplane/device.hpp"

namespace backplane::conformance {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

// JSON has no word for them; the file has Python's, which are made into texts here.
std::string with_quoted_numbers(const std::string& text) {
  static constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
  std::string result;
  result.reserve(text.size());
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      result += text[i++];
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      std::string_view found;
      for (const std::string_view word : kWords)
        if (text.compare(i, word.size(), word) == 0) found = word;
      if (!found.empty()) {
        result.append("\"").append(found).append("\"");
        i += found.size() - 1;
        continue;
      }
    }
    result += text[i];
  }
  return result;
}

bp_dtype dtype_named(const std::string& name) {
  for (bp_dtype dtype = 0; dtype < BP_DTYPE_COUNT; ++dtype)
    if (name == dtype_name(dtype)) return dtype;
  return BP_DTYPE_NONE;
}

TensorSpec read_tensor(const Json& row) {
  return {row.at("shape").get<std::vector<int64_t>>(), dtype_named(row.at("dtype")), row.at("gen"), row.at("layout")};
}

SampleValue read_value(const Json& row) {
  SampleValue value;
  if (row.contains("tensor")) {
    value.is_tensors = true;
    value.tensors.push_back(read_tensor(row["tensor"]));
  } else if (row.contains("tensors")) {
    value.is_tensors = value.is_list = true;
    for (const Json& one : row["tensors"])
      value.tensors.push_back(one.is_null() ? std::nullopt : std::optional(read_tensor(one)));
  } else if (row.contains("generator")) {
    value.generator = bp_generator_state{row["generator"].at("key"), row["generator"].at("counter")};
  } else {
    value.literal = row.at("value");
  }
  return value;
}

Argument read_argument(const Json& row, bool to_floating) {
  Argument arg{row.at("name"), row.at("type"), row.at("list"), row.at("promote"), 0};
  for (const Json& name : row.at("accepts")) arg.accepts |= BP_DTYPE_BIT(dtype_named(name));
  // What an op that computes in floating point takes beside the dtypes that it computes in.
  if (to_floating && arg.promotes) arg.accepts |= BP_MASK_BOOL | BP_MASK_INTEGER;
  return arg;
}

Entry read_entry(const Json& row) {
  Entry entry;
  entry.name = row.at("name");
  entry.op = find_op(entry.name);
  for (const Json& flag : row.at("flags")) entry.flags.insert(flag);
  for (const Json& arg : row.at("args")) entry.args.push_back(read_argument(arg, entry.has("to_floating")));
  for (const Json& result : row.at("results")) {
    entry.result_names.push_back(result.at("name"));
    entry.list_results.push_back(result.at("list"));
    entry.differentiable.push_back(!result.at("nondiff"));
  }
  for (const bool is : row.value("padded", std::vector<bool>{})) entry.padded.push_back(is);
  if (!row.at("family").is_null()) entry.family = row["family"];
  entry.vjp = row.at("vjp").get<std::map<std::string, std::string>>();
  entry.tolerance = row.at("tolerance");
  entry.compare = row.at("compare");
  entry.decomposes = row.at("decompose");
  for (const auto& [law, why] : row.at("except").items()) entry.exempted[law] = why;
  for (const char* key : {"samples", "derived", "large"})
    for (const Json& sample : row.value(key, Json::array())) {
      Sample& made = entry.samples.emplace_back();
      made.error = sample.at("error");
      made.large = std::strcmp(key, "large") == 0;
      made.varies = sample.value("varies", "");
      for (const Json& result : sample.value("expect", Json::array())) made.expected.push_back(read_tensor(result));
      for (const auto& [name, value] : sample.at("args").items()) made.values[name] = read_value(value);
    }
  return entry;
}

}  // namespace

bool Entry::has_generator() const {
  for (const Argument& arg : args)
    if (arg.type == "Generator") return true;
  return false;
}

std::vector<Entry> read_samples(const std::string& path) {
  std::ifstream file(path);
  BP_CHECK(file, VALUE, "conformance: ", path, ": cannot be read; expected the samples that codegen writes");
  std::ostringstream text;
  text << file.rdbuf();
  try {
    std::vector<Entry> entries;
    const Json document = Json::parse(with_quoted_numbers(text.str()));
    for (const Json& row : document.at("ops")) {
      Entry entry = read_entry(row);
      if (entry.op != BP_NO_OP) entries.push_back(std::move(entry));
    }
    return entries;
  } catch (const Json::exception& error) {
    detail::fail(BP_ERROR_VALUE, "conformance: ", path, ": ", error.what(), "; build the registry again");
  }
}

std::string base_samples_path() {
  if (const char* stated = std::getenv("BACKPLANE_SAMPLES")) return stated;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = program.parent_path().parent_path() / "share" / "backplane" / "samples.json";
  BP_CHECK(fs::exists(path, error), VALUE, "conformance: there is no ", path.string(),
           "; install the SDK's component sdk, or name the file in BACKPLANE_SAMPLES");
  return path.string();
}

bp_dtype widest_taken(const Entry& entry, bp_dtype dtype) {
  bp_dtype_mask common = 0;
  for (const bp_dtype_mask kind : {BP_MASK_FLOATING, BP_MASK_COMPLEX, BP_MASK_SIGNED, BP_MASK_UNSIGNED})
    if (kind & BP_DTYPE_BIT(dtype)) common = kind;
  for (const Argument& arg : entry.args)
    if (arg.is_tensor() && arg.promotes) common &= arg.accepts;
  bp_dtype widest = dtype;
  for (bp_dtype other = 0; other < BP_DTYPE_COUNT; ++other)
    if ((common & BP_DTYPE_BIT(other)) && Array(other, {}).bytes.size() > Array(widest, {}).bytes.size())
      widest = other;
  return widest;
}

std::vector<bp_dtype> dtypes_of(const Entry& entry, const Sample& sample) {
  bp_dtype_mask common = BP_MASK_ANY;
  bool any = false;
  for (const Argument& arg : entry.args) {
    const auto found = sample.values.find(arg.name);
    if (!arg.is_tensor() || !arg.promotes || found == sample.values.end()) continue;
    any = true;
    common &= arg.accepts;
  }
  std::vector<bp_dtype> dtypes;
  for (bp_dtype dtype = 0; any && dtype < BP_DTYPE_COUNT; ++dtype)
    if (common & BP_DTYPE_BIT(dtype)) dtypes.push_back(dtype);
  return dtypes;
}

}  // namespace backplane::conformance
