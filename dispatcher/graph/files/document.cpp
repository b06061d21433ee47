#include "graph/files/document.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "graph/sizes.hpp"
#include "graph/text/lexer.hpp"
#include "graph/text/print.hpp"

namespace backplane::core::graph {
namespace {

using Json = nlohmann::json;
constexpr const char* kFormat = "backplane.graph";
constexpr int kMaxDepth = 64;  // of nested values

Json type_of(const Graph& graph, ValueId value) { return type_text(graph, graph.type(value)); }

Json node_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  Json args = Json::object(), results = Json::array();
  for (const NamedText& arg : argument_texts(graph, id)) args[arg.name] = arg.text;
  for (uint32_t i = 0; i < node.n_results; ++i) results.push_back(type_of(graph, node.first_result + i));
  Json written = {{"op", node.op->record->name}, {"args", std::move(args)}, {"results", std::move(results)}};
  if (node.flags & Node::kRecomputed) written["recomputed"] = true;
  if (const std::string at = location_text(graph, node.location); !at.empty()) written["at"] = at;
  return written;
}

Json body_of(const Graph& graph) {
  const Statements parts = statements(graph);
  Json body = {{"name", graph.name},   {"symbols", parts.symbols},         {"generators", graph.generators},
               {"draws", parts.draws}, {"constraints", parts.constraints}, {"outputs", graph.outputs}};
  if (!graph.own_rules.empty()) body["own_rules"] = graph.own_rules;
  for (const char* list : {"inputs", "constants", "graphs", "nodes"}) body[list] = Json::array();
  for (const Input& input : graph.inputs())
    body["inputs"].push_back({{"name", input.name}, {"type", type_of(graph, input.value)}});
  for (const Constant& c : graph.constants())
    body["constants"].push_back({{"name", c.name}, {"type", type_of(graph, c.value)}});
  for (const auto& inner : graph.graphs) body["graphs"].push_back(body_of(*inner));
  for (NodeId id = 0; id < graph.nodes().size(); ++id) body["nodes"].push_back(node_of(graph, id));
  return body;
}

// The least version of a reader that understands it.
int version_of(const Graph& graph) {
  int version = 1;
  for (const Symbol& s : graph.symbols())
    if (s.value == kNone) version = 2;
  for (const Node& node : graph.nodes())
    for (const Argument& a : graph.arguments(node)) {
      if (!a.is_symbolic()) continue;
      const bool is_float = a.plain.tag == BP_TAG_FLOAT;
      if (is_float && (a.plain.count & kRootOfSize)) return 3;
      if (is_float || a.plain.tag == BP_TAG_VALUE_LIST || (a.plain.flags & BP_VALUE_NUMBER)) version = 2;
    }
  for (const auto& inner : graph.graphs) version = std::max(version, version_of(*inner));
  return version;
}

// The signatures that the nodes were written for.
void add_schemas(const Graph& graph, Json& ops) {
  for (const Node& node : graph.nodes()) {
    const OpRecord& record = *node.op->record;
    const std::string name(record.name);
    if (ops.contains(name)) continue;
    Json args = Json::array();
    for (const bp_arg_def& arg : record.args) args.push_back(arg.name);
    ops[name] = {{"revision", record.def.revision}, {"args", std::move(args)}, {"results", record.results.size()}};
  }
  for (const auto& inner : graph.graphs) add_schemas(*inner, ops);
}

// The document as a graph's text, which the parser reads with all its checks.
class Reader {
 public:
  explicit Reader(const Json& document) : ops_(member(document, "ops", Json::value_t::object)) {}
  std::string text(const Json& body);

 private:
  template <class... Parts>
  [[noreturn]] static void refuse(const Parts&... parts) {
    detail::fail(BP_ERROR_VALUE, "graph document: ", parts...);
  }
  static const Json& member(const Json& of, const char* name, Json::value_t type);
  static std::string string_of(const Json& of, const char* name);
  static void lines(std::string& text, const Json& body, const char* list, const std::string& word);
  void check_op(const std::string& name);
  void node(std::string& text, const Json& written);

