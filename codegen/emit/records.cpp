// SYMBOL_records.c and .h: the op records of dispatcher/abi/backplane/abi/op.h as constant C11 data.
#include <sstream>

#include "emit/emit.hpp"

namespace backplane::codegen {
namespace {

std::string value_of(const Const& c) {
  const auto tagged = [](const std::string& tag, const std::string& member) {
    return "{.tag = " + tag + ", .u = {" + member + "}}";
  };
  switch (c.tag) {
    case BP_TAG_BOOL:
      return tagged("BP_TAG_BOOL", ".i = " + std::to_string(c.integer));
    case BP_TAG_INT:
      return tagged(c.large ? "BP_TAG_INT, .flags = BP_VALUE_UINT64" : "BP_TAG_INT", ".i = " + c_int(c.integer));
    case BP_TAG_FLOAT:
      return tagged("BP_TAG_FLOAT", ".f = " + c_double(c.number));
    case BP_TAG_DTYPE:
      return tagged("BP_TAG_DTYPE", ".i = " + std::to_string(c.integer));
    case BP_TAG_STRING:
      return "{.tag = BP_TAG_STRING, .count = " + std::to_string(c.text.size()) + ", .u = {.s = " + c_string(c.text) +
             "}}";
    default:
      return "{.tag = BP_TAG_ABSENT}";
  }
}

class RecordWriter {
 public:
  RecordWriter(const EmitContext& context, const CompiledOp& op, size_t index)
      : context_(context), op_(op), prefix_("op" + std::to_string(index) + "_") {}

  std::string write() {
    const Entry& entry = *op_.entry;
    out_ << "\n/* " << entry.full_name << " */\n";
    args();
    results();
    program();
    formulas();
    shapes();
    dtypes();
    record();
    return out_.str();
  }

 private:
  // A list of numbers on lines that fit, so that a difference shows where it is.
  template <class Range, class Render>
  void array(const std::string& type, const std::string& name, const Range& range, Render render, bool one_per_line) {
    if (range.begin() == range.end()) return;
    out_ << "static const " << type << " " << prefix_ << name << "[] = {";
    size_t column = 0;
    bool first = true;
    for (const auto& element : range) {
      const std::string text = render(element);
      if (!first) out_ << ",";
      if (one_per_line || (column + text.size() > 100)) {
        out_ << "\n    ";
        column = 0;
      } else if (!first) {
        out_ << " ";
      }
      out_ << text;
      column += text.size() + 2;
      first = false;
    }
    out_ << (one_per_line ? "\n};\n" : "};\n");
  }

  std::string reference(const std::string& name, size_t count) const { return count ? prefix_ + name : "0"; }
  template <class T>
  std::string bp_array(const std::string& name, size_t count, const T& type) const {
    return count ? "{" + prefix_ + name + ", " + std::to_string(count) + ", sizeof(" + type + ")}"
                 : "{0, 0, sizeof(" + std::string(type) + ")}";
  }

  std::string default_value(const Arg& arg, size_t index) {
    const Literal& value = arg.default_value;
    Const c;
    const std::string list = prefix_ + "default" + std::to_string(index);
    switch (value.kind) {
      case Literal::Kind::kBool:
        c = {BP_TAG_BOOL, value.integer, 0, {}};
        break;
      case Literal::Kind::kInt:
        c = {BP_TAG_INT, value.integer, 0, {}};
        break;
      case Literal::Kind::kFloat:
        c = {BP_TAG_FLOAT, 0, value.number, {}};
        break;
      case Literal::Kind::kString:
        c = {BP_TAG_STRING, 0, 0, value.text};
        break;
      case Literal::Kind::kDtype:
        c = {BP_TAG_DTYPE, value.integer, 0, {}};
        break;
      case Literal::Kind::kInts:
        if (value.ints.empty()) return "{.tag = BP_TAG_INT_LIST}";
        return "{.tag = BP_TAG_INT_LIST, .count = " + std::to_string(value.ints.size()) + ", .u = {.ints = " + list +
               "}}";
      case Literal::Kind::kFloats:
        return "{.tag = BP_TAG_FLOAT_LIST, .count = " + std::to_string(value.floats.size()) +
               ", .u = {.floats = " + list + "}}";
      default:
        break;
    }
    std::string text = value_of(c);
    if (arg.is_tensor() && c.tag != BP_TAG_ABSENT) text.insert(1, ".flags = BP_VALUE_NUMBER, ");
    return text;
  }

