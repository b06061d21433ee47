// include/NAMESPACE/scalar.wgsl; see wgsl.hpp.
#include "emit/wgsl.hpp"

#include <algorithm>
#include <cmath>

#include "check/scalar.hpp"
#include "emit/scalar_dialects.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr bp_dtype_mask kPairs = BP_DTYPE_BIT(BP_INT64) | BP_DTYPE_BIT(BP_UINT64);
constexpr bp_dtype_mask kWgslDtypes =
    BP_MASK_BOOL | BP_MASK_INTEGER | BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_COMPLEX64);
constexpr std::string_view kBuiltins[] = {"sqrt", "floor", "ceil", "trunc", "round", "abs"};

bool is_pair(bp_dtype dtype) { return has(kPairs, dtype); }
bool is_integer(bp_dtype dtype) { return has(BP_MASK_INTEGER, dtype); }
bool is_signed(bp_dtype dtype) { return has(BP_MASK_SIGNED, dtype); }

int bits_of(bp_dtype dtype) {
  if (has(BP_DTYPE_BIT(BP_INT8) | BP_DTYPE_BIT(BP_UINT8), dtype)) return 8;
  return has(BP_DTYPE_BIT(BP_INT16) | BP_DTYPE_BIT(BP_UINT16), dtype) ? 16 : 32;
}

std::string wgsl_type(bp_dtype dtype) {
  if (dtype == BP_BOOL) return "bool";
  if (dtype == BP_FLOAT32) return "f32";
  if (dtype == BP_COMPLEX64) return "vec2<f32>";
  return is_pair(dtype) ? "vec2<u32>" : is_signed(dtype) ? "i32" : "u32";
}

std::string of(std::string_view what, bp_dtype dtype, const std::string& args) {
  return "bp_" + std::string(what) + "_of_" + std::string(kDtypeNames[dtype]) + "(" + args + ")";
}

// A value of 32 bits, of either sign, as a dtype of at most 32 bits: its low bits.
std::string narrowed(bp_dtype dtype, const std::string& value) {
  const std::string whole = wgsl_type(dtype) + "(" + value + ")";
  return bits_of(dtype) == 32 ? whole : "extractBits(" + whole + ", 0u, " + std::to_string(bits_of(dtype)) + "u)";
}

std::string wgsl_number(bp_dtype dtype, double number, int64_t integer) {
  if (dtype == BP_BOOL) return integer ? "true" : "false";
  if (dtype == BP_FLOAT32) return dialects().front().floating(BP_FLOAT32, number);
  const auto word = [](int64_t value) { return std::to_string(static_cast<uint32_t>(value)) + "u"; };
  if (is_pair(dtype)) return "vec2<u32>(" + word(integer) + ", " + word(integer >> 32) + ")";
  return is_signed(dtype) ? "i32(" + std::to_string(integer) + ")" : word(integer);
}

// `value` is a name.
std::string wgsl_convert(bp_dtype from, bp_dtype to, const std::string& value) {
  if (from == to) return value;
  if (from == BP_COMPLEX64 && to == BP_BOOL)
    return "(!" + of("equal", BP_FLOAT32, value + ".x, 0.0f") + " || !" + of("equal", BP_FLOAT32, value + ".y, 0.0f") +
           ")";
  if (from == BP_COMPLEX64) return wgsl_convert(BP_FLOAT32, to, value + ".x");
  if (to == BP_COMPLEX64) return "vec2<f32>(" + wgsl_convert(from, BP_FLOAT32, value) + ", 0.0f)";
  if (from == BP_BOOL) return "select(" + wgsl_number(to, 0, 0) + ", " + wgsl_number(to, 1, 1) + ", " + value + ")";
  if (to == BP_BOOL && from == BP_FLOAT32) return "(!" + of("equal", BP_FLOAT32, value + ", 0.0f") + ")";
  if (to == BP_BOOL) return "any(" + value + " != " + wgsl_number(from, 0, 0) + ")";
  if (from == BP_FLOAT32 && (is_pair(to) || to == BP_UINT32)) return of(kDtypeNames[to], from, value);
  if (from == BP_FLOAT32) return narrowed(to, of("int32", from, value));
  if (is_pair(from) && is_pair(to)) return value;
  if (is_pair(from)) return to == BP_FLOAT32 ? of("float32", from, value) : narrowed(to, value + ".x");
  if (is_pair(to)) return of("int64", working_integer(from), value);
  return to == BP_FLOAT32 ? "f32(" + value + ")" : narrowed(to, value);
}

class WgslPrinter {
 public:
  explicit WgslPrinter(const ScalarFunction& function) : function_(function) {
    for (const ScalarName& param : function.params)
      if (witness_.empty() && (param.dtype == BP_FLOAT32 || param.dtype == BP_COMPLEX64))
        witness_ = param.name + (param.dtype == BP_COMPLEX64 ? ".x" : "");
  }

  std::string function() const {
    std::string params;
    for (const ScalarName& param : function_.params)
      params += (params.empty() ? "" : ", ") + param.name + ": " + wgsl_type(param.dtype);
    std::string text = "fn " + function_.name + "(" + params + ") -> " + wgsl_type(function_.result) + " {\n";
    for (const ScalarName& local : function_.locals)
      text += "  let " + local.name + ": " + wgsl_type(local.dtype) + " = " + node(local.value) + ";\n";
    return text + "  return " + node(function_.root) + ";\n}\n";
  }

