#include "graph/text/parse.hpp"

#include <charconv>
#include <cstring>

#include "backplane/device.hpp"
#include "graph/elements.hpp"
#include "graph/text/argument_parser.hpp"
#include "graph/text/print.hpp"
#include "graph/verify.hpp"

namespace backplane::core::graph {
namespace {

constexpr int kMaxGraphDepth = 16;  // of graphs within graphs

// FILE:LINE in FUNCTION
uint32_t add_location(Graph& graph, std::string_view comment) {
  const size_t in = comment.find(" in ");
  const std::string_view place = comment.substr(0, in);
  const size_t colon = place.rfind(':');
  const size_t begin = comment.find_first_not_of(' ');
  if (colon == std::string_view::npos || begin >= colon) return kNone;
  Location at{std::string(place.substr(begin, colon - begin)), "", 0};
  const auto read = std::from_chars(place.data() + colon + 1, place.data() + place.size(), at.line);
  if (read.ec != std::errc() || read.ptr != place.data() + place.size()) return kNone;
  if (in != std::string_view::npos) at.function = comment.substr(in + 4);
  return graph.add_location(std::move(at));
}

class Parser {
 public:
  Parser(Lexer& lexer, const FindConstant& find_constant, std::optional<bp_device> device, int depth)
      : lexer_(lexer),
        find_constant_(find_constant),
        device_(device),
        depth_(depth),
        arguments_(lexer, *graph_, device) {}
  std::unique_ptr<Graph> whole();

 private:
  void statement();
  void symbol();
  void draw();
  void input();
  void constant();
  Tensor inline_constant(const ParsedType& type);
  Tensor large_constant(const WantedConstant& wanted, const Token& at);
  uint64_t constant_digest();
  std::vector<int64_t> constant_shape(const ParsedType& type, const Token& at) const;
  void node();
  Argument default_of(const bp_arg_def& arg, const OpRecord& record, const Token& at);
  std::vector<Argument> call_arguments(const OpEntry& op, const Token& at);
  void constraint();
  void update();
  void output();
  void new_value(size_t expected);
  void check_symbols() const;

