#include "graph/text/print.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "backplane/device.hpp"
#include "graph/elements.hpp"
#include "graph/sizes.hpp"
#include "graph/text/lexer.hpp"
#include "record/dtype_rules.hpp"

namespace backplane::core::graph {
namespace {

constexpr const char* kRelations[] = {"==", "!=", "<", "<=", "divisible by"};

std::string hex(uint64_t number) {
  char digits[20];
  std::snprintf(digits, sizeof digits, "0x%016lx", static_cast<unsigned long>(number));
  return digits;
}

// Writes one graph, and those within it further to the right.
class Printer {
 public:
  Printer(const Graph& graph, std::string indent, std::string prefix, std::set<std::string>& names)
      : graph_(graph), indent_(std::move(indent)), prefix_(std::move(prefix)), names_(&names) {
    number_values();
  }
  // For parts of a text, where values keep their ids.
  explicit Printer(const Graph& graph) : graph_(graph) {}

  std::string whole();
  std::string argument(const Argument& a) const;
  std::string draw(const Draw& draw) const;
  std::string type(const Type& t) const;
  std::string node(const Node& n) const;
  std::string location(uint32_t index) const;
  std::string symbol(size_t index) const;
  std::string constraint(const Constraint& c) const;
  std::vector<NamedText> arguments(const Node& n) const;

 private:
  std::string value(ValueId id) const { return "%" + std::to_string(numbers_.empty() ? id : numbers_[id]); }
  std::string dims(std::span<const Dim> sizes) const;
  std::string plain(const bp_value& v) const;
  std::string results(const Node& n) const;
  std::string call(const Node& n) const;
  std::string constant(size_t index) const;
  std::string unique_name(size_t index) const;
  void number_values();
  void line(const std::string& text) { text_ += indent_ + "  " + text + "\n"; }

  const Graph& graph_;
  std::string indent_;
  std::string prefix_;                      // of the names of constants that have none
  std::set<std::string>* names_ = nullptr;  // of the constants that the reader is asked for, in the whole text
  std::string text_;
  std::vector<uint32_t> numbers_;  // of values, by id, in the order in which they are written; empty: the ids
};

void Printer::number_values() {
  numbers_.assign(graph_.values().size(), kNone);
  uint32_t next = 0;
  for (const Input& input : graph_.inputs()) numbers_[input.value] = next++;
  for (const Constant& c : graph_.constants()) numbers_[c.value] = next++;
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    if (graph_.is_erased(id)) continue;
    const Node& node = graph_.node(id);
    for (uint32_t i = 0; i < node.n_results; ++i) numbers_[node.first_result + i] = next++;
  }
}

std::string Printer::dims(std::span<const Dim> sizes) const {
  std::string text = "[";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i ? ", " : "") + graph_.text(sizes[i]);
  return text + "]";
}

std::string Printer::type(const Type& t) const {
  return std::string(kDtypeNames[t.dtype]) + dims(t.dims) + " " + quoted(device_name(t.device));
}

