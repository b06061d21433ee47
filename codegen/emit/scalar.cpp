// include/NAMESPACE/scalar.EXT: a function per elementwise op and dtype in each dialect, and lists of them.
#include <algorithm>

#include "emit/emit.hpp"
#include "emit/scalar_dialects.hpp"
#include "emit/wgsl.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

std::string folder(const std::string& ns) { return ns == "bp" ? "backplane" : ns; }
std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Prints the nodes of one function.
class Printer {
 public:
  Printer(const Dialect& dialect, const ScalarFunction& function) : dialect_(dialect), function_(function) {}

  std::string function() const {
    std::string text(dialect_.is_cpp ? "BP_SCALAR_FN " : dialect_.function);
    text += dialect_.type(function_.result) + " " + function_.name + "(" + params() + ") {\n";
    for (const ScalarName& local : function_.locals)
      text += "  " + qualified(local.dtype, false) + local.name + " = " + node(local.value) + ";\n";
    // In GLSL each value says that it may not be rearranged, the last one too.
    if (!dialect_.c_casts && qualified(function_.result, false) != dialect_.type(function_.result) + " ")
      return text + "  " + qualified(function_.result, false) + "result = " + node(function_.root) +
             ";\n  return result;\n}\n";
    return text + "  return " + node(function_.root) + ";\n}\n";
  }

  std::string params() const {
    std::string text;
    for (const ScalarName& param : function_.params)
      text += (text.empty() ? "" : ", ") + dialect_.type(param.dtype) + " " + param.name;
    return text;
  }

 private:
  std::string qualified(bp_dtype dtype, bool) const {
    const bool precise = !dialect_.c_casts && has(kInexactDtypes, dtype);
    return (precise ? "precise " : "") + dialect_.type(dtype) + " ";
  }
  static constexpr bp_dtype_mask kInexactDtypes = BP_MASK_FLOATING | BP_MASK_COMPLEX;

  std::string node(uint32_t index) const {
    const ScalarNode& n = function_.nodes[index];
    switch (n.kind) {
      case ScalarNode::Kind::kNumber:
        return dialect_.number(n.dtype, n.number, n.integer);
      case ScalarNode::Kind::kName:
        return n.name;
      case ScalarNode::Kind::kOperator:
        return operation(n);
      case ScalarNode::Kind::kChoose:
        return "(" + node(n.children[0]) + " ? " + node(n.children[1]) + " : " + node(n.children[2]) + ")";
      case ScalarNode::Kind::kCall:
        return n.name + "(" + list(n) + ")";
      case ScalarNode::Kind::kIntrinsic:
        return dialect_.intrinsic(n.name, n.dtype, texts(n));
      case ScalarNode::Kind::kConvert:
        return dialect_.convert(function_.nodes[n.children[0]].dtype, n.dtype, node(n.children[0]));
      case ScalarNode::Kind::kPair:
        return dialect_.pair(n.dtype, node(n.children[0]), node(n.children[1]));
      default:
        return node(n.children[0]) + "." + std::string(n.name == "re" ? dialect_.re : dialect_.im);
    }
  }

  std::vector<std::string> texts(const ScalarNode& n) const {
    std::vector<std::string> all;
    for (const uint32_t child : n.children) all.push_back(node(child));
    return all;
  }
  std::string list(const ScalarNode& n) const {
    std::string text;
    for (const std::string& child : texts(n)) text += (text.empty() ? "" : ", ") + child;
    return text;
  }

  // Integers wrap: computed unsigned, with 32 bits or 64.
  std::string operation(const ScalarNode& n) const {
    const std::string a = node(n.children[0]);
    if (n.name == "not") return "(!" + a + ")";
    const bool wraps = has(BP_MASK_INTEGER, n.dtype);
    const bp_dtype word = wraps ? unsigned_of(working_integer(n.dtype)) : n.dtype;
    if (n.name == "neg")
      return wraps ? dialect_.cast(n.dtype, dialect_.number(word, 0, 0) + " - " + dialect_.cast(word, a))
                   : "(-" + a + ")";
    const std::string b = node(n.children[1]);
    if (n.name == "and") return "(" + a + " && " + b + ")";
    if (n.name == "or") return "(" + a + " || " + b + ")";
    if (!wraps) return "(" + a + " " + n.name + " " + b + ")";
    return dialect_.cast(n.dtype, dialect_.cast(word, a) + " " + n.name + " " + dialect_.cast(word, b));
  }

  const Dialect& dialect_;
  const ScalarFunction& function_;
};

