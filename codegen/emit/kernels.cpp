// include/SYMBOL_kernels.hpp: for authors of kernels, a struct per op with its arguments by name and meaning.
#include <algorithm>

#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// What the structs say themselves, beside the words of C++.
std::string field_name(const std::string& argument) {
  static constexpr std::string_view kOwn[] = {"from",     "values",     "kOp",        "kRevision",   "kArguments",
                                              "kResults", "TensorList", "IntList",    "bp_tensor",   "int32_t",
                                              "uint32_t", "tensor_of",  "tensors_of", "ints_of",     "int_or_null",
                                              "dtype_of", "device_of",  "text_of",    "generator_of"};
  const std::string name = cpp_identifier(argument);
  return std::find(std::begin(kOwn), std::end(kOwn), name) == std::end(kOwn) ? name : name + "_";
}

struct Field {
  std::string type;
  std::string read;  // from `v`
};

Field field_of(const Arg& arg) {
  if (arg.type == BP_TYPE_TENSOR)
    return arg.has(BP_ARG_LIST) ? Field{"TensorList", "tensors_of(v)"} : Field{"const bp_tensor*", "tensor_of(v)"};
  if (arg.has(BP_ARG_OPTIONAL_ELEMENTS) || (arg.has(BP_ARG_LIST) && arg.type == BP_TYPE_SCALAR))
    return {"bp_value", "v"};
  if (arg.has(BP_ARG_LIST) || arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_SHAPE) return {"IntList", "ints_of(v)"};
  switch (arg.type) {
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      return arg.has(BP_ARG_OPTIONAL) ? Field{"const int64_t*", "int_or_null(v)"} : Field{"int64_t", "v.u.i"};
    case BP_TYPE_BOOL:
      return {"bool", "v.u.i != 0"};
    case BP_TYPE_DTYPE:
      return {"bp_dtype", "dtype_of(v)"};
    case BP_TYPE_DEVICE:
      return {"const bp_device*", "device_of(v)"};
    case BP_TYPE_GENERATOR:
      return {"const bp_generator_state*", "generator_of(v)"};
    case BP_TYPE_STR:
      return {"const char*", "text_of(v)"};
    default:
      return {"bp_value", "v"};  // a Scalar: its kind matters
  }
}

constexpr const char* kReaders = R"(
struct TensorList {
  bp_tensor* const* data;
  uint32_t count;
};
struct IntList {
  const int64_t* data;
  uint32_t count;
  bool present;  // an absent list is empty
};

inline const bp_tensor* tensor_of(const bp_value& v) { return v.tag == BP_TAG_TENSOR ? v.u.t : nullptr; }
inline TensorList tensors_of(const bp_value& v) { return {v.u.tensors, v.tag == BP_TAG_TENSOR_LIST ? v.count : 0}; }
inline IntList ints_of(const bp_value& v) {
  if (v.tag != BP_TAG_INT_LIST) return {nullptr, 0, false};
  return {v.u.ints, v.count, true};
}
inline const int64_t* int_or_null(const bp_value& v) { return v.tag == BP_TAG_INT ? &v.u.i : nullptr; }
inline bp_dtype dtype_of(const bp_value& v) { return v.tag == BP_TAG_DTYPE ? static_cast<bp_dtype>(v.u.i) : bp_dtype{BP_DTYPE_NONE}; }
inline const bp_device* device_of(const bp_value& v) { return v.tag == BP_TAG_DEVICE ? &v.u.d : nullptr; }
inline const bp_generator_state* generator_of(const bp_value& v) { return v.tag == BP_TAG_GENERATOR ? v.u.g : nullptr; }
inline const char* text_of(const bp_value& v) { return v.tag == BP_TAG_STRING ? v.u.s : nullptr; }
)";

std::string struct_of(const Entry& entry) {
  const std::string name = c_identifier(entry.name()) + "_args";
  std::string fields, reads;
  size_t index = 0;
  for (const Arg& arg : entry.signature.args) {
    const Field field = field_of(arg);
    const std::string value = "values[" + std::to_string(index++) + "]";
    std::string read = field.read;
    for (size_t at = 0; (at = read.find('v', at)) != std::string::npos; ++at) {
      const bool alone =
          (at == 0 || read[at - 1] == '(') && (at + 1 == read.size() || read[at + 1] == ')' || read[at + 1] == '.');
      if (!alone) continue;
      read.replace(at, 1, value);
      at += value.size() - 1;
    }
    fields += "  " + field.type + " " + field_name(arg.name) + ";\n";
    reads += (reads.empty() ? "" : ", ") + read;
  }
  std::string text = "\n// " + entry.full_name + ": " + comment(entry.doc.value) + "\nstruct " + name + " {\n";
  text += "  static constexpr const char* kOp = " + c_string(entry.full_name) +
          ";\n  static constexpr uint32_t kRevision = " + std::to_string(entry.revision) + ";\n";
  text += "  static constexpr int32_t kArguments = " + std::to_string(entry.signature.args.size()) +
          ";\n  static constexpr int32_t kResults = " + std::to_string(entry.signature.results.size()) + ";\n" + fields;
  const std::string parameter = entry.signature.args.empty() ? "const bp_value*" : "const bp_value* values";
  return text + "  static " + name + " from(" + parameter + ") { return {" + reads + "}; }\n};\n";
}

}  // namespace

void emit_kernels(const EmitContext& context, OutputSet& out) {
  const std::string ns = context.ns == "bp" ? "backplane" : context.ns;
  std::string text =
      file_banner("// ", "What kernels of the ops of namespace " + context.ns + " receive, by name.", context, "");
  text +=
      "//\n// `const auto args = NAME_args::from(values);` in a kernel of the contract's form. Borrowed, like the "
      "values. A number in a\n"
      "// tensor's place leaves nullptr: kernels whose row takes immediates read the value itself.\n#pragma once\n\n"
      "#include \"backplane/abi/host.h\"\n\nnamespace " +
      ns + "::kernels {\n";
  text += kReaders;
  for (const CompiledOp& op : context.registry.ops)
    if (!op.entry->composite && !op.entry->is_higher_order()) text += struct_of(*op.entry);
  out.add("include/" + context.symbol + "_kernels.hpp", text + "\n}  // namespace " + ns + "::kernels\n");
}

}  // namespace backplane::codegen
