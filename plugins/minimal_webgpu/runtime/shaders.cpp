// Shader modules; see shaders.hpp and shaders/kernels.wgsl.
#include "runtime/shaders.hpp"

#include <cctype>
#include <map>
#include <string_view>

#include "texts.inc"

namespace minimal {
namespace {

constexpr const char* kNames[] = {
#define MINIMAL_NAME(name, number) #name,
    MINIMAL_TYPED_KERNELS(MINIMAL_NAME) MINIMAL_MOVING_KERNELS(MINIMAL_NAME)
#undef MINIMAL_NAME
};

// ---- names of the registry's functions, by their number in its lists ----

// clang-format off
#define ROW(op, function, number) #function,
#define LISTS(name) {{BP_SCALAR_UNARY_##name##_##name(ROW)}, {BP_SCALAR_BINARY_##name##_##name(ROW)}, {BP_SCALAR_BINARY_##name##_bool(ROW)}}
struct Lists {
  std::vector<const char*> unary, binary, compare;
};
const Lists& lists_of(bp_dtype dtype) {
  static const std::map<bp_dtype, Lists> all = {
      {BP_BOOL, LISTS(bool)}, {BP_INT8, LISTS(int8)}, {BP_INT16, LISTS(int16)}, {BP_INT32, LISTS(int32)},
      {BP_INT64, LISTS(int64)}, {BP_UINT8, LISTS(uint8)}, {BP_UINT16, LISTS(uint16)}, {BP_UINT32, LISTS(uint32)},
      {BP_UINT64, LISTS(uint64)}, {BP_FLOAT32, LISTS(float32)}, {BP_COMPLEX64, LISTS(complex64)}};
  return all.at(dtype);
}
#undef LISTS
#undef ROW
// clang-format on

// ---- declarations, by name, and what calls what ----

using Declarations = std::map<std::string, std::string, std::less<>>;

// `text` in parts that begin with fn, struct, const or alias in the first column.
void add_declarations(std::string_view text, Declarations& out) {
  const auto begins = [&](size_t line) {
    for (const std::string_view word : {"fn ", "struct ", "const ", "alias "})
      if (text.substr(line).starts_with(word)) return word.size();
    return size_t{0};
  };
  size_t start = std::string_view::npos, name = 0;
  for (size_t line = 0; line < text.size();) {
    const size_t next = std::min(text.find('\n', line), text.size() - 1) + 1, word = begins(line);
    if (word != 0) start = line, name = line + word;
    const bool ends = next >= text.size() || begins(next) != 0;
    if (start != std::string_view::npos && ends) {
      const size_t end = text.find_first_of(" (:={", name);
      out.insert_or_assign(std::string(text.substr(name, end - name)), std::string(text.substr(start, next - start)));
      start = std::string_view::npos;
    }
    line = next;
  }
}

// Appends what `text` names, and what that names.
void add_needed(const std::string& text, Declarations& left, std::string& out) {
  const auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_letter(text[end])) ++end;
    if (end > at)
      if (auto found = left.extract(text.substr(at, end - at))) {
        out += found.mapped();
        add_needed(found.mapped(), left, out);
      }
    at = std::max(end, at + 1);
  }
}

// ---- the text of a launch ----

std::string join_text(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

std::string type_of(bp_dtype dtype) {
  static constexpr const char* kTypes[] = {"bool",      "i32", "i32", "i32", "vec2<u32>", "u32",       "u32", "u32",
                                           "vec2<u32>", "f32", "f32", "f32", "",          "vec2<f32>", ""};
  return kTypes[dtype];
}
std::string raw_type(bp_dtype dtype) {
  return kItemSize[dtype] <= 4 ? "u32" : kItemSize[dtype] == 8 ? "vec2<u32>" : "vec4<u32>";
}

std::string from_bits(bp_dtype dtype, const std::string& bits) {
  switch (dtype) {
    case BP_BOOL:
      return bits + " != 0u";
    case BP_INT8:
      return "extractBits(i32(" + bits + "), 0u, 8u)";
    case BP_INT16:
      return "extractBits(i32(" + bits + "), 0u, 16u)";
    case BP_FLOAT16:
      return "bp_float32_of_float16(" + bits + ")";
    case BP_BFLOAT16:
      return "bp_float32_of_bfloat16(" + bits + ")";
    case BP_FLOAT32:
    case BP_COMPLEX64:
      return "bitcast<" + type_of(dtype) + ">(" + bits + ")";
    default:
      return type_of(dtype) + "(" + bits + ")";
  }
}
std::string to_bits(bp_dtype dtype, const std::string& value) {
  switch (dtype) {
    case BP_BOOL:
      return "select(0u, 1u, " + value + ")";
    case BP_FLOAT16:
      return "bp_float16_of_float32(" + value + ")";
    case BP_BFLOAT16:
      return "bp_bfloat16_of_float32(" + value + ")";
    case BP_FLOAT32:
    case BP_COMPLEX64:
      return "bitcast<" + raw_type(dtype) + ">(" + value + ")";
    default:
      return raw_type(dtype) + "(" + value + ")";
  }
}

// Reads of operand `k`, whose elements have `size` bytes.
std::string reads(const std::string& k, uint32_t binding, bp_dtype dtype) {
  const std::string word = "word_" + k + "((at >> 2u)", raw = "fn raw_" + k + "(at: u32) -> " + raw_type(dtype);
  std::string text =
      "fn word_" + k + "(at: u32) -> u32 { return atomicLoad(&block_" + std::to_string(binding) + "[at]); }\n";
  switch (kItemSize[dtype]) {
    case 1:
      return text + raw + " { return extractBits(" + word + "), (at & 3u) * 8u, 8u); }\n";
    case 2:
      return text + raw + " { return extractBits(" + word + "), (at & 2u) * 8u, 16u); }\n";
    case 4:
      return text + raw + " { return " + word + "); }\n";
    case 8:
      return text + raw + " { return vec2<u32>(" + word + "), " + word + " + 1u)); }\n";
    default:
      text += raw + " {\n  let low = at >> 2u;\n  return vec4<u32>(";
      return text + "word_" + k + "(low), word_" + k + "(low + 1u), word_" + k + "(low + 2u), word_" + k +
             "(low + 3u));\n}\n";
  }
}

// Bytes beside each other share a word, which several invocations change.
constexpr const char* kWrites = R"(
fn put_word(at: u32, value: u32) { atomicStore(&RESULT[at], value); }
fn put_narrow(at: u32, value: u32, bits: u32) {
  let shift = (at & 3u) * 8u;
  let mask = ((1u << bits) - 1u) << shift;
  atomicAnd(&RESULT[at >> 2u], ~mask);
  atomicOr(&RESULT[at >> 2u], (value << shift) & mask);
}
)";

