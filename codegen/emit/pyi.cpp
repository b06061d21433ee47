// SYMBOL.pyi: Python stubs of the ops as functions; of namespace bp also as methods of Tensor, where their first
// argument is called x. In-place forms are methods there, functions of `backplane.ops.NAMESPACE` elsewhere.
#include <algorithm>

#include "backplane/abi/signature.h"
#include "emit/emit.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// Literal['constant', 'reflect']
std::string literal(const Arg& arg) {
  std::string words;
  for (const Text& choice : arg.choices) words += (words.empty() ? "" : ", ") + python_string(choice.value);
  return "Literal[" + words + "]";
}

std::string annotation(const Arg& arg) {
  static constexpr std::pair<uint16_t, const char*> kTypes[] = {{BP_TYPE_TENSOR, "Tensor | Number"},
                                                                {BP_TYPE_SCALAR, "Number"},
                                                                {BP_TYPE_AXIS, "int"},
                                                                {BP_TYPE_AXES, "int | Sequence[int]"},
                                                                {BP_TYPE_SHAPE, "int | Sequence[int]"},
                                                                {BP_TYPE_SIZE, "int"},
                                                                {BP_TYPE_INDEX, "int"},
                                                                {BP_TYPE_DTYPE, "DType"},
                                                                {BP_TYPE_DEVICE, "Device | str"},
                                                                {BP_TYPE_GENERATOR, "Generator"},
                                                                {BP_TYPE_BOOL, "bool"},
                                                                {BP_TYPE_STR, "str"},
                                                                {BP_TYPE_GRAPH, "Callable[..., object]"}};
  std::string text = arg.type == 0 ? "None" : "object";
  for (const auto& [type, word] : kTypes)
    if (type == arg.type) text = word;
  if (!arg.choices.empty()) text = literal(arg);
  if (arg.has(BP_ARG_LIST)) {
    if (arg.is_tensor()) text = "Tensor";
    text = "Sequence[" + text + (arg.has(BP_ARG_OPTIONAL_ELEMENTS) ? " | None]" : "]");
  }
  return text + (arg.has(BP_ARG_OPTIONAL) && arg.type != 0 ? " | None" : "");
}

std::string default_text(const Literal& value) {
  switch (value.kind) {
    case Literal::Kind::kNone:
      return "None";
    case Literal::Kind::kBool:
      return value.integer ? "True" : "False";
    case Literal::Kind::kFloat:
      return value.text.find("inf") != std::string::npos || value.text.find("nan") != std::string::npos
                 ? "float('" + value.text + "')"
                 : value.text;
    case Literal::Kind::kString:
      return python_string(value.text);
    case Literal::Kind::kInts: {
      std::string text;
      for (const int64_t i : value.ints) text += (text.empty() ? "" : ", ") + std::to_string(i);
      return "(" + text + (value.ints.size() == 1 ? ",)" : ")");
    }
    case Literal::Kind::kFloats:
      return "...";
    default:
      return value.text;
  }
}

std::string parameters(const Signature& signature, size_t from, bool has_out) {
  std::string text;
  bool star = false;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (size_t i = from; i < signature.args.size(); ++i) {
    const Arg& arg = signature.args[i];
    if (arg.has(BP_ARG_KEYWORD_ONLY) && !star) add("*");
    star = star || arg.has(BP_ARG_KEYWORD_ONLY);
    add(python_identifier(arg.name) + ": " + annotation(arg) +
        (arg.has(BP_ARG_HAS_DEFAULT) ? " = " + default_text(arg.default_value) : ""));
    const bool last = i + 1 == signature.args.size() || !signature.args[i + 1].has(BP_ARG_POSITIONAL_ONLY);
    if (arg.has(BP_ARG_POSITIONAL_ONLY) && last) add("/");
  }
  if (has_out) {
    if (!star) add("*");
    add(signature.results.size() == 1 ? "out: Tensor | None = None" : "out: tuple[Tensor, ...] | None = None");
  }
  return text;
}

std::string returns(const Entry& entry) {
  const auto& results = entry.signature.results;
  const auto word = [](const ResultSpec& r) { return std::string(r.is_list ? "list[Tensor]" : "Tensor"); };
  if (results.size() == 1) return word(results[0]);
  std::string text;
  for (const ResultSpec& result : results) text += (text.empty() ? "" : ", ") + word(result);
  return "tuple[" + text + "]";
}

std::string docstring(const Entry& entry, const std::string& indent) {
  std::string doc;
  const std::string& text = entry.doc.value;
  for (size_t i = 0; i < text.size(); ++i) {
    // A quote is one only beside others, or at the end, where it would close the text.
    const bool closes = text[i] == '"' && (i + 1 == text.size() || text[i + 1] == '"');
    if (text[i] == '\\' || closes) doc += '\\';
    doc += text[i];
  }
  return "\n" + indent + "\"\"\"" + doc + "\"\"\"\n";
}

