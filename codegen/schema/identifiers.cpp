// The reserved words themselves. See identifiers.hpp.
#include "schema/identifiers.hpp"

#include <algorithm>
#include <array>

namespace backplane::codegen {
namespace {

// C++20's keywords and alternative spellings, and C11's that C++ has not.
constexpr std::string_view kCppWords[] = {"_Alignas",
                                          "_Alignof",
                                          "_Atomic",
                                          "_Bool",
                                          "_Complex",
                                          "_Generic",
                                          "_Imaginary",
                                          "_Noreturn",
                                          "_Static_assert",
                                          "_Thread_local",
                                          "alignas",
                                          "alignof",
                                          "and",
                                          "and_eq",
                                          "asm",
                                          "auto",
                                          "bitand",
                                          "bitor",
                                          "bool",
                                          "break",
                                          "case",
                                          "catch",
                                          "char",
                                          "char16_t",
                                          "char32_t",
                                          "char8_t",
                                          "class",
                                          "co_await",
                                          "co_return",
                                          "co_yield",
                                          "compl",
                                          "concept",
                                          "const",
                                          "const_cast",
                                          "consteval",
                                          "constexpr",
                                          "constinit",
                                          "continue",
                                          "decltype",
                                          "default",
                                          "delete",
                                          "do",
                                          "double",
                                          "dynamic_cast",
                                          "else",
                                          "enum",
                                          "explicit",
                                          "export",
                                          "extern",
                                          "false",
                                          "float",
                                          "for",
                                          "friend",
                                          "goto",
                                          "if",
                                          "inline",
                                          "int",
                                          "long",
                                          "mutable",
                                          "namespace",
                                          "new",
                                          "noexcept",
                                          "not",
                                          "not_eq",
                                          "nullptr",
                                          "operator",
                                          "or",
                                          "or_eq",
                                          "private",
                                          "protected",
                                          "public",
                                          "register",
                                          "reinterpret_cast",
                                          "requires",
                                          "restrict",
                                          "return",
                                          "short",
                                          "signed",
                                          "sizeof",
                                          "static",
                                          "static_assert",
                                          "static_cast",
                                          "struct",
                                          "switch",
                                          "template",
                                          "this",
                                          "thread_local",
                                          "throw",
                                          "true",
                                          "try",
                                          "typedef",
                                          "typeid",
                                          "typename",
                                          "union",
                                          "unsigned",
                                          "using",
                                          "virtual",
                                          "void",
                                          "volatile",
                                          "wchar_t",
                                          "while",
                                          "xor",
                                          "xor_eq"};

// What generated C++ says itself, in places where an argument or a function of the name would hide it; and macros that
// compilers and the C library bring.
constexpr std::string_view kCppOwnWords[] = {
    "EOF",      "INFINITY", "NAN",  "NULL",    "args",  "assert", "bp_device", "bp_dtype", "bp_generator_state",
    "bp_value", "errno",    "i386", "int64_t", "linux", "op",     "outs",      "stderr",   "stdin",
    "stdout",   "unix"};

constexpr std::string_view kPythonWords[] = {"False",  "None",   "True",    "and",      "as",       "assert", "async",
                                             "await",  "break",  "class",   "continue", "def",      "del",    "elif",
                                             "else",   "except", "finally", "for",      "from",     "global", "if",
                                             "import", "in",     "is",      "lambda",   "nonlocal", "not",    "or",
                                             "pass",   "raise",  "return",  "try",      "while",    "with",   "yield"};

template <size_t N>
bool one_of(std::string_view word, const std::string_view (&words)[N]) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

}  // namespace

bool is_identifier(std::string_view word) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !word.empty() && letter(word[0]) &&
         std::all_of(word.begin(), word.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string why_no_namespace(std::string_view word) {
  if (!is_identifier(word)) return "is not a C identifier";
  if (one_of(word, kCppWords)) return "is a word of C++";
  if (one_of(word, kPythonWords)) return "is a word of Python";
  if (one_of(word, kCppOwnWords) || word == "std" || word == "posix" || word == "backplane")
    return "is taken by the libraries that the generated code uses";
  if (word[0] == '_' || word.find("__") != std::string_view::npos)
    return "is of a form that C and C++ keep to themselves";
  return "";
}

std::string c_identifier(const std::string& name) {
  std::string result = name;
  for (char& c : result)
    if (c == '.' || c == ':') c = '_';
  return result;
}

std::string cpp_identifier(const std::string& name) {
  const std::string word = c_identifier(name);
  // The contract's types and macros, and the C library's types and macros of numbers.
  const bool outside =
      word.starts_with("BP_") || word.starts_with("bp_") || word.ends_with("_t") || word.ends_with("_C");
  const bool taken = outside || one_of(word, kCppWords) || one_of(word, kCppOwnWords);
  return taken ? word + "_" : word;
}

std::string python_identifier(const std::string& name) {
  const std::string word = c_identifier(name);
  return one_of(word, kPythonWords) ? word + "_" : word;
}

}  // namespace backplane::codegen