std::string writes(uint32_t binding, bp_dtype dtype) {
  std::string text = kWrites;
  for (size_t at = 0; (at = text.find("RESULT", at)) != std::string::npos;)
    text.replace(at, 6, "block_" + std::to_string(binding));
  const size_t size = kItemSize[dtype];
  text += "fn store_raw(at: u32, bits: " + raw_type(dtype) + ") {\n";
  if (size < 4) text += "  put_narrow(at, bits, " + std::to_string(8 * size) + "u);\n";
  if (size == 4) text += "  put_word(at >> 2u, bits);\n";
  for (size_t word = 0; size > 4 && word < size / 4; ++word)
    text += "  put_word((at >> 2u) + " + std::to_string(word) + "u, bits[" + std::to_string(word) + "]);\n";
  return text + "}\n";
}

// Numbers of the call that are the bits of an element of the dtype.
std::string bits_at(const char* name, bp_dtype dtype) {
  return join_text({"fn ", name, "(k: u32) -> ", raw_type(dtype), " { return ",
                    kItemSize[dtype] <= 4   ? "call.n[k].x"
                    : kItemSize[dtype] == 8 ? "call.n[k]"
                                            : "vec4<u32>(call.n[k], call.n[k + 1u])",
                    "; }\n"});
}

// Questions about elements that the registry has no functions for.
std::string questions(bp_dtype dtype) {
  const std::string name = dtype_name(dtype), type = type_of(dtype);
  const auto both = [&](const char* what, const std::string& value) {
    return join_text({"fn ", what, "(x: Element, y: Element) -> bool { return ", value, "; }\n"});
  };
  const auto one = [&](const char* what, const std::string& value) {
    return join_text({"fn ", what, "(x: Element) -> bool { return ", value, "; }\n"});
  };
  const auto counted = [&](const std::string& value) {
    return "fn counted(i: u32, start: Element, step: Element) -> Element { return " + value + "; }\n";
  };
  const auto index = [&](const std::string& is_above, const std::string& above, const std::string& is_below,
                         const std::string& below) {
    return "fn index_of(x: Element, size: i32) -> i32 {\n  if (" + is_above + ") { return " + above + "; }\n  if (" +
           is_below + ") { return " + below + "; }\n  return -1;\n}\n";
  };
  if (dtype == BP_BOOL)
    return both("is_same", "x == y") + both("is_before", "!x && y") + one("is_zero", "false") +
           one("is_negative", "false");
  if (dtype == BP_COMPLEX64)
    return one("is_zero", "false") + one("is_negative", "false") +
           counted(
               "vec2<f32>(bp_add_of_float32(start.x, bp_multiply_of_float32(f32(i), step.x)), "
               "bp_add_of_float32(start.y, bp_multiply_of_float32(f32(i), step.y)))");
  if (dtype == BP_FLOAT32)
    return both("is_same", "bp_equal_of_float32(x, y)") + one("is_zero", "false") + one("is_negative", "false") +
           both("is_before", "bp_less_of_float32(x, y) || (!bp_is_nan(x) && bp_is_nan(y))") +
           counted("bp_add_of_float32(start, bp_multiply_of_float32(f32(i), step))");
  const bool is_signed = (BP_MASK_SIGNED >> dtype & 1) != 0;
  if (type == "vec2<u32>")
    return both("is_same", "all(x == y)") + both("is_before", "bp_less_of_" + name + "(x, y)") +
           one("is_zero", "all(x == vec2<u32>(0u, 0u))") +
           one("is_negative", is_signed ? "(x.y & 0x80000000u) != 0u" : "false") +
           counted("bp_add_of_" + name + "(start, bp_multiply_of_" + name + "(vec2<u32>(i, 0u), step))") +
           index("x.y == 0u && x.x < u32(size)", "i32(x.x)",
                 is_signed ? "x.y == 0xffffffffu && i32(x.x) < 0 && i32(x.x) >= -size" : "false", "i32(x.x) + size");
  return both("is_same", "x == y") + both("is_before", "x < y") + one("is_zero", "x == " + type + "(0)") +
         one("is_negative", is_signed ? "x < 0" : "false") +
         index(is_signed ? "x >= 0 && x < size" : "x < u32(size)", "i32(x)",
               is_signed ? "x < 0 && x >= -size" : "false", "i32(x) + size");
}