  Lexer& lexer_;
  const FindConstant& find_constant_;
  std::optional<bp_device> device_;
  int depth_;
  std::unique_ptr<Graph> graph_ = std::make_unique<Graph>();
  ArgumentParser arguments_;
  Token begin_;
  bool ended_ = false;               // the outputs have been read
  std::vector<ValueId> new_values_;  // of the updates
};

// Values are numbered as they come.
void Parser::new_value(size_t expected) {
  const Token token = lexer_.expect(Token::Kind::kValue, "a new value");
  if (token.text != std::to_string(expected)) lexer_.fail(token, "found %", token.text, ", expected %", expected);
}

void Parser::symbol() {
  const Token name = lexer_.expect(Token::Kind::kName, "the name of a symbol");
  for (const std::string& known : graph_->symbol_names())
    if (known == name.text) lexer_.fail(name, "there are two symbols \"", name.text, "\"");
  uint64_t value = kNone;
  int64_t axis = 0;
  if (lexer_.accept("of")) {
    const Token of = lexer_.expect(Token::Kind::kValue, "a value, as in %3");
    std::from_chars(of.text.data(), of.text.data() + of.text.size(), value);
    lexer_.expect("axis");
    const Token at = lexer_.peek();
    axis = lexer_.expect_int("an axis");
    if (axis < 0 || axis >= 64 || value >= kNone) lexer_.fail(at, "the value does not have this axis");
  }
  lexer_.expect("example");
  const Token at = lexer_.peek();
  const int64_t example = lexer_.expect_int("a size");
  if (example < 0) lexer_.fail(at, "an example is a size, found ", example);
  graph_->add_symbol(std::string(name.text), static_cast<ValueId>(value), static_cast<uint32_t>(axis), example);
}

// "draw 0, 17", "draw fixed KEY, COUNTER", "draw derived DRAW, OFFSET, STREAM": 64 bits as signed numbers.
void Parser::draw() {
  Draw draw;
  if (lexer_.accept("fixed")) {
    draw.kind = Draw::Kind::kFixed;
    draw.state.key = static_cast<uint64_t>(lexer_.expect_int("a key"));
    lexer_.expect(",");
    draw.state.counter = static_cast<uint64_t>(lexer_.expect_int("a counter"));
    graph_->draws.push_back(draw);
    return;
  }
  if (lexer_.accept("derived")) {
    draw.kind = Draw::Kind::kDerived;
    const Token from_at = lexer_.peek();
    const int64_t from = lexer_.expect_int("the number of a draw");
    if (from < 0 || static_cast<size_t>(from) >= graph_->draws.size())
      lexer_.fail(from_at, "found no draw ", from, " before this one");
    draw.from = static_cast<uint32_t>(from);
    lexer_.expect(",");
    draw.offset = arguments_.dim();
    lexer_.expect(",");
    draw.stream = static_cast<uint64_t>(lexer_.expect_int("a stream"));
    graph_->draws.push_back(draw);
    return;
  }
  const Token at = lexer_.peek();
  const int64_t generator = lexer_.expect_int("the number of a generator");
  if (generator < 0 || static_cast<size_t>(generator) >= graph_->generators.size())
    lexer_.fail(at, "found no generator ", generator);
  lexer_.expect(",");
  draw.generator = static_cast<uint32_t>(generator);
  draw.count = arguments_.dim();
  graph_->draws.push_back(draw);
}

void Parser::input() {
  new_value(graph_->values().size());
  std::string name = lexer_.expect_string("the input's name in quotes");
  lexer_.expect(":");
  graph_->add_input(std::move(name), arguments_.type().type());
}

std::vector<int64_t> Parser::constant_shape(const ParsedType& type, const Token& at) const {
  std::vector<int64_t> shape;
  for (const Dim dim : type.dims) {
    if (!dim.is_number() || dim.number() < 0) lexer_.fail(at, "the sizes of a constant are numbers from 0 up");
    shape.push_back(dim.number());
  }
  return shape;
}

Tensor Parser::inline_constant(const ParsedType& type) {
  const Token open = lexer_.expect("{");
  std::vector<char> bytes;
  uint64_t expected = static_cast<uint64_t>(dtype_size(type.dtype));
  const std::vector<int64_t> shape = constant_shape(type, open);
  for (const int64_t size : shape)
    if (size == 0) expected = 0;
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(expected, static_cast<uint64_t>(size), &expected))
      lexer_.fail(open, "a constant of that shape does not fit 64 bits");
  for (bool first = true; !lexer_.accept("}"); first = false) {
    if (!first) lexer_.expect(",");
    const Token at = lexer_.peek();
    const std::string sign = lexer_.accept("-") ? "-" : "";
    const std::string text = sign + std::string(lexer_.take().text);
    if (!append_element(bytes, type.dtype, text))
      lexer_.fail(at, text, " is not an element of ", dtype_name(type.dtype));
  }
  if (bytes.size() != expected)
    lexer_.fail(open, "found elements of ", bytes.size(), " bytes, expected ", expected, " for the shape");
  return from_host(bytes.data(), shape, {}, type.dtype, type.device);
}

uint64_t Parser::constant_digest() {
  lexer_.expect("digest");
  const Token token = lexer_.take();
  uint64_t digest = 0;
  const std::string_view digits = token.text.size() > 2 ? token.text.substr(2) : token.text;
  if (!token.text.starts_with("0x") ||
      std::from_chars(digits.data(), digits.data() + digits.size(), digest, 16).ptr != digits.data() + digits.size())
    lexer_.fail(token, "found ", token.text, ", expected a digest, as in 0x0123456789abcdef");
  return digest;
}

Tensor Parser::large_constant(const WantedConstant& wanted, const Token& at) {
  Tensor tensor = find_constant_ ? find_constant_(wanted) : Tensor();
  if (!tensor)
    lexer_.fail(at, "the elements of constant \"", wanted.name, "\" are not in the text. Fix: give its tensor");
  return tensor;
}

void Parser::constant() {
  const Token at = lexer_.peek();
  new_value(graph_->values().size());
  std::string name = lexer_.expect_string("the constant's name in quotes");
  lexer_.expect(":");
  const ParsedType type = arguments_.type();
  lexer_.expect("=");
  const bool is_inline = lexer_.at("{");
  const uint64_t expected = is_inline ? kAnyDigest : constant_digest();
  Tensor tensor = is_inline ? inline_constant(type)
                            : large_constant({name, expected, type.dtype, constant_shape(type, at), type.device}, at);
  std::vector<Dim> dims(tensor.shape().begin(), tensor.shape().end());
  if (tensor.dtype() != type.dtype || dims != type.dims)
    lexer_.fail(at, "the tensor of constant \"", name, "\" has another dtype or shape than the text says");
  if (expected != kAnyDigest && digest(tensor) != expected)
    lexer_.fail(at, "the tensor given for constant \"", name,
                "\" has other elements than the text was written with (their digest differs). Fix: give the tensor of "
                "this constant, or write digest 0x0 into the text to take any");
  graph_->add_constant(std::move(tensor), std::move(name));
}

Argument Parser::default_of(const bp_arg_def& arg, const OpRecord& record, const Token& at) {
  if (arg.flags & BP_ARG_HAS_DEFAULT) return graph_->copy(arg.default_value);
  if (!(arg.flags & BP_ARG_OPTIONAL)) lexer_.fail(at, record.name, ": lacks its argument \"", arg.name, "\"");
  return {};
}

std::vector<Argument> Parser::call_arguments(const OpEntry& op, const Token& at) {
  const OpRecord& record = *op.record;
  std::vector<Argument> arguments(record.args.size());
  std::vector<bool> given(record.args.size(), false);
  size_t next = 0;
  lexer_.expect("(");
  for (bool first = true; !lexer_.accept(")"); first = false) {
    if (!first) lexer_.expect(",");
    size_t index = next;
    const Lexer before = lexer_;
    const Token name = lexer_.peek();
    if (name.kind == Token::Kind::kName && (lexer_.take(), lexer_.accept("="))) {
      for (index = 0; index < record.args.size() && name.text != record.args[index].name;) ++index;
      if (index == record.args.size()) lexer_.fail(name, record.name, ": has no argument \"", name.text, "\"");
    } else {
      lexer_ = before;
      if (index >= record.args.size())
        lexer_.fail(name, record.name, ": takes ", record.args.size(), " arguments, found another one");
    }
    if (given[index]) lexer_.fail(name, record.name, ": argument \"", record.args[index].name, "\" is given twice");
    arguments[index] = arguments_.argument(record.args[index]);
    given[index] = true;
    next = index + 1;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (!given[i]) arguments[i] = default_of(record.args[i], record, at);
  return arguments;
}

void Parser::node() {
  std::vector<ParsedType> types;
  while (!lexer_.accept("=")) {
    if (!types.empty()) lexer_.expect(",");
    new_value(graph_->values().size() + types.size());
    lexer_.expect(":");
    types.push_back(arguments_.type());
  }
  const uint16_t flags = lexer_.accept("recomputed") ? uint16_t{Node::kRecomputed} : uint16_t{0};
  const Token name = lexer_.expect(Token::Kind::kName, "the name of an op");
  const OpHandle handle = find_op(name.text);
  if (handle == BP_NO_OP) lexer_.fail(name, "found no op \"", name.text, "\". Fix: load the plugin that brings it");
  const OpEntry& op = checked_entry(handle);
  const std::vector<Argument> arguments = call_arguments(op, name);
  std::vector<Type> results;
  for (const ParsedType& type : types) results.push_back(type.type());
  graph_->add_node(op, arguments, results, add_location(*graph_, lexer_.comment()), flags);
}

void Parser::constraint() {
  Constraint c{Constraint::Relation::kEqual, arguments_.dim(), 0, kNone, ""};
  constexpr const char* kWords[] = {"==", "!=", "<", "<=", "divisible"};
  size_t relation = 0;
  while (relation < std::size(kWords) && !lexer_.accept(kWords[relation])) ++relation;
  if (relation == std::size(kWords)) lexer_.fail_expected("a relation of sizes: == != < <= divisible by");
  c.relation = static_cast<Constraint::Relation>(relation);
  if (c.relation == Constraint::Relation::kDivisible) lexer_.expect("by");
  c.right = arguments_.dim();
  c.reason = lexer_.expect_string("the reason in quotes");
  c.location = add_location(*graph_, lexer_.comment());
  graph_->constraints.push_back(std::move(c));
}

void Parser::update() {
  const bool recorded = !lexer_.accept("unrecorded");
  const ValueId target = arguments_.value();
  graph_->updates.push_back({target, recorded});
  if (target < graph_->values().size() && graph_->value(target).kind == Value::Kind::kConstant)
    graph_->make_live(graph_->value(target).index);
  lexer_.expect("=");
  new_values_.push_back(arguments_.value());
}

void Parser::output() {
  ended_ = true;
  if (!lexer_.at("}")) {
    do graph_->outputs.push_back(arguments_.value());
    while (lexer_.accept(","));
  }
  graph_->outputs.insert(graph_->outputs.end(), new_values_.begin(), new_values_.end());
}

void Parser::statement() {
  if (lexer_.peek().kind == Token::Kind::kValue || lexer_.at("=")) return node();
  if (lexer_.accept("input")) return input();
  if (lexer_.accept("constant")) return constant();
  if (lexer_.accept("symbol")) return symbol();
  if (lexer_.accept("generator")) {
    graph_->generators.push_back(lexer_.expect_string("the generator's name in quotes"));
    return;
  }
  if (lexer_.accept("draw")) return draw();
  if (lexer_.accept("own_rules")) {
    graph_->own_rules = lexer_.expect_string("the name of a function in quotes");
    return;
  }
  if (lexer_.accept("constraint")) return constraint();
  if (lexer_.accept("update")) return update();
  if (lexer_.accept("output")) return output();
  if (!lexer_.at("graph")) lexer_.fail_expected("a statement: input, constant, symbol, a node, output");
  if (depth_ >= kMaxGraphDepth) lexer_.fail(lexer_.peek(), "graphs within graphs more than ", kMaxGraphDepth, " deep");
  graph_->graphs.push_back(Parser(lexer_, find_constant_, device_, depth_ + 1).whole());
}

void Parser::check_symbols() const {
  for (const Symbol& s : graph_->symbols())
    if (s.value != kNone && (s.value >= graph_->values().size() || s.axis >= graph_->value(s.value).ndim))
      lexer_.fail(begin_, "a symbol of this graph is the size of %", s.value, " at axis ", s.axis,
                  ", which does not exist");
}

std::unique_ptr<Graph> Parser::whole() {
  begin_ = lexer_.expect("graph");
  graph_->name = lexer_.expect_string("the graph's name in quotes");
  lexer_.expect("{");
  while (!lexer_.at("}")) {
    if (ended_) lexer_.fail_expected("\"}\" after the outputs");
    statement();
  }
  if (!ended_) lexer_.fail_expected("\"output\"");
  lexer_.expect("}");
  check_symbols();
  return std::move(graph_);
}

}  // namespace

std::unique_ptr<Graph> parse(std::string_view text, const FindConstant& find_constant,
                             std::optional<bp_device> device) {
  Lexer lexer(text);
  std::unique_ptr<Graph> graph = Parser(lexer, find_constant, device, 0).whole();
  if (lexer.peek().kind != Token::Kind::kEnd) lexer.fail_expected("the end of the text");
  verify(*graph);
  return graph;
}

}  // namespace backplane::core::graph