// The types that a device may lack, as the macros name them.
std::vector<std::string> optional_types(const ScalarFunction& function) {
  struct Group {
    const char* name;
    bp_dtype_mask dtypes;
  };
  static constexpr Group kGroups[] = {{"INT8", BP_DTYPE_BIT(BP_INT8) | BP_DTYPE_BIT(BP_UINT8)},
                                      {"INT16", BP_DTYPE_BIT(BP_INT16) | BP_DTYPE_BIT(BP_UINT16)},
                                      {"INT64", BP_DTYPE_BIT(BP_INT64) | BP_DTYPE_BIT(BP_UINT64)},
                                      {"FLOAT64", BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX128)}};
  std::vector<std::string> names;
  for (const Group& group : kGroups)
    if (std::any_of(function.dtypes.begin(), function.dtypes.end(), [&](bp_dtype d) { return has(group.dtypes, d); }))
      names.push_back(group.name);
  return names;
}

std::string guard_of(const Dialect& dialect, const ScalarFunction& function) {
  std::string condition;
  for (const std::string& name : optional_types(function))
    condition += (condition.empty() ? "" : " && ") + ("!defined(BP_SCALAR_WITHOUT_" + name) + ")";
  return condition.empty() || !dialect.optional_types ? "" : "#if " + condition + "\n";
}

// One text serves all dtypes: comparisons of unsigned numbers with 0, of integers with themselves.
const std::string kQuiet = R"(#ifdef __NVCC__
#pragma nv_diagnostic push
#pragma nv_diag_suppress 186
#endif
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wtautological-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wconversion"
#endif
)";
const std::string kLoud = R"(#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif
#ifdef __NVCC__
#pragma nv_diagnostic pop
#endif
)";

using Functions = std::vector<const ScalarFunction*>;

Functions own_functions(const EmitContext& context) {
  Functions own;
  for (const auto& function : context.registry.scalars)
    if (!function->entry->imported) own.push_back(function.get());
  return own;
}

// Those of other namespaces that the own ones call, and what these call in turn; each after those that it calls.
Functions called_functions(const EmitContext& context, const Functions& own) {
  std::set<std::string> wanted;
  const auto add_calls = [&](const ScalarFunction& function) {
    for (const ScalarNode& node : function.nodes)
      if (node.kind == ScalarNode::Kind::kCall) wanted.insert(node.name);
  };
  for (const ScalarFunction* function : own) add_calls(*function);
  Functions called;
  const auto& all = context.registry.scalars;  // so those that one calls are behind it from the back
  for (auto function = all.rbegin(); function != all.rend(); ++function) {
    if (!(*function)->entry->imported || !wanted.count((*function)->name)) continue;
    add_calls(**function);
    called.push_back(function->get());
  }
  std::reverse(called.begin(), called.end());
  return called;
}