std::string binary_function(const char* name, const std::string& called, const char* result = "Element") {
  return join_text({"fn ", name, "(x: Element, y: Element) -> ", result, " { return ", called, "(x, y); }\n"});
}

std::string functions_of(const Shader& shader) {
  const Lists& lists = lists_of(shader.dtype);
  const std::string name = dtype_name(shader.dtype), result = dtype_name(computed(static_cast<bp_dtype>(shader.out)));
  std::string text = questions(shader.dtype);
  text += "fn cast_of(x: Element) -> Result { return bp_cast_" + name + "_" + result + "(x); }\n";
  const auto at = [](const std::vector<const char*>& list, uint32_t number) {
    return number < list.size() ? list[number] : "";
  };
  if (shader.kernel == Kernel::unary)
    text += join_text({"fn unary_of(x: Element) -> Element { return ", at(lists.unary, shader.function), "(x); }\n"});
  else if (shader.kernel == Kernel::compare)
    text += binary_function("compared", at(lists.compare, shader.function), "bool");
  else
    text += binary_function("join", at(lists.binary, shader.function)) +
            binary_function("second", at(lists.binary, shader.second));
  return text;
}

std::string declarations_of(const Shader& shader) {
  const auto in = static_cast<bp_dtype>(shader.in), out = static_cast<bp_dtype>(shader.out);
  std::string text = "const element_size = " + std::to_string(kItemSize[in]) +
                     "u;\nconst result_size = " + std::to_string(kItemSize[out]) + "u;\n" +
                     writes(shader.bindings[0], out) + bits_at("bits_of", out);
  for (int k = 0; k < kMaxOperands; ++k) text += reads(std::to_string(k), shader.bindings[k], k == 0 ? out : in);
  if (shader.kernel >= Kernel::move) return text;
  text += "alias Element = " + type_of(shader.dtype) + ";\nalias Result = " + type_of(out) + ";\n";
  text += bits_at("element_bits", in) + "fn element_of(k: u32) -> Element { return " +
          from_bits(in, "element_bits(k)") + "; }\n";
  text += "fn start_of(k: u32) -> Result { return " + from_bits(out, "bits_of(k)") + "; }\n";
  text += "fn store(at: u32, value: Result) { store_raw(at, " + to_bits(out, "value") + "); }\n";
  text += "fn element_0(at: u32) -> Result { return " + from_bits(out, "raw_0(at)") + "; }\n";
  for (const char* k : {"1", "2"})
    text += join_text(
        {"fn element_", k, "(at: u32) -> Element { return ", from_bits(in, std::string("raw_") + k + "(at)"), "; }\n"});
  return text + functions_of(shader);
}

}  // namespace

std::string shader_text(const Shader& shader) {
  static const Declarations known = [] {
    Declarations all;
    add_declarations(minimal_wgsl_scalar, all);
    add_declarations(minimal_wgsl_kernels, all);
    return all;
  }();
  Declarations left = known;
  add_declarations(declarations_of(shader), left);
  std::string text;
  for (int k = 0; k < kMaxOperands; ++k)
    text += join_text({"@group(0) @binding(", std::to_string(k), ") var<storage, read_write> block_", std::to_string(k),
                       ": array<atomic<u32>>;\n"});
  text += join_text({"@group(0) @binding(", std::to_string(kArgumentsBinding),
                     ") var<storage, read> call: Arguments;\n", "@group(0) @binding(", std::to_string(kFaultsBinding),
                     ") var<storage, read_write> faults: array<atomic<u32>>;\n"});
  const std::string group = std::to_string(kGroup);
  text += "@compute @workgroup_size(" + group +
          ")\nfn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {\n"
          "  for (var i = id.x; i < call.items; i += groups.x * " +
          group + "u) { kernel_" + kNames[static_cast<size_t>(shader.kernel)] + "(i); }\n}\n";
  const std::string main = text;
  add_needed(main, left, text);
  return text;
}

}  // namespace minimal
