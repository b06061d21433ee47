// include/backplane/bp/methods.hpp and ops.hpp: the ops of namespace bp on bp::Tensor
// (sdk/include/backplane/bp/tensor.hpp), as functions and as members. Each calls the function of
// include/backplane/ops.hpp. Ops that take a function are left out: bp/transforms.hpp has them.
#include <algorithm>

#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr CppTypes kUserTypes = {"Operand", "TensorList",      "Scalar", "Positions",
                                 "IntList", "OptionalIntList", "Dtype",  "Device"};

std::string user_type(const Arg& arg) { return cpp_parameter_type(arg, kUserTypes); }

bool takes_function(const Entry& entry) {
  const auto& args = entry.signature.args;
  return std::any_of(args.begin(), args.end(), [](const Arg& arg) { return arg.type == BP_TYPE_GRAPH; });
}

class UserFunctionWriter {
 public:
  explicit UserFunctionWriter(const Entry& entry) : entry_(entry), name_(cpp_identifier(entry.name())) {}

  // As the Python package has it: an op is a method where its first argument is `x`.
  bool is_method() const {
    const auto& args = entry_.signature.args;
    return !args.empty() && args[0].name == "x" && args[0].type == BP_TYPE_TENSOR && !args[0].has(BP_ARG_LIST);
  }

  std::string declared_struct() const { return results().size() > 1 ? "struct " + name_ + "_results;\n" : ""; }

  std::string declared_methods() const {
    std::string text = "  // " + comment(entry_.doc.value) + "\n";
    text += "  " + result_type() + " " + name_ + "(" + parameters(1, true) + ") const;\n";
    if (changes_one_in_place()) text += "  const Tensor& " + name_ + "_(" + parameters(1, true) + ") const;\n";
    return text;
  }

  std::string results_struct() const {
    if (results().size() < 2) return "";
    std::string text = "struct " + name_ + "_results {\n";
    for (const ResultSpec& result : results()) text += "  Tensor " + cpp_identifier(result.name) + ";\n";
    return text + "};\n";
  }

  std::string declaration() const { return result_type() + " " + name_ + "(" + parameters(0, true) + ")"; }

  std::string functions() const {
    std::string text = "\n// " + comment(entry_.doc.value) + "\n//   " + comment(entry_.signature.text.value) + "\n";
    text += results_struct();
    text += "inline " + declaration() + " {\n" + returned("backplane::" + name_ + "(" + passed(0, "") + ")") + "}\n";
    if (changes_one_in_place()) {
      const std::string first = cpp_identifier(entry_.signature.args[0].name);
      const std::string rest = parameters(1, true);
      text += "inline const Tensor& " + name_ + "_(const Tensor& " + first + (rest.empty() ? "" : ", " + rest) +
              ") {\n  backplane::" + name_ + "_(" + passed(1, first) + ");\n  return " + first + ";\n}\n";
    }
    if (entry_.out_variant && !results()[0].is_list) text += out_variant();
    return text;
  }

  std::string methods() const {
    std::string text = "inline " + result_type() + " TensorMethods::" + name_ + "(" + parameters(1, false) +
                       ") const {\n" + returned("backplane::" + name_ + "(" + passed(1, "plain_") + ")") + "}\n";
    if (changes_one_in_place())
      text += "inline const Tensor& TensorMethods::" + name_ + "_(" + parameters(1, false) +
              ") const {\n  backplane::" + name_ + "_(" + passed(1, "plain_") + ");\n  return self();\n}\n";
    return text;
  }

 private:
  const std::vector<ResultSpec>& results() const { return entry_.signature.results; }
  bool changes_one_in_place() const { return entry_.inplace && results().size() == 1; }

  std::string result_type() const {
    if (results().size() > 1) return name_ + "_results";
    return results()[0].is_list ? "std::vector<Tensor>" : "Tensor";
  }

  std::string returned(const std::string& call) const {
    if (results().size() == 1)
      return results()[0].is_list ? "  return detail::adopted(" + call + ");\n" : "  return " + call + ";\n";
    std::string text = "  auto found = " + call + ";\n  return {";
    for (size_t i = 0; i < results().size(); ++i)
      text += (i ? ", std::move(found." : "std::move(found.") + cpp_identifier(results()[i].name) + ")";
    return text + "};\n";
  }