  const Json& ops_;
  std::set<std::string> checked_;
  uint32_t next_ = 0;  // the number of the next value
};

const Json& Reader::member(const Json& of, const char* name, Json::value_t type) {
  const auto at = of.is_object() ? of.find(name) : of.end();
  if (!of.is_object() || at == of.end() || at->type() != type)
    refuse("expected \"", name, "\" to be of type ", Json(type).type_name());
  return *at;
}

// One line, that no comment cuts short.
std::string single_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

std::string Reader::string_of(const Json& of, const char* name) {
  return single_line(member(of, name, Json::value_t::string).get<std::string>());
}

void Reader::lines(std::string& text, const Json& body, const char* list, const std::string& word) {
  for (const Json& line : member(body, list, Json::value_t::array)) {
    if (!line.is_string()) refuse("\"", list, "\" holds something that is not a string");
    text += word + single_line(line.get<std::string>()) + "\n";
  }
}

void Reader::check_op(const std::string& name) {
  if (!checked_.insert(name).second) return;
  const auto schema = ops_.find(name);
  if (schema == ops_.end() || !schema->is_object() || !schema->contains("revision") ||
      !(*schema)["revision"].is_number_unsigned())
    refuse("\"ops\" has no revision of ", name);
  const OpHandle handle = find_op(name);
  BP_CHECK(handle != BP_NO_OP, VALUE, "graph document: there is no op \"", name,
           "\". Fix: load the plugin that brings it");
  const uint64_t written = (*schema)["revision"].get<uint64_t>(), known = op_def(handle).revision;
  BP_CHECK(written <= known, VERSION, "graph document: was written for revision ", written, " of ", name,
           ", and this one is of revision ", known, ". Fix: load a newer plugin, or a newer backplane");
}

void Reader::node(std::string& text, const Json& written) {
  const std::string op = string_of(written, "op");
  check_op(op);
  const Json& results = member(written, "results", Json::value_t::array);
  bool first = true;
  for (const Json& type : results) {
    if (!type.is_string()) refuse("a result of ", op, " is not a type");
    text += (first ? "%" : ", %") + std::to_string(next_++) + ": " + single_line(type.get<std::string>());
    first = false;
  }
  const auto recomputed = written.find("recomputed");
  text += recomputed != written.end() && *recomputed == true ? " = recomputed " : " = ";
  text += op + "(";
  first = true;
  for (const auto& [name, value] : member(written, "args", Json::value_t::object).items()) {
    if (!value.is_string()) refuse("argument \"", name, "\" of ", op, " is not a string");
    text += (first ? "" : ", ") + single_line(name) + "=" + single_line(value.get<std::string>());
    first = false;
  }
  text += ")";
  if (written.contains("at")) text += "  # " + string_of(written, "at");
  text += "\n";
}

std::string Reader::text(const Json& body) {
  const uint32_t outer = std::exchange(next_, 0);
  std::string text =
      "graph " + core::graph::quoted(member(body, "name", Json::value_t::string).get<std::string>()) + " {\n";
  lines(text, body, "symbols", "symbol ");
  for (const Json& name : member(body, "generators", Json::value_t::array)) {
    if (!name.is_string()) refuse("\"generators\" holds something that is not a string");
    text += "generator " + core::graph::quoted(name.get<std::string>()) + "\n";
  }
  lines(text, body, "draws", "draw ");
  if (body.contains("own_rules")) text += "own_rules " + core::graph::quoted(string_of(body, "own_rules")) + "\n";
  for (const char* list : {"inputs", "constants"}) {
    const bool constant = *list == 'c';
    for (const Json& one : member(body, list, Json::value_t::array))
      text += std::string(constant ? "constant" : "input") + " %" + std::to_string(next_++) + " " +
              core::graph::quoted(member(one, "name", Json::value_t::string).get<std::string>()) + ": " +
              string_of(one, "type") + (constant ? " = digest 0x0\n" : "\n");
  }
  for (const Json& inner : member(body, "graphs", Json::value_t::array)) text += this->text(inner);
  for (const Json& one : member(body, "nodes", Json::value_t::array)) node(text, one);
  lines(text, body, "constraints", "constraint ");
  text += "output";
  bool first = true;
  for (const Json& value : member(body, "outputs", Json::value_t::array)) {
    if (!value.is_number_unsigned()) refuse("\"outputs\" holds something that is not the number of a value");
    text += (first ? " %" : ", %") + std::to_string(value.get<uint64_t>());
    first = false;
  }
  next_ = outer;
  return text + "\n}\n";
}

Json parse_json(std::string_view text) {
  const Json::parser_callback_t check_depth = [](int depth, Json::parse_event_t, Json&) {
    BP_CHECK(depth <= kMaxDepth, VALUE, "graph document: nests values more than ", kMaxDepth, " deep");
    return true;
  };
  try {
    return Json::parse(text, check_depth);
  } catch (const Json::exception& failure) {
    detail::fail(BP_ERROR_VALUE, "graph document: is not JSON: ", std::string(failure.what()).substr(0, 200));
  }
}

}  // namespace

std::string document_of(const Graph& graph) {
  Json ops = Json::object();
  add_schemas(graph, ops);
  const Json document = {
      {"format", kFormat}, {"version", version_of(graph)}, {"graph", body_of(graph)}, {"ops", std::move(ops)}};
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::unique_ptr<Graph> graph_of_document(std::string_view text, const FindConstant& find_constant,
                                         std::optional<bp_device> device) {
  const Json document = parse_json(text);
  const bool known = document.is_object() && document.contains("format") && document["format"] == kFormat &&
                     document.contains("version") && document["version"].is_number_unsigned();
  BP_CHECK(known && document.contains("graph"), VALUE, "graph document: expected an object with the format \"", kFormat,
           "\", a version and a graph");
  const auto version = document["version"].get<uint64_t>();
  BP_CHECK(version >= 1 && version <= kDocumentVersion, VERSION, "graph document: is of version ", version,
           "; this backplane reads versions up to ", kDocumentVersion, ". Fix: a newer backplane");
  return parse(Reader(document).text(document["graph"]), find_constant, device);
}

}  // namespace backplane::core::graph