  void args() {
    const auto& args = op_.entry->signature.args;
    for (size_t i = 0; i < args.size(); ++i) {
      const Literal& value = args[i].default_value;
      if (value.kind == Literal::Kind::kInts)
        array(
            "int64_t", "default" + std::to_string(i), value.ints, [](int64_t v) { return std::to_string(v); }, false);
      else if (value.kind == Literal::Kind::kFloats)
        array("double", "default" + std::to_string(i), value.floats, c_double, false);
    }
    size_t index = 0;
    array(
        "bp_arg_def", "args", args,
        [&](const Arg& arg) {
          std::string text = "{" + c_string(arg.name) + ", " + std::to_string(arg.type) + ", " +
                             std::to_string(arg.flags) + ", " + std::to_string(arg.since) + ", ";
          text += arg.has(BP_ARG_HAS_DEFAULT) ? default_value(arg, index) : "{.tag = BP_TAG_ABSENT}";
          ++index;
          return text + "}";
        },
        true);
    array(
        "bp_dtype_mask", "accepts", op_.entry->dtypes.accepts,
        [](bp_dtype_mask mask) {
          char text[16];
          std::snprintf(text, sizeof text, "0x%04x", mask);
          return std::string(text);
        },
        false);
  }

  void results() {
    size_t index = 0;
    array(
        "bp_result_def", "results", op_.entry->signature.results,
        [&](const ResultSpec& result) {
          unsigned flags = result.is_list ? unsigned{BP_ARG_LIST} : 0u;
          if (!is_differentiable_result(*op_.entry, index++)) flags |= BP_RESULT_NONDIFF;
          return "{" + c_string(result.name) + ", BP_TYPE_TENSOR, " + std::to_string(flags) + ", 0}";
        },
        true);
  }

  void program() {
    const Program& program = op_.program;
    std::vector<uint32_t> inputs;
    std::vector<std::string> nodes;
    for (const Node& node : program.nodes()) {
      nodes.push_back("{" + std::to_string(node.kind) + ", " + std::to_string(node.inputs.size()) + ", " +
                      std::to_string(inputs.size()) + ", " + std::to_string(node.imm) + "}");
      inputs.insert(inputs.end(), node.inputs.begin(), node.inputs.end());
    }
    if (nodes.empty()) return;
    array(
        "bp_node", "nodes", nodes, [](const std::string& s) { return s; }, false);
    array(
        "uint32_t", "inputs", inputs, [](uint32_t i) { return std::to_string(i); }, false);
    array("bp_value", "consts", program.consts(), value_of, false);
    array("char* const", "names", program.names(), c_string, false);
    out_ << "static const bp_program " << prefix_ << "program = {" << reference("nodes", nodes.size()) << ", "
         << reference("inputs", inputs.size()) << ", " << reference("consts", program.consts().size()) << ", "
         << reference("names", program.names().size()) << ", " << nodes.size() << ", " << inputs.size() << ", "
         << program.consts().size() << ", " << program.names().size() << "};\n";
  }

  void formulas() {
    for (size_t i = 0; i < op_.formulas.size(); ++i) {
      const auto number = [](uint32_t n) { return std::to_string(n); };
      array("uint32_t", "targets" + std::to_string(i), op_.formulas[i].targets, number, false);
      array("uint32_t", "roots" + std::to_string(i), op_.formulas[i].roots, number, false);
    }
    size_t index = 0;
    array(
        "bp_formula", "formulas", op_.formulas,
        [&](const CompiledFormula& f) {
          const std::string n = std::to_string(index);
          const std::string native = native_name(context_, op_, index++);
          return "{" + std::to_string(f.rule) + ", " + std::to_string(f.flags) + ", " +
                 std::to_string(f.targets.size()) + ", " + reference("targets" + n, f.targets.size()) + ", " +
                 reference("roots" + n, f.roots.size()) + ", " + std::to_string(f.roots.size()) + ", " +
                 std::to_string(f.line) + ", " + (native.empty() ? "0" : native) + ",\n     " + c_string(f.text) + "}";
        },
        true);
  }

  void shapes() {
    for (size_t i = 0; i < op_.shapes.size(); ++i)
      array(
          "uint32_t", "shape" + std::to_string(i), op_.shapes[i].args,
          [](uint32_t arg) { return arg == BP_NO_ARG ? std::string("BP_NO_ARG") : std::to_string(arg); }, false);
    size_t index = 0;
    array(
        "bp_shape_rule", "shapes", op_.shapes,
        [&](const CompiledShape& shape) {
          const std::string args = reference("shape" + std::to_string(index++), shape.args.size());
          return "{" + c_string(shape.name) + ", " + args + ", " + std::to_string(shape.args.size()) + ", 0, 0}";
        },
        true);
  }