bool is_method(const Entry& entry) {
  const auto& args = entry.signature.args;
  return !args.empty() && args[0].name == "x" && args[0].is_tensor() && !args[0].has(BP_ARG_LIST);
}

// Further words and signatures, as two dicts that python/stubs joins to the functions above. A signature that only the
// dtypes of tensors select adds nothing to the types.
std::string spelled(const std::vector<CompiledSpelling>& spellings) {
  std::string words, signatures;
  for (const CompiledSpelling& spelling : spellings) {
    const Entry& entry = *spelling.entry;
    if (spelling.nodes.empty()) {
      words += "    (" + python_string(entry.name()) + ", " + python_string(spelling.stated->text.value) +
               "): " + python_string(entry.signature.args[spelling.stated->argument].name) + ",\n";
      continue;
    }
    const Signature& signature = *spelling.stated->signature;
    bool by_dtype = false;
    for (const Arg& arg : signature.args) by_dtype = by_dtype || !arg.only.empty();
    if (!by_dtype)
      signatures += "    " +
                    python_string("def " + signature.name + "(" + parameters(signature, 0, false) + ") -> " +
                                  returns(*spelling.nodes.back().op) + ": ...") +
                    ",\n";
  }
  return "\nspelled_words = {\n" + words + "}\nspelled_signatures = [\n" + signatures + "]\n";
}

}  // namespace

std::string python_declaration(const Entry& entry) {
  return python_identifier(entry.name()) + "(" + parameters(entry.signature, 0, entry.out_variant) + ") -> " +
         returns(entry);
}

std::string stubs(const EmitContext& context) {
  const bool own = context.ns == "bp";
  std::string functions, methods;
  for (const CompiledOp& op : context.registry.ops) {
    const Entry& entry = *op.entry;
    const std::string name = python_identifier(entry.name());
    functions += "\ndef " + name + "(" + parameters(entry.signature, 0, entry.out_variant) + ") -> " + returns(entry) +
                 ":" + docstring(entry, "    ");
    // With its first argument as `first`, which is a Tensor.
    const auto bound = [&](const std::string& word, const std::string& first, bool with_out) {
      const std::string rest = parameters(entry.signature, 1, with_out && entry.out_variant);
      // Python has one '/', after the last of them: the first needs its own where it is the only one.
      const bool alone = entry.signature.args[0].has(BP_ARG_POSITIONAL_ONLY) && rest.find('/') == std::string::npos;
      return "def " + word + "(" + first + (alone ? ", /" : "") + (rest.empty() ? "" : ", " + rest) + ") -> " +
             returns(entry) + ":";
    };
    const bool in_place = entry.inplace && !own;
    if (in_place)
      functions += "\n" + bound(name + "_", python_identifier(entry.signature.args[0].name) + ": Tensor", false) +
                   "\n    \"\"\"" + name +
                   (entry.signature.results.size() > 1
                        ? ", written into the arguments of its results' names, which are returned."
                        : ", written into its first argument, which is returned.") +
                   "\"\"\"\n";
    for (const Text& alias : entry.aliases) {
      const std::string other = python_identifier(alias.value);
      functions += "\n" + other + " = " + name + "\n";
      if (in_place) functions += "\n" + other + "_ = " + name + "_\n";
    }
    if (!own || !is_method(entry)) continue;
    methods += "    " + bound(name, "self", true) + " ...\n";
    if (entry.inplace) methods += "    " + bound(name + "_", "self", false) + " ...\n";
    for (const Text& alias : entry.aliases) {
      const std::string other = python_identifier(alias.value);
      methods += "    " + other + " = " + name + "\n";
      if (entry.inplace) methods += "    " + other + "_ = " + name + "_\n";
    }
  }
  std::string text = file_banner("# ", "Types of the ops of namespace " + context.ns + ".", context, "");
  text += "from collections.abc import Callable, Sequence\n";
  if (functions.find("Literal[") != std::string::npos) text += "from typing import Literal\n";
  text += "\nfrom backplane import Device, DType, Generator, Tensor\n";
  // Dtype names stand as defaults.
  text += "from backplane import ";
  for (int i = 0; i < BP_DTYPE_COUNT; ++i)
    text += (i ? ", " : "") + std::string(kDtypeNames[i]) + (kDtypeNames[i] == "bool" ? " as bool_" : "");
  text += "\n\nNumber = bool | int | float | complex\n" + functions;
  if (!methods.empty())
    text +=
        "\nclass TensorMethods:\n    \"\"\"What Tensor has from these ops; `name_` works in place.\"\"\"\n\n" + methods;
  if (!context.registry.spellings.empty()) text += spelled(context.registry.spellings);
  return text;
}

void emit_pyi(const EmitContext& context, OutputSet& out) { out.add(context.symbol + ".pyi", stubs(context)); }

}  // namespace backplane::codegen