// Functions of elements of one dtype, in lists that a backend instantiates its loops from: unary, binary, ternary.
std::string lists_of(const EmitContext& context, const Functions& functions) {
  std::map<std::string, std::vector<const ScalarFunction*>> lists;
  static constexpr const char* kArity[] = {"", "UNARY", "BINARY", "TERNARY"};
  for (const ScalarFunction* function : functions) {
    const auto& args = function->entry->signature.args;
    const bool plain = !function->entry->composite && !function->by_result && args.size() < std::size(kArity) &&
                       std::all_of(args.begin(), args.end(), [](const Arg& arg) { return arg.is_tensor(); }) &&
                       std::all_of(function->params.begin(), function->params.end(),
                                   [&](const ScalarName& param) { return param.dtype == function->compute; });
    if (!plain) continue;
    lists[upper(context.ns) + "_SCALAR_" + kArity[args.size()] + "_" + std::string(kDtypeNames[function->compute]) +
          "_" + std::string(kDtypeNames[function->result])]
        .push_back(function);
  }
  std::string text;
  for (auto& [name, rows] : lists) {
    std::sort(rows.begin(), rows.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
    text += "#define " + name + "_COUNT " + std::to_string(rows.size()) + "\n#define " + name + "(ROW)";
    for (size_t i = 0; i < rows.size(); ++i)
      text +=
          " \\\n  ROW(" + c_identifier(rows[i]->entry->name()) + ", " + rows[i]->name + ", " + std::to_string(i) + ")";
    text += "\n";
  }
  return text;
}

// So that no argument is silently converted, and only dtypes of the op are taken.
constexpr const char* kNoConversion = "  template <class... T>\n  BP_SCALAR_FN static void of(T...) = delete;\n";

// `of` and `kFaults` are members' names; functions are named SYMBOL_OP_DTYPE, and macros SYMBOL_SCALAR in capitals.
std::string struct_name(const EmitContext& context, const std::string& op) {
  const std::string name = cpp_identifier(op);
  const bool taken = name == "of" || name == "kFaults" || name.starts_with(context.symbol + "_") ||
                     name.starts_with(upper(context.symbol) + "_");
  return taken ? name + "_" : name;
}

// A type per op whose `of` is overloaded by dtype, for templates. kFaults: the BP_FAULT_* that the entry states, which
// kernels check, as the functions have some value everywhere.
std::string structs_of(const EmitContext& context, const Dialect& dialect, const Functions& functions) {
  std::map<std::string, std::string> members;
  for (const ScalarFunction* function : functions) {
    std::string args;
    for (const ScalarName& param : function->params) args += (args.empty() ? "" : ", ") + param.name;
    std::string params = Printer(dialect, *function).params();
    if (function->by_result) params += ", " + dialect.type(function->result);
    std::string& body = members[struct_name(context, function->entry->name())];
    if (body.empty())
      body =
          "  static constexpr unsigned kFaults = " + std::to_string(function->entry->faults.value_or(BP_FAULT_NONE)) +
          ";\n";
    body += "  BP_SCALAR_FN static " + dialect.type(function->result) + " of(" + params + ") { return " +
            function->name + "(" + args + "); }\n";
  }
  std::string text = "\nnamespace " + folder(context.ns) + "::scalar {\n";
  for (const auto& [name, body] : members) text += "struct " + name + " {\n" + body + kNoConversion + "};\n";
  return text + "}  // namespace " + folder(context.ns) + "::scalar\n";
}

// In a header that stands alone: the functions of others, each once where several such headers are included.
std::string functions_of_others(const Dialect& dialect, const Functions& called) {
  std::string text;
  for (const ScalarFunction* function : called) {
    const std::string guard = "BP_SCALAR_HAS_" + function->name, condition = guard_of(dialect, *function);
    text += condition + "#ifndef " + guard + "\n#define " + guard + "\n" + Printer(dialect, *function).function() +
            "#endif\n" + (condition.empty() ? "" : "#endif\n");
  }
  return text;
}

std::string header_of(const EmitContext& context, const Dialect& dialect) {
  const Functions functions = own_functions(context);
  const std::string guard = upper(context.symbol) + "_SCALAR_" + upper(std::string(dialect.extension.substr(1)));
  std::string text =
      file_banner("// ", "What the elementwise ops of namespace " + context.ns + " do to one element.", context, "");
  text +=
      "//\n// NAME_OP_DTYPE(…), and lists of them: NAME_SCALAR_UNARY_DTYPE_RESULT(ROW) is ROW(op, function, number) "
      "for each.\n#ifndef " +
      guard + "\n#define " + guard + "\n\n#ifndef BP_SCALAR_PRELUDE\n#define BP_SCALAR_PRELUDE\n";
  if (dialect.is_cpp) text += "#define BP_SCALAR_FN " + std::string(dialect.function) + "\n" + kQuiet;
  text += scalar_prelude(dialect);
  if (dialect.is_cpp) text += kLoud;
  text += "#endif  // BP_SCALAR_PRELUDE\n";
  std::set<std::string> spaces;
  for (const ScalarFunction* function : functions)
    for (const std::string& ns : function->called_spaces)
      if (ns != context.ns) spaces.insert(ns);
  if (context.standalone) spaces.clear();
  for (const std::string& ns : spaces)
    text += "#include \"" + folder(ns) + "/scalar" + std::string(dialect.extension) + "\"\n";
  if (dialect.is_cpp) text += kQuiet;
  if (context.standalone) text += functions_of_others(dialect, called_functions(context, functions));
  std::string open;
  for (const ScalarFunction* function : functions) {
    const std::string condition = guard_of(dialect, *function);
    if (condition != open) text += (open.empty() ? "" : "#endif\n") + condition;
    open = condition;
    text += Printer(dialect, *function).function();
  }
  if (!open.empty()) text += "#endif\n";
  if (dialect.is_cpp) text += kLoud + structs_of(context, dialect, functions);
  return text + "\n" + lists_of(context, functions) + "\n#endif  // " + guard + "\n";
}

}  // namespace

void emit_scalar(const EmitContext& context, OutputSet& out) {
  const auto wanted = [&](std::string_view word) {
    return context.dialects.empty() || std::count(context.dialects.begin(), context.dialects.end(), word) > 0;
  };
  const std::string base = "include/" + folder(context.ns) + "/scalar";
  for (const Dialect& dialect : dialects())
    if (wanted(dialect.word)) out.add(base + std::string(dialect.extension), header_of(context, dialect));
  if (wanted(kWgsl)) out.add(base + ".wgsl", wgsl_of(context));
}

}  // namespace backplane::codegen