  void dtypes() {
    array(
        "bp_result_dtype", "dtypes", op_.entry->dtypes.results,
        [](const bp_result_dtype& d) {
          return "{" + std::to_string(d.kind) + ", " + std::to_string(d.fallback) + ", " + std::to_string(d.param) +
                 ", " + std::to_string(d.fallback_param) + ", 0}";
        },
        false);
  }

  void record() {
    const Entry& entry = *op_.entry;
    std::string tags;
    for (const Text& tag : entry.tags) tags += (tags.empty() ? "" : ",") + tag.value;
    for (const auto& [law, reason] : entry.except) tags += (tags.empty() ? "" : ",") + ("except:" + law.value);
    for (const Text& alias : entry.aliases) tags += (tags.empty() ? "" : ",") + ("alias:" + alias.value);
    const auto& s = entry.signature;
    out_ << "static const bp_op_def " << prefix_ << "def = {\n    BP_HEADER(bp_op_def),\n    "
         << c_string(entry.full_name) << ",\n    " << (entry.family.empty() ? "0" : c_string(entry.family.value))
         << ",\n    " << c_string(docstring(op_)) << ",\n    " << c_string(std::string(entry.file)) << ",\n    "
         << entry.where.line << ", " << entry.revision << ", " << op_.flags << "u,\n    "
         << bp_array("args", s.args.size(), "bp_arg_def") << ",\n    "
         << bp_array("results", s.results.size(), "bp_result_def") << ",\n    "
         << bp_array("formulas", op_.formulas.size(), "bp_formula") << ",\n    "
         << bp_array("shapes", op_.shapes.size(), "bp_shape_rule") << ",\n    "
         << bp_array("dtypes", entry.dtypes.results.size(), "bp_result_dtype") << ",\n    "
         << reference("accepts", s.args.size()) << ", " << entry.dtypes.promote << "u, " << entry.dtypes.flags << ", "
         << (entry.alias == BP_NO_ARG ? "BP_NO_ARG" : std::to_string(entry.alias)) << ",\n    "
         << (op_.program.nodes().empty() ? "&no_program" : "&" + prefix_ + "program") << ", "
         << (op_.uses_fit ? "fit_names" : "0") << ", " << (tags.empty() ? "0" : c_string(tags))
         << ", 0, 0, 0,\n#if BP_TARGET_MINOR >= 3\n    0, " << entry.computes_where << "u, " << op_.faults << "u, "
         << entry.region << ", " << entry.join << ", 0,\n#endif\n};\n";
  }

  const EmitContext& context_;
  const CompiledOp& op_;
  std::string prefix_;
  std::ostringstream out_;
};

}  // namespace

void emit_records(const EmitContext& context, OutputSet& out) {
  const auto& ops = context.registry.ops;
  const std::string& symbol = context.symbol;
  std::string header = file_banner("/* ", "The op records of namespace " + context.ns + ".", context, " */");
  const std::string guard = "BACKPLANE_GENERATED_" + symbol + "_RECORDS_H";
  header += "#ifndef " + guard + "\n#define " + guard +
            "\n\n#include \"backplane/abi/op.h\"\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  header += "extern const bp_op_def* const " + symbol + "_ops[];\nextern const uint32_t " + symbol + "_op_count;\n";
  header += "\n#ifdef __cplusplus\n}\n#endif\n#endif\n";
  out.add(symbol + "_records.h", header);

  std::string source =
      file_banner("/* ", "The op records of namespace " + context.ns + ", as constant data.", context, " */");
  source += "#include \"" + symbol + "_records.h\"\n\n#include <math.h>\n";
  bool natives = false, fits = false, empty_programs = false;
  std::string records;
  for (size_t i = 0; i < ops.size(); ++i) {
    records += RecordWriter(context, ops[i], i).write();
    fits = fits || ops[i].uses_fit;
    empty_programs = empty_programs || ops[i].program.nodes().empty();
    for (size_t f = 0; f < ops[i].formulas.size(); ++f) natives = natives || !native_name(context, ops[i], f).empty();
  }
  if (natives) source += "\n#include \"" + symbol + "_formulas.h\"\n";
  if (fits) source += "\nstatic const char* const fit_names[] = {\"bp::sum_to\", \"bp::cast\", \"bp::real\"};\n";
  if (empty_programs) source += "\nstatic const bp_program no_program = {0};\n";
  source += records + "\nconst bp_op_def* const " + symbol + "_ops[] = {";
  for (size_t i = 0; i < ops.size(); ++i) source += (i % 8 ? " " : "\n    ") + ("&op" + std::to_string(i)) + "_def,";
  if (ops.empty()) source += "0";
  source += "\n};\nconst uint32_t " + symbol + "_op_count = " + std::to_string(ops.size()) + ";\n";
  out.add(symbol + "_records.c", source);
}

}  // namespace backplane::codegen
