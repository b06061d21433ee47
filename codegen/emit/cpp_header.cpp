// include/backplane/ops.hpp (or include/NAMESPACE/ops.hpp): a C++ function per op, with its in-place and out variants.
#include <algorithm>

#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr CppTypes kTypes = {"backplane::Operand",   "backplane::Tensors", "backplane::Scalar",
                             "backplane::Positions", "backplane::Ints",    "backplane::OptionalInts",
                             "backplane::Dtype",     "bp_device"};

std::string parameter_type(const Arg& arg) { return cpp_parameter_type(arg, kTypes); }

class FunctionWriter {
 public:
  explicit FunctionWriter(const Entry& entry) : entry_(entry), name_(cpp_identifier(entry.name())) {}

  std::string write() {
    std::string text = "\n// " + comment(entry_.doc.value) + "\n//   " + comment(entry_.signature.text.value) + "\n";
    text += results().size() > 1   ? result_struct() + many_results()
            : results()[0].is_list ? list_result()
                                   : one_result();
    if (entry_.inplace) text += in_place();
    if (entry_.out_variant && !results()[0].is_list) text += out_variant();
    return text;
  }

 private:
  const std::vector<ResultSpec>& results() const { return entry_.signature.results; }

  // C++ wants defaults at the end, so a required keyword comes before them.
  std::string parameters(size_t from) const {
    const auto& args = entry_.signature.args;
    std::string text;
    for (const bool with_default : {false, true}) {
      for (size_t i = from; i < args.size(); ++i) {
        if (args[i].has(BP_ARG_HAS_DEFAULT) != with_default) continue;
        text += (text.empty() ? "" : ", ") + parameter_type(args[i]) + " " + cpp_identifier(args[i].name);
        if (with_default) text += " = " + cpp_default(args[i]);
      }
    }
    return text;
  }

  std::string arguments(const std::string& first = {}) const {
    std::string text;
    for (const Arg& arg : entry_.signature.args) {
      const std::string value =
          text.empty() && !first.empty() ? first : "backplane::detail::borrow(" + cpp_identifier(arg.name) + ")";
      text += (text.empty() ? "" : ", ") + value;
    }
    return text.empty() ? "bp_value{}" : text;
  }

  std::string prologue(const std::string& first = {}) const {
    std::string drawn;
    for (const Arg& arg : entry_.signature.args)
      if (arg.type == BP_TYPE_GENERATOR)
        drawn += "  const backplane::detail::Drawn drawn_" + arg.name + "(" + (arg.has(BP_ARG_OPTIONAL) ? "" : "&") +
                 cpp_identifier(arg.name) + ", op, args);\n";
    return "  static const backplane::OpHandle op = backplane::detail::op_named(" + c_string(entry_.full_name) +
           ");\n  " + (drawn.empty() ? "const " : "") + "bp_value args[] = {" + arguments(first) + "};\n" + drawn;
  }

  std::string one_result() const {
    return "inline backplane::Tensor " + name_ + "(" + parameters(0) + ") {\n" + prologue() +
           "  return backplane::detail::call_result(op, args);\n}\n";
  }

  std::string list_result() const {
    return "inline std::vector<backplane::Tensor> " + name_ + "(" + parameters(0) + ") {\n" + prologue() +
           "  bp_value out{};\n  backplane::detail::call_results(op, args, &out, 1);\n  return "
           "backplane::detail::adopt_list(out);\n}\n";
  }

  std::string result_struct() const {
    std::string text = "struct " + name_ + "_results {\n";
    for (const ResultSpec& result : results()) text += "  backplane::Tensor " + cpp_identifier(result.name) + ";\n";
    return text + "};\n";
  }

  std::string many_results() const {
    const std::string count = std::to_string(results().size());
    std::string text = "inline " + name_ + "_results " + name_ + "(" + parameters(0) + ") {\n" + prologue() +
                       "  bp_value outs[" + count + "] = {};\n  backplane::detail::call_results(op, args, outs, " +
                       count + ");\n  return {";
    for (size_t i = 0; i < results().size(); ++i)
      text += (i ? ", " : "") + ("backplane::Tensor::adopt(outs[" + std::to_string(i) + "].u.t)");
    return text + "};\n}\n";
  }

