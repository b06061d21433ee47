// Recursive descent over signatures; see signature.hpp.
#include "schema/signature.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>

#include "backplane/abi/signature.h"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

class SignatureParser {
 public:
  SignatureParser(const Text& text, Diagnostics& diagnostics) : text_(text), tokens_(text, diagnostics) {}

  std::optional<Signature> parse() {
    name_and_arguments();
    if (changes_.empty()) {
      tokens_.expect("->", "before the results");
      results();
    } else {
      results_of_changes();
    }
    return finished("the results");
  }

  std::optional<Signature> parse_spelled() {
    spelled_ = true;
    name_and_arguments();
    if (!changes_.empty()) tokens_.error(changes_[0].at, "a spelling changes no argument; remove (mut)");
    return finished("the arguments");
  }

 private:
  void name_and_arguments() {
    signature_.text = text_;
    signature_.name = name("of the op");
    if (tokens_.accept(".")) signature_.name += "." + name("of the overload");
    tokens_.expect("(", "after the op's name");
    arguments();
    tokens_.expect(")", "to close the arguments");
  }

  std::optional<Signature> finished(const std::string& last) {
    if (!tokens_.failed() && !tokens_.at_end())
      tokens_.error(tokens_.peek(), "found " + quoted(tokens_.peek()) + " after " + last + "; remove it");
    if (tokens_.failed()) return std::nullopt;
    return std::move(signature_);
  }

  std::string name(std::string_view purpose) {
    const Token token = tokens_.peek();
    if (token.kind != Token::Kind::kName) {
      tokens_.error(token, "found " + quoted(token) + "; expected the name " + std::string(purpose));
      return "";
    }
    return std::string(tokens_.take().text);
  }

  // Of `step_(Tensor(mut) p, ...)`: the op step, whose results are the new values of the changed arguments.
  void results_of_changes() {
    const Token at = tokens_.peek();
    if (at.is("->")) {
      tokens_.error(at, "an op that changes arguments has their new values as results; remove '->' and what follows");
      return;
    }
    const size_t end = std::min(signature_.name.find('.'), signature_.name.size());
    if (end < 2 || signature_.name[end - 1] != '_') {
      tokens_.error(changes_[0].at, "the name of an op that changes arguments ends in '_'; call it " +
                                        signature_.name.substr(0, end) + "_");
      return;
    }
    signature_.name.erase(end - 1, 1);
    signature_.changes = true;
    for (const Change& change : changes_) {
      ResultSpec result;
      result.name = changes_.size() == 1 ? "out" : signature_.args[change.argument].name;
      result.offset = change.at.offset;
      signature_.results.push_back(std::move(result));
    }
    if (changes_.size() == 1 && changes_[0].argument != 0)
      tokens_.error(changes_[0].at, "the one argument that an op changes stands first; move it to the front");
  }

  void arguments() {
    bool keyword_only = false;
    bool has_default = false;
    while (!tokens_.failed() && !tokens_.peek().is(")")) {
      const Token star = tokens_.peek();
      if (tokens_.accept("/")) {
        close_positional_only(star, keyword_only);
      } else if (tokens_.accept("*")) {
        if (keyword_only) tokens_.error(star, "'*' stands twice; keep the first");
        keyword_only = true;
      } else {
        const Token at = tokens_.peek();
        Arg arg = argument();
        if (keyword_only) arg.flags |= BP_ARG_KEYWORD_ONLY;
        if (!keyword_only && has_default && !arg.has(BP_ARG_HAS_DEFAULT))
          tokens_.error(at, "argument '" + arg.name +
                                "' without a default follows one with a default; give it a default or move it forward");
        has_default = has_default || arg.has(BP_ARG_HAS_DEFAULT);
        signature_.args.push_back(std::move(arg));
        if (signature_.args.size() > 63) tokens_.error(at, "an op has at most 63 arguments; group them");
      }
      if (!tokens_.accept(",")) break;
    }
  }

  // The arguments so far are given by position alone.
  void close_positional_only(const Token& slash, bool keyword_only) {
    std::vector<Arg>& args = signature_.args;
    if (args.empty() || keyword_only || args[0].has(BP_ARG_POSITIONAL_ONLY))
      tokens_.error(slash, "'/' stands once, after an argument and before '*'; move or remove it");
    for (Arg& arg : args) arg.flags |= BP_ARG_POSITIONAL_ONLY;
  }

  uint16_t type() {
    const Token token = tokens_.peek();
    std::vector<std::string_view> names;
    for (const TypeWord& word : type_words()) {
      if (token.is_word(word.name)) {
        tokens_.take();
        return word.type;
      }
      names.push_back(word.name);
    }
    const std::string meant = token.kind == Token::Kind::kName ? type_meant(token.text) : std::string();
    tokens_.error(token,
                  "unknown type " + quoted(token) +
                      (meant.empty() && token.kind == Token::Kind::kName ? suggestion(token.text, names) : meant) +
                      "; types are " + listed(names));
    return 0;
  }