std::string Printer::location(uint32_t index) const {
  if (index >= graph_.locations().size()) return "";
  const Location& at = graph_.locations()[index];
  std::string file = at.file;
  std::replace_if(
      file.begin(), file.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return file + ":" + std::to_string(at.line) + (at.function.empty() ? "" : " in " + at.function);
}

template <class T, class Text>
std::string joined(const T* items, uint32_t count, Text text) {
  std::string all;
  for (uint32_t i = 0; i < count; ++i) all += (i ? ", " : "") + std::string(text(items[i]));
  return all;
}

// An argument that is not a value or a size.
std::string Printer::plain(const bp_value& v) const {
  switch (v.tag) {
    case BP_TAG_ABSENT:
      return "none";
    case BP_TAG_BOOL:
      return v.u.i ? "true" : "false";
    case BP_TAG_INT:
      if (v.flags & BP_VALUE_BEYOND) return "beyond(" + float_text(v.u.f) + ")";
      return v.flags & BP_VALUE_UINT64 ? std::to_string(static_cast<uint64_t>(v.u.i)) : std::to_string(v.u.i);
    case BP_TAG_FLOAT:
      return float_text(v.u.f);
    case BP_TAG_COMPLEX:
      return "complex(" + float_text(v.u.c[0]) + ", " + float_text(v.u.c[1]) + ")";
    case BP_TAG_STRING:
      return quoted({v.u.s, v.count});
    case BP_TAG_DTYPE:
      return v.u.i >= 0 && v.u.i < BP_DTYPE_COUNT ? kDtypeNames[v.u.i] : "none";
    case BP_TAG_DEVICE:
      return "device(" + quoted(device_name(v.u.d)) + ")";
    case BP_TAG_INT_LIST:
      return "[" + joined(v.u.ints, v.count, [](int64_t i) { return std::to_string(i); }) + "]";
    case BP_TAG_FLOAT_LIST:
      return "floats[" + joined(v.u.floats, v.count, float_text) + "]";
    case BP_TAG_BOOL_LIST:
      return "bools[" + joined(v.u.bools, v.count, [](uint8_t b) { return b ? "true" : "false"; }) + "]";
    case BP_TAG_VALUE_LIST:
      return "values[" + joined(v.u.values, v.count, [&](const bp_value& one) { return plain(one); }) + "]";
    default:
      detail::fail(BP_ERROR_TYPE, "graph ", graph_.name, ": an argument of tag ", v.tag, " has no text");
  }
}

std::string Printer::argument(const Argument& a) const {
  if (a.is_value()) return value(a.value());
  if (a.is_values()) {
    const std::span<ValueId> ids = Argument(a).values();
    return "[" +
           joined(ids.data(), static_cast<uint32_t>(ids.size()),
                  [&](ValueId v) { return v == kNone ? "none" : value(v); }) +
           "]";
  }
  if (a.is_draw()) {
    const Dim offset = *reinterpret_cast<const Dim*>(&a.plain.u.i);
    return "draw(" + std::to_string(a.draw()) + ", " + graph_.text(offset) + ")";
  }
  if (a.is_graph()) return "graph(" + std::to_string(a.graph()) + ")";
  if (a.plain.tag == BP_TAG_INT_LIST && a.is_symbolic()) return dims(a.dims());
  if (a.plain.tag == BP_TAG_INT && a.is_symbolic()) return graph_.text(a.dims()[0]);
  if (a.plain.tag == BP_TAG_VALUE_LIST && a.is_symbolic())
    return "values[" +
           joined(a.plain.u.values, a.plain.count,
                  [&](const bp_value& one) { return one.tag == BP_TAG_INT ? graph_.text(dim_of(one)) : plain(one); }) +
           "]";
  if (a.plain.tag == BP_TAG_FLOAT && a.is_symbolic()) {
    const uint32_t dividend = a.plain.count & ~kRootOfSize;
    const std::string size = graph_.text(a.dims()[0]);
    return "float(" + (dividend ? std::to_string(dividend) + " / " : "") +
           (a.plain.count & kRootOfSize ? "sqrt(" + size + ")" : size) + ")";
  }
  return plain(a.plain);
}

bool equals_default(const bp_value& v, const bp_arg_def& arg) {
  const bp_value& d = arg.default_value;
  if (!(arg.flags & BP_ARG_HAS_DEFAULT)) return (arg.flags & BP_ARG_OPTIONAL) && v.tag == BP_TAG_ABSENT;
  if (v.tag != d.tag || v.count != d.count || (v.flags & ~BP_VALUE_NUMBER) != (d.flags & ~BP_VALUE_NUMBER))
    return false;
  if (v.tag == BP_TAG_STRING) return std::memcmp(v.u.s, d.u.s, v.count) == 0;
  if (v.tag == BP_TAG_INT_LIST) return std::equal(v.u.ints, v.u.ints + v.count, d.u.ints);
  const bool simple = v.tag == BP_TAG_ABSENT || v.tag == BP_TAG_BOOL || v.tag == BP_TAG_INT || v.tag == BP_TAG_FLOAT ||
                      v.tag == BP_TAG_DTYPE;
  return simple && v.u.i == d.u.i;
}

std::vector<NamedText> Printer::arguments(const Node& n) const {
  const OpRecord& record = *n.op->record;
  std::vector<NamedText> texts;
  const std::span<const Argument> given = graph_.arguments(n);
  for (size_t i = 0; i < given.size() && i < record.args.size(); ++i)
    if (!equals_default(given[i].plain, record.args[i])) texts.push_back({record.args[i].name, argument(given[i])});
  return texts;
}

// Arguments that equal their defaults are left out; after such a gap, and after `*`, they are keyword arguments.
std::string Printer::call(const Node& n) const {
  const OpRecord& record = *n.op->record;
  std::string text = (n.flags & Node::kRecomputed ? "recomputed " : "") + std::string(record.name) + "(";
  size_t next = 0;
  bool first = true;
  for (const auto& [name, value] : arguments(n)) {
    const bool in_turn =
        next < record.args.size() && name == record.args[next].name && !(record.args[next].flags & BP_ARG_KEYWORD_ONLY);
    next = in_turn ? next + 1 : record.args.size();
    text += (first ? "" : ", ") + (in_turn ? "" : name + "=") + value;
    first = false;
  }
  return text + ")";
}

std::string Printer::results(const Node& n) const {
  std::string text;
  for (uint32_t i = 0; i < n.n_results; ++i)
    text += (i ? ", " : "") + value(n.first_result + i) + ": " + type(graph_.type(n.first_result + i));
  return text;
}

std::string Printer::node(const Node& n) const {
  const std::string at = location(n.location);
  return results(n) + (n.n_results ? " = " : "= ") + call(n) + (at.empty() ? "" : "  # " + at);
}

// Named in the text as in a file that has the graph, where nobody has named it otherwise.
std::string Printer::unique_name(size_t index) const {
  const std::string& given = graph_.constants()[index].name;
  std::string name = given.empty() ? prefix_ + "constant." + std::to_string(index) : given;
  while (!names_->insert(name).second) name += "_";
  return name;
}

std::string Printer::constant(size_t index) const {
  const Constant& c = graph_.constants()[index];
  int64_t count = 1;
  for (const int64_t size : c.tensor.shape()) count *= size;
  const std::string elements = count > 0 && count <= kInlineElements ? elements_text(c.tensor) : "";
  const bool is_inline = count == 0 || !elements.empty();
  return "constant " + value(c.value) + " " + quoted(is_inline ? c.name : unique_name(index)) + ": " +
         type(graph_.type(c.value)) + " = " + (is_inline ? "{" + elements + "}" : "digest " + hex(digest(c.tensor)));
}

std::string Printer::draw(const Draw& draw) const {
  const auto word = [](uint64_t bits) { return std::to_string(static_cast<int64_t>(bits)); };
  if (draw.kind == Draw::Kind::kFixed) return "fixed " + word(draw.state.key) + ", " + word(draw.state.counter);
  if (draw.kind == Draw::Kind::kDerived)
    return "derived " + std::to_string(draw.from) + ", " + graph_.text(draw.offset) + ", " + word(draw.stream);
  return std::to_string(draw.generator) + ", " + graph_.text(draw.count);
}

std::string Printer::symbol(size_t index) const {
  const Symbol& s = graph_.symbols()[index];
  const std::string of = s.value == kNone ? "" : " of " + value(s.value) + " axis " + std::to_string(s.axis);
  return graph_.symbol_names()[index] + of + " example " + std::to_string(s.example);
}

std::string Printer::constraint(const Constraint& c) const {
  const std::string at = location(c.location);
  return graph_.text(c.left) + " " + kRelations[static_cast<size_t>(c.relation)] + " " + graph_.text(c.right) + " " +
         quoted(c.reason) + (at.empty() ? "" : "  # " + at);
}

std::string Printer::whole() {
  text_ = "graph " + quoted(graph_.name) + " {\n";
  for (size_t i = 0; i < graph_.symbols().size(); ++i)
    if (graph_.symbols()[i].divisor == 0) line("symbol " + symbol(i));
  for (const std::string& name : graph_.generators) line("generator " + quoted(name));
  for (const Draw& draw : graph_.draws) line("draw " + this->draw(draw));
  if (!graph_.own_rules.empty()) line("own_rules " + quoted(graph_.own_rules));
  for (const Input& input : graph_.inputs())
    line("input " + value(input.value) + " " + quoted(input.name) + ": " + type(graph_.type(input.value)));
  for (size_t i = 0; i < graph_.constants().size(); ++i) line(constant(i));
  for (size_t i = 0; i < graph_.graphs.size(); ++i) {
    Printer printer(*graph_.graphs[i], indent_ + "  ", prefix_ + "graph." + std::to_string(i) + ".", *names_);
    line(printer.whole());
    text_.pop_back();
  }
  for (NodeId id = 0; id < graph_.nodes().size(); ++id)
    if (!graph_.is_erased(id)) line(node(graph_.node(id)));
  for (const Constraint& c : graph_.constraints) line("constraint " + constraint(c));
  for (size_t i = 0; i < graph_.updates.size(); ++i)
    line("update " + std::string(graph_.updates[i].recorded ? "" : "unrecorded ") + value(graph_.updates[i].target) +
         " = " + value(graph_.outputs[graph_.n_results() + i]));
  line("output " +
       joined(graph_.outputs.data(), static_cast<uint32_t>(graph_.n_results()), [&](ValueId v) { return value(v); }));
  return text_ + indent_ + "}\n";
}

}  // namespace