 private:
  std::string node(uint32_t index) const {
    const ScalarNode& n = function_.nodes[index];
    switch (n.kind) {
      case ScalarNode::Kind::kNumber:
        return wgsl_number(n.dtype, n.number, n.integer);
      case ScalarNode::Kind::kName:
        return n.name;
      case ScalarNode::Kind::kOperator:
        return operation(n);
      case ScalarNode::Kind::kChoose:
        return "select(" + node(n.children[2]) + ", " + node(n.children[1]) + ", " + node(n.children[0]) + ")";
      case ScalarNode::Kind::kCall:
        return n.name + "(" + hidden_list(n) + ")";
      case ScalarNode::Kind::kIntrinsic:
        return intrinsic(n);
      case ScalarNode::Kind::kConvert:
        return wgsl_convert(function_.nodes[n.children[0]].dtype, n.dtype, node(n.children[0]));
      case ScalarNode::Kind::kPair:
        return "vec2<f32>(" + node(n.children[0]) + ", " + node(n.children[1]) + ")";
      default:
        return node(n.children[0]) + (n.name == "re" ? ".x" : ".y");
    }
  }

  // Operands of arithmetic and of calls. A compiler would take x * 0 and x + 0 for 0 and x, which is wrong for
  // infinities, NaN and -0: it may not see the 0.
  std::string hidden_list(const ScalarNode& n) const {
    std::string text;
    for (const uint32_t child : n.children) {
      const ScalarNode& operand = function_.nodes[child];
      const bool hides = operand.dtype == BP_FLOAT32 && operand.kind == ScalarNode::Kind::kNumber &&
                         operand.number == 0 && !witness_.empty();
      text += (text.empty() ? "" : ", ") + (hides ? "bp_opaque(" + node(child) + ", " + witness_ + ")" : node(child));
    }
    return text;
  }

  std::string operation(const ScalarNode& n) const {
    const std::string a = node(n.children[0]);
    const bp_dtype dtype = function_.nodes[n.children[0]].dtype;
    if (n.name == "not") return "(!" + a + ")";
    if (n.name == "neg" && is_pair(dtype)) return of("subtract", dtype, wgsl_number(dtype, 0, 0) + ", " + a);
    if (n.name == "neg")
      return is_integer(dtype) ? narrowed(dtype, wgsl_number(dtype, 0, 0) + " - " + a) : "bp_keep(-" + a + ")";
    const std::string b = node(n.children[1]);
    if (n.name == "and") return "(" + a + " && " + b + ")";
    if (n.name == "or") return "(" + a + " || " + b + ")";
    if (n.dtype == BP_BOOL) return comparison(n.name, dtype, a, b);
    if (is_integer(dtype) && !is_pair(dtype)) return narrowed(dtype, a + " " + n.name + " " + b);
    const char* word = n.name == "+" ? "add" : n.name == "-" ? "subtract" : n.name == "*" ? "multiply" : "divide";
    return of(word, dtype, hidden_list(n));
  }

  static std::string comparison(const std::string& symbol, bp_dtype dtype, const std::string& a, const std::string& b) {
    if (dtype != BP_FLOAT32 && !is_pair(dtype)) return "(" + a + " " + symbol + " " + b + ")";
    if (symbol == "==") return of("equal", dtype, a + ", " + b);
    if (symbol == "!=") return "(!" + of("equal", dtype, a + ", " + b) + ")";
    const bool swaps = symbol[0] == '>';
    return of(symbol.size() == 2 ? "less_equal" : "less", dtype, swaps ? b + ", " + a : a + ", " + b);
  }

  std::string intrinsic(const ScalarNode& n) const {
    if (n.dtype == BP_FLOAT32) {
      const bool builtin = std::count(std::begin(kBuiltins), std::end(kBuiltins), n.name) > 0;
      return (builtin ? n.name : "bp_math_" + n.name + "_float32") + "(" + hidden_list(n) + ")";
    }
    std::string list = hidden_list(n);
    if (n.name.ends_with("_shift") && !is_pair(n.dtype)) list += ", " + std::to_string(bits_of(n.dtype)) + "u";
    const std::string value = of(n.name, working_integer(n.dtype), list);
    return is_pair(n.dtype) ? value : narrowed(n.dtype, value);
  }

  const ScalarFunction& function_;
  std::string witness_;  // a float that the compiler does not know
};

}  // namespace

std::string wgsl_of(const EmitContext& context) {
  std::string text = file_banner(
      "// ", "What the elementwise ops of namespace " + context.ns + " do to one element, in WGSL.", context, "");
  std::set<std::string> spaces;
  if (context.ns != "bp") spaces.insert("bp");
  std::string functions;
  for (const auto& function : context.registry.scalars) {
    const bool spoken = std::all_of(function->dtypes.begin(), function->dtypes.end(),
                                    [](bp_dtype dtype) { return has(kWgslDtypes, dtype); });
    if (function->entry->imported || !spoken) continue;
    spaces.insert(function->called_spaces.begin(), function->called_spaces.end());
    functions += WgslPrinter(*function).function();
  }
  spaces.erase(context.ns);
  for (const std::string& ns : spaces)
    text += "// WGSL includes no files: put the text of " + (ns == "bp" ? "backplane" : ns) +
            "/scalar.wgsl into the same module.\n";
  if (context.ns == "bp") text += wgsl_floats() + wgsl_integers() + wgsl_math();
  return text + "\n" + functions;
}

}  // namespace backplane::codegen