  // `(bool)`, behind the Tensor of a spelling.
  std::string selecting_dtypes() {
    tokens_.take();
    const Token word = tokens_.peek();
    static const std::vector<std::string_view> kWords = {"bool", "integer", "complex"};
    if (std::find(kWords.begin(), kWords.end(), word.text) == kWords.end())
      tokens_.error(word, "found " + quoted(word) + "; the dtypes that select a spelling are " + listed(kWords));
    else
      tokens_.take();
    tokens_.expect(")", "after the dtypes");
    return std::string(word.text);
  }

  Arg argument() {
    Arg arg;
    const Token begins = tokens_.peek();
    if (spelled_ && tokens_.accept_word("none"))  // given, it is none
      arg.flags |= BP_ARG_OPTIONAL;
    else
      arg.type = type();
    if (spelled_ && arg.type == BP_TYPE_TENSOR && tokens_.peek().is("(") && !tokens_.peek(1).is_word("mut")) {
      arg.only = selecting_dtypes();
    } else if (tokens_.accept("(")) {
      if (!tokens_.peek().is_word("mut"))
        tokens_.error(tokens_.peek(), "found " + quoted(tokens_.peek()) + "; expected mut, as in Tensor(mut) x");
      tokens_.take();
      tokens_.expect(")", "after mut");
      if (arg.type != BP_TYPE_TENSOR || tokens_.peek().is("?") || tokens_.peek().is("[]"))
        tokens_.error(begins, "only a Tensor can be changed, neither a list nor an optional one; remove (mut)");
      changes_.push_back({signature_.args.size(), begins});
    }
    if (tokens_.accept("?")) arg.flags |= BP_ARG_OPTIONAL;
    if (tokens_.accept("[]")) {
      arg.flags |= BP_ARG_LIST;
      if (arg.has(BP_ARG_OPTIONAL))
        arg.flags = static_cast<uint16_t>((arg.flags & ~BP_ARG_OPTIONAL) | BP_ARG_OPTIONAL_ELEMENTS);
      if (tokens_.accept("?")) arg.flags |= BP_ARG_OPTIONAL;
    } else if (tokens_.peek().kind == Token::Kind::kName && tokens_.peek(1).is("[")) {
      tokens_.error(tokens_.peek(1), "the brackets of a list stand after its type; write TYPE[] name");
    }
    const Token at = tokens_.peek();
    arg.offset = at.offset;
    arg.name = name("of an argument");
    if (is_reserved_argument(arg.name))
      tokens_.error(at, "'" + arg.name + "' has a meaning of its own in formulas; choose another argument name");
    if (signature_.find_arg(arg.name) >= 0) tokens_.error(at, "argument '" + arg.name + "' stands twice; rename one");
    if (tokens_.accept("=")) {
      arg.flags |= BP_ARG_HAS_DEFAULT;
      const Token value_at = tokens_.peek();
      arg.default_value = literal();
      check_default(arg, value_at);
    } else if (arg.has(BP_ARG_OPTIONAL)) {
      arg.flags |= BP_ARG_HAS_DEFAULT;
      arg.default_value.text = "none";
    }
    return arg;
  }

  Literal literal() {
    Literal value;
    const Token token = tokens_.peek();
    if (tokens_.accept("[]")) {
      value.kind = Literal::Kind::kInts;
      return value;
    }
    if (tokens_.accept("[")) return list();
    if (token.kind == Token::Kind::kString) {
      value.kind = Literal::Kind::kString;
      value.text = tokens_.take().text;
      return value;
    }
    if (tokens_.accept("-")) {
      if (tokens_.peek().is("-") || tokens_.peek().is("[")) {
        tokens_.error(tokens_.peek(), "found " + quoted(tokens_.peek()) + " after '-'; a negative default is a number");
        return value;
      }
      value = literal();
      value.integer = -value.integer;
      value.number = -value.number;
      value.text = "-" + value.text;
      if (value.kind != Literal::Kind::kInt && value.kind != Literal::Kind::kFloat)
        tokens_.error(token, "'-' must be followed by a number");
      return value;
    }
    value.text = token.text;
    if (token.kind == Token::Kind::kInt) {
      value.kind = Literal::Kind::kInt;
      if (std::from_chars(token.text.data(), token.text.data() + token.text.size(), value.integer).ec != std::errc())
        tokens_.error(token, "this integer does not fit in 64 bits; write it as a float");
      value.number = static_cast<double>(value.integer);
    } else if (token.kind == Token::Kind::kFloat) {
      value.kind = Literal::Kind::kFloat;
      value.number = std::strtod(value.text.c_str(), nullptr);
      if (value.number > std::numeric_limits<double>::max())
        tokens_.error(token, "this number does not fit in 64 bits of floating point; write inf");
    } else if (!word_literal(token, value)) {
      tokens_.error(token,
                    "found " + quoted(token) + "; a default is a number, true, false, none, 'text', [1, 1] or a dtype");
    }
    tokens_.take();
    return value;
  }

