// Arguments, sizes and types within a graph's text: what parse.cpp's statements are made of.
#pragma once

#include <optional>

#include "graph/graph.hpp"
#include "graph/text/lexer.hpp"

namespace backplane::core::graph {

// The parsed parts of a type; `Type` borrows its dims.
struct ParsedType {
  bp_dtype dtype = BP_DTYPE_NONE;
  bp_device device{};
  std::vector<Dim> dims;
  Type type() const { return {dtype, device, dims}; }
};

class ArgumentParser {
 public:
  // `device`: in place of those that the text names.
  ArgumentParser(Lexer& lexer, Graph& graph, std::optional<bp_device> device)
      : lexer_(lexer), graph_(graph), device_(device) {}

  Dim dim();
  ParsedType type();
  ValueId value();  // one that has been made
  // For a parameter of a signature; what does not fit its type is the verifier's to find.
  Argument argument(const bp_arg_def& arg);

 private:
  std::vector<Dim> dims();
  Dim term();
  Dim parenthesised(bool& is_quotient);
  SymbolId symbol();
  double real();
  bp_device device();
  bp_value number();
  bp_value plain();  // no value, no size
  Argument list(const bp_arg_def& arg);
  Argument plain_list(uint16_t tag);
  Argument named(const bp_arg_def& arg);
  Argument float_of_size();
  Argument root_or_size(uint32_t dividend);
  bool follows_expression() const { return lexer_.at("*") || lexer_.at("+") || lexer_.at("-"); }

  Lexer& lexer_;
  Graph& graph_;
  std::optional<bp_device> device_;
  int depth_ = 0;        // of parentheses in a size
  std::string text_;     // what a string value points to, until it is copied
  double complex_[2]{};  // likewise
};

}  // namespace backplane::core::graph