  // Required ones, those with defaults, and the generators, which have one too.
  std::string parameters(size_t from, bool with_defaults) const {
    const auto& args = entry_.signature.args;
    std::string text;
    for (const int pass : {0, 1, 2}) {
      for (size_t i = from; i < args.size(); ++i) {
        const bool generator = args[i].type == BP_TYPE_GENERATOR;
        if (pass != (generator ? 2 : args[i].has(BP_ARG_HAS_DEFAULT) ? 1 : 0)) continue;
        text += (text.empty() ? "" : ", ") + user_type(args[i]) + " " + cpp_identifier(args[i].name);
        if (with_defaults && pass == 1) text += " = " + cpp_default(args[i]);
        if (with_defaults && pass == 2) text += args[i].has(BP_ARG_OPTIONAL) ? " = nullptr" : " = default_generator()";
      }
    }
    return text;
  }

  // In the order of the function that is called: required ones, then those with defaults.
  std::string passed(size_t from, const std::string& first) const {
    const auto& args = entry_.signature.args;
    std::string text = first;
    for (const bool with_default : {false, true})
      for (size_t i = from; i < args.size(); ++i)
        if (args[i].has(BP_ARG_HAS_DEFAULT) == with_default)
          text += (text.empty() ? "" : ", ") + cpp_identifier(args[i].name);
    return text;
  }

  std::string out_variant() const {
    std::string outs, given;
    for (const ResultSpec& result : results()) {
      const std::string name = results().size() == 1 ? "out" : cpp_identifier(result.name) + "_out";
      outs += (outs.empty() ? "" : ", ") + ("const Tensor& " + name);
      given += (given.empty() ? "" : ", ") + name;
    }
    const std::string rest = parameters(0, true);
    return "inline void " + name_ + "_out(" + outs + (rest.empty() ? "" : ", " + rest) + ") {\n  backplane::" + name_ +
           "_out(" + passed(0, given) + ");\n}\n";
  }

  const Entry& entry_;
  std::string name_;
};

std::string methods_header(const std::vector<UserFunctionWriter>& writers) {
  std::string text;
  for (const UserFunctionWriter& writer : writers)
    if (writer.is_method()) text += writer.declared_struct();
  text +=
      "\n// What Tensor inherits: the ops whose first argument is x, as members. `name_` works in place.\n"
      "class TensorMethods {\n public:\n";
  for (const UserFunctionWriter& writer : writers)
    if (writer.is_method()) text += writer.declared_methods();
  return text +
         "\n protected:\n  TensorMethods() = default;\n"
         "  explicit TensorMethods(backplane::Tensor plain) noexcept : plain_(std::move(plain)) {}\n"
         "  const Tensor& self() const noexcept;\n\n  backplane::Tensor plain_;\n};\n";
}

}  // namespace

std::string cpp_declaration(const Entry& entry) {
  return takes_function(entry) ? "" : UserFunctionWriter(entry).declaration();
}

void emit_cpp_tensor(const EmitContext& context, OutputSet& out) {
  std::vector<UserFunctionWriter> writers;
  for (const CompiledOp& op : context.registry.ops)
    if (!takes_function(*op.entry)) writers.emplace_back(*op.entry);
  const std::string methods = file_banner("// ", "The ops as members of bp::Tensor.", context, "");
  out.add("include/backplane/bp/methods.hpp",
          methods + "#pragma once\n\n#include \"backplane/bp/types.hpp\"\n\nnamespace bp {\n\n" +
              methods_header(writers) + "\n}  // namespace bp\n");
  std::string text =
      file_banner("// ", "The ops as functions of bp::Tensor, and the definitions of its members.", context, "") +
      "#pragma once\n\n#include \"backplane/bp/tensor.hpp\"\n#include \"backplane/ops.hpp\"\n\nnamespace bp {\n";
  for (const UserFunctionWriter& writer : writers) text += writer.functions();
  text += "\n// ---- members\n\n";
  for (const UserFunctionWriter& writer : writers)
    if (writer.is_method()) text += writer.methods();
  out.add("include/backplane/bp/ops.hpp", text + "\n}  // namespace bp\n");
}

}  // namespace backplane::codegen