  static bool word_literal(const Token& token, Literal& value) {
    if (token.kind != Token::Kind::kName) return false;
    if (token.text == "none") return true;
    if (token.text == "true" || token.text == "false") {
      value.kind = Literal::Kind::kBool;
      value.integer = token.text == "true";
    } else if (token.text == "inf" || token.text == "nan") {
      value.kind = Literal::Kind::kFloat;
      value.number =
          token.text == "inf" ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    } else if (find_dtype(token.text) >= 0) {
      value.kind = Literal::Kind::kDtype;
      value.integer = find_dtype(token.text);
    } else {
      return false;
    }
    return true;
  }

  Literal list() {
    Literal value;
    value.kind = Literal::Kind::kInts;
    while (!tokens_.failed() && !tokens_.peek().is("]")) {
      const Token at = tokens_.peek();
      if (at.is("[")) {
        tokens_.error(at, "a list default holds numbers only");
        return value;
      }
      const Literal element = literal();
      if (element.kind == Literal::Kind::kFloat)
        value.kind = Literal::Kind::kFloats;
      else if (element.kind != Literal::Kind::kInt)
        tokens_.error(at, "a list default holds numbers only");
      value.ints.push_back(element.integer);
      value.floats.push_back(element.number);
      if (!tokens_.accept(",")) break;
    }
    tokens_.expect("]", "to close the list");
    return value;
  }

  void check_default(const Arg& arg, const Token& at) {
    using Kind = Literal::Kind;
    const Kind kind = arg.default_value.kind;
    const bool number = kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool;
    bool fits = false;
    if (kind == Kind::kNone) {
      fits = arg.has(BP_ARG_OPTIONAL);
      if (!fits) {
        tokens_.error(at, "argument '" + arg.name + "' cannot be none; write its type as " +
                              std::string(type_name(arg.type)) + "?");
        return;
      }
    } else if (arg.has(BP_ARG_LIST) || arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_SHAPE) {
      const bool floats = arg.type == BP_TYPE_SCALAR;
      fits = kind == Kind::kInts || (floats && kind == Kind::kFloats);
    } else {
      switch (arg.type) {
        case BP_TYPE_TENSOR:
        case BP_TYPE_SCALAR:
          fits = number;
          break;
        case BP_TYPE_AXIS:
        case BP_TYPE_SIZE:
        case BP_TYPE_INDEX:
          fits = kind == Kind::kInt;
          break;
        case BP_TYPE_DTYPE:
          fits = kind == Kind::kDtype;
          break;
        case BP_TYPE_BOOL:
          fits = kind == Kind::kBool;
          break;
        case BP_TYPE_STR:
          fits = kind == Kind::kString;
          break;
        default:
          break;
      }
    }
    if (!fits)
      tokens_.error(at, "the default of '" + arg.name + "' does not fit its type " + std::string(type_name(arg.type)) +
                            (arg.has(BP_ARG_LIST) ? "[]" : "") + "; give a value of that type");
  }

  void results() {
    if (tokens_.accept("(")) {
      while (!tokens_.failed() && !tokens_.peek().is(")")) {
        ResultSpec result = one_result();
        const Token at = tokens_.peek();
        result.offset = at.offset;
        result.name = name("of a result");
        if (signature_.find_result(result.name) >= 0)
          tokens_.error(at, "result '" + result.name + "' stands twice; rename one");
        signature_.results.push_back(std::move(result));
        if (signature_.results.size() > 63) tokens_.error(at, "an op has at most 63 results; return a list");
        if (!tokens_.accept(",")) break;
      }
      tokens_.expect(")", "to close the results");
      if (signature_.results.empty()) tokens_.error(tokens_.peek(), "an op has at least one result; name it");
    } else {
      ResultSpec result = one_result();
      result.name = "out";
      signature_.results.push_back(std::move(result));
    }
  }

  ResultSpec one_result() {
    ResultSpec result;
    const Token at = tokens_.peek();
    result.offset = at.offset;
    if (type() != BP_TYPE_TENSOR) tokens_.error(at, "a result is a Tensor or Tensor[], not " + quoted(at));
    result.is_list = tokens_.accept("[]");
    return result;
  }

  struct Change {
    size_t argument;
    Token at;
  };

  const Text& text_;
  TokenStream tokens_;
  Signature signature_;
  bool spelled_ = false;
  std::vector<Change> changes_;  // the arguments written Tensor(mut)
};

}  // namespace

int Signature::find_arg(std::string_view wanted) const {
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].name == wanted) return static_cast<int>(i);
  return -1;
}

int Signature::find_result(std::string_view wanted) const {
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i].name == wanted) return static_cast<int>(i);
  return -1;
}

std::optional<Signature> parse_signature(const Text& text, Diagnostics& diagnostics) {
  return SignatureParser(text, diagnostics).parse();
}

std::optional<Signature> parse_spelled_signature(const Text& text, Diagnostics& diagnostics) {
  return SignatureParser(text, diagnostics).parse_spelled();
}

}  // namespace backplane::codegen