std::string print(const Graph& graph) {
  std::set<std::string> names;
  return Printer(graph, "", "", names).whole();
}
std::string argument_text(const Graph& graph, const Argument& argument) { return Printer(graph).argument(argument); }
std::string type_text(const Graph& graph, const Type& type) { return Printer(graph).type(type); }
std::string node_text(const Graph& graph, NodeId node) { return Printer(graph).node(graph.node(node)); }

Statements statements(const Graph& graph) {
  const Printer printer(graph);
  Statements all;
  for (size_t i = 0; i < graph.symbols().size(); ++i)
    if (graph.symbols()[i].divisor == 0) all.symbols.push_back(printer.symbol(i));
  for (const Draw& draw : graph.draws) all.draws.push_back(printer.draw(draw));
  for (const Constraint& c : graph.constraints) all.constraints.push_back(printer.constraint(c));
  return all;
}

std::vector<NamedText> argument_texts(const Graph& graph, NodeId node) {
  return Printer(graph).arguments(graph.node(node));
}
std::string location_text(const Graph& graph, uint32_t location) { return Printer(graph).location(location); }

uint64_t digest(const Tensor& tensor) {
  std::vector<char> data(tensor.get()->nbytes);
  to_host(tensor, data.data());
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : data) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace backplane::core::graph