  std::string in_place() const {
    if (results().size() > 1)
      return "inline void " + name_ + "_(" + parameters(0) + ") {\n" + prologue() +
             "  backplane::detail::call_in_place(op, args);\n}\n";
    const std::string rest = parameters(1);
    const std::string first = cpp_identifier(entry_.signature.args[0].name);
    return "inline const backplane::Tensor& " + name_ + "_(const backplane::Tensor& " + first +
           (rest.empty() ? "" : ", " + rest) + ") {\n" + prologue("backplane::value(" + first + ")") +
           "  backplane::detail::call_in_place(op, args);\n  return " + first + ";\n}\n";
  }

  std::string out_variant() const {
    std::string outs, slots;
    for (const ResultSpec& result : results()) {
      const std::string name = results().size() == 1 ? "out" : cpp_identifier(result.name) + "_out";
      outs += (outs.empty() ? "" : ", ") + ("const backplane::Tensor& " + name);
      slots += (slots.empty() ? "" : ", ") + ("backplane::detail::given(" + name + ")");
    }
    const std::string rest = parameters(0);
    return "inline void " + name_ + "_out(" + outs + (rest.empty() ? "" : ", " + rest) + ") {\n" + prologue() +
           "  bp_value outs[] = {" + slots + "};\n  backplane::detail::call_results(op, args, outs, " +
           std::to_string(results().size()) + ");\n}\n";
  }

  const Entry& entry_;
  std::string name_;
};

}  // namespace

std::string cpp_parameter_type(const Arg& arg, const CppTypes& types) {
  const bool optional = arg.has(BP_ARG_OPTIONAL);
  const auto maybe = [&](const std::string& type) { return optional ? "std::optional<" + type + ">" : type; };
  switch (arg.type) {
    case BP_TYPE_TENSOR:
      return arg.has(BP_ARG_LIST) ? maybe(types.tensors) : types.operand;
    case BP_TYPE_SCALAR:
      return arg.has(BP_ARG_LIST) ? "std::span<const double>" : types.scalar;
    case BP_TYPE_AXIS:
    case BP_TYPE_SIZE:
    case BP_TYPE_INDEX:
      if (!arg.has(BP_ARG_LIST)) return maybe("int64_t");
      if (arg.has(BP_ARG_OPTIONAL_ELEMENTS)) return maybe(types.positions);
      [[fallthrough]];
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      return optional ? types.optional_ints : types.ints;
    case BP_TYPE_DTYPE:
      return maybe(types.dtype);
    case BP_TYPE_DEVICE:
      return maybe(types.device);
    case BP_TYPE_GENERATOR:
      return optional ? "bp_generator_state*" : "bp_generator_state&";
    case BP_TYPE_BOOL:
      return maybe("bool");
    case BP_TYPE_STR:
      return maybe("std::string_view");
    case BP_TYPE_GRAPH:
      return "const backplane::GraphFunction&";
    default:
      return "bp_value";
  }
}

std::string cpp_default(const Arg& arg) {
  const Literal& value = arg.default_value;
  switch (value.kind) {
    case Literal::Kind::kBool:
      return value.integer ? "true" : "false";
    case Literal::Kind::kInt:
      return std::to_string(value.integer);
    case Literal::Kind::kFloat:
      return value.text == "inf"    ? "__builtin_inf()"
             : value.text == "nan"  ? "__builtin_nan(\"\")"
             : value.text == "-inf" ? "-__builtin_inf()"
                                    : value.text;
    case Literal::Kind::kString:
      return c_string(value.text);
    case Literal::Kind::kDtype:
      return "bp_dtype{" + std::to_string(value.integer) + "}";
    case Literal::Kind::kInts: {
      std::string text;
      for (const int64_t i : value.ints) text += (text.empty() ? "" : ", ") + std::to_string(i);
      return "{" + text + "}";
    }
    default:
      return "{}";
  }
}

void emit_cpp(const EmitContext& context, OutputSet& out) {
  const std::string ns = context.ns == "bp" ? "backplane" : context.ns;
  std::string text = file_banner("// ", "C++ functions of the ops of namespace " + context.ns + ".", context, "");
  text +=
      "//\n// Each throws backplane::Error. A Tensor argument takes a number too; `name_` works in place, `name_out` "
      "writes into a\n"
      "// tensor that is given. Only declarations over backplane/operand.hpp: link libbackplane.\n#pragma once\n\n"
      "#include \"backplane/operand.hpp\"\n\nnamespace " +
      ns + " {\n";
  for (const CompiledOp& op : context.registry.ops) text += FunctionWriter(*op.entry).write();
  out.add("include/" + ns + "/ops.hpp", text + "\n}  // namespace " + ns + "\n");
  if (context.ns == "bp") emit_cpp_tensor(context, out);
}

}  // namespace backplane::codegen
