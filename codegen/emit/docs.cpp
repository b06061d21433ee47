// docs/ops/NAME.md, a reference page per op, and docs/ops/list-of-ops.md, a name that no op can have.
#include <cctype>
#include <map>

#include "check/names.hpp"
#include "emit/emit.hpp"
#include "emit/markdown.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

class PageWriter {
 public:
  explicit PageWriter(const CompiledOp& op) : op_(op), entry_(*op.entry) {}

  std::string write() {
    text_ = "# " + entry_.full_name + "\n\n" + prose(entry_.doc.value) + "\n\n" +
            block(python_declaration(entry_), "python");
    if (const std::string cpp = cpp_declaration(entry_); !cpp.empty()) text_ += "\n" + block(cpp, "cpp");
    if (!entry_.aliases.empty()) text_ += "\nIn Python also " + aliases() + ".\n";
    arguments();
    results();
    errors();
    if (!entry_.example.empty()) text_ += "\n## Example\n\n" + block(entry_.example.value, "python");
    text_ += "\n## Entry\n\n" + block(entry_.signature.text.value);
    derivative("Gradient", BP_RULE_VJP);
    derivative("Forward mode", BP_RULE_JVP);
    batching();
    decomposition();
    variants();
    if (!entry_.source.empty()) {
      text_ += "\n## Source\n\n";
      for (const Text& source : entry_.source) text_ += source.value + "\n";
    }
    return text_;
  }

 private:
  std::string aliases() const {
    std::string text;
    for (const Text& alias : entry_.aliases) text += (text.empty() ? "" : ", ") + code(alias.value);
    return text;
  }

  void arguments() {
    if (entry_.signature.args.empty()) return;
    text_ += "\n| argument | type | dtypes | default | meaning |\n| --- | --- | --- | --- | --- |\n";
    for (size_t i = 0; i < entry_.signature.args.size(); ++i) {
      const Arg& arg = entry_.signature.args[i];
      const std::string choices = arg.choices.empty() ? "" : ": " + cell(listed_choices(arg.choices));
      const std::string dtypes = arg.is_tensor() ? dtype_names(entry_.dtypes.accepts[i]) : "";
      text_ += "| `" + arg.name + "` | " + type_text(arg) + choices + " | " + dtypes + " | " +
               (arg.has(BP_ARG_HAS_DEFAULT) ? code(default_text(arg.default_value)) : std::string("required")) + " | " +
               cell(prose(argument_doc(entry_, arg))) + " |\n";
    }
  }

  static std::string default_text(const Literal& value) {
    if (value.kind != Literal::Kind::kInts)
      return value.kind == Literal::Kind::kString ? "'" + value.text + "'" : value.text;
    std::string text;
    for (const int64_t i : value.ints) text += (text.empty() ? "" : ", ") + std::to_string(i);
    return "[" + text + "]";
  }

  void results() {
    text_ += "\n| result | shape | dtype |\n| --- | --- | --- |\n";
    for (size_t i = 0; i < entry_.signature.results.size(); ++i)
      text_ += "| `" + entry_.signature.results[i].name + "` | " + cell(prose(result_shape_text(entry_, i))) + " | " +
               result_dtype_text(entry_, i) + " |\n";
    if (entry_.dtypes.flags & BP_DTYPE_TO_FLOATING) text_ += "\nIntegers and bools compute in the default float.\n";
    if (entry_.view)
      text_ += "\nThe result is a view: it shares the memory of `" + entry_.signature.args[entry_.alias].name + "`.\n";
    if (entry_.maybe_view)
      text_ += "\nThe result is a view of `" + entry_.signature.args[entry_.alias].name +
               "` where strides allow, else a copy.\n";
  }

  void derivative(const char* title, uint16_t rule) {
    text_ += "\n## " + std::string(title) + "\n\n";
    if (entry_.composite || entry_.is_higher_order()) {
      text_ += entry_.composite ? "Through the decomposition.\n" : "By the rules of the function.\n";
      return;
    }
    bool any = false;
    for (size_t i = 0; i < entry_.signature.args.size(); ++i) {
      if (!is_differentiable_arg(entry_, i)) continue;
      const CompiledFormula* formula = op_.find(rule, static_cast<uint32_t>(i));
      const std::string name = "- `" + entry_.signature.args[i].name + "`: ";
      any = true;
      if (!formula)
        text_ += name + (op_.find(BP_RULE_DECOMPOSE) ? "through the decomposition\n" : "the result is a constant\n");
      else if (formula->flags & BP_FORMULA_ZERO)
        text_ += name + "zero\n";
      else if (formula->flags & BP_FORMULA_REFUSED)
        text_ += name + "none: " + formula->text + "\n";
      else
        text_ += name + "`" + formula->text + "`" + partial(*formula) + "\n";
    }
    if (!any) text_ += "No argument has one.\n";
  }

  std::string partial(const CompiledFormula& formula) const {
    if (!(formula.flags & BP_FORMULA_DERIVED)) return "";
    if (formula.text == "linear") return ", the op itself on the tangents";
    return entry_.partial.empty() ? " (derived from `put`)" : " (the partial derivative)";
  }

  void batching() {
    const CompiledFormula* batch = op_.find(BP_RULE_BATCH);
    std::string text = batching_text(op_);
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    text_ += "\n## Batching\n\n" + text + ".\n";
    const bool stated = batch && !batch->roots.empty() && !(batch->flags & (BP_FORMULA_LOOP | BP_FORMULA_REFUSED));
    if (stated && !entry_.is_higher_order()) text_ += "\n" + block(batch->text);
  }

  void decomposition() {
    if (entry_.is_higher_order()) return;
    const CompiledFormula* formula = op_.find(BP_RULE_DECOMPOSE);
    text_ += "\n## Decomposition\n\n";
    if (formula)
      text_ += block(formula->text);
    else if (!entry_.family.empty())
      text_ += "A primitive of the family " + entry_.family.value + ".\n";
    else
      text_ += entry_.host ? "None: runs on the host where a device has no kernel.\n"
                           : "None: the core makes the view itself.\n";
  }

  void variants() {
    if (!entry_.inplace && !entry_.out_variant) return;
    const std::string name = c_identifier(entry_.name());
    text_ += "\n## Variants\n\n";
    if (entry_.inplace)
      text_ += "- `backplane.ops." + entry_.ns + "." + name + "_` (C++: `" + name + "_`) writes " +
               (entry_.signature.results.size() > 1 ? "each result into the argument of its name.\n"
                                                    : "the result into its first argument.\n");
    if (entry_.out_variant) text_ += "- `out=` (C++: `" + name + "_out`) writes the result into a given tensor.\n";
  }

  void errors() {
    if (entry_.errors.empty()) return;
    text_ += "\n## Errors\n\n";
    for (const auto& [name, when] : entry_.errors) text_ += "- `" + name.value + "`: " + when.value + "\n";
  }

  const CompiledOp& op_;
  const Entry& entry_;
  std::string text_;
};

}  // namespace

void emit_docs(const EmitContext& context, OutputSet& out) {
  std::map<std::string, const Entry*> sorted;
  for (const CompiledOp& op : context.registry.ops) {
    out.add("docs/ops/" + op.entry->name() + ".md", PageWriter(op).write());
    sorted[op.entry->name()] = op.entry;
  }
  std::string index = "# The ops of namespace " + context.ns + "\n\n| op | |\n| --- | --- |\n";
  for (const auto& [name, entry] : sorted)
    index += "| [" + name + "](" + name + ".md) | " + cell(prose(entry->doc.value)) + " |\n";
  out.add("docs/ops/list-of-ops.md", index);
  emit_primitives_page(context, out);
}

}  // namespace backplane::codegen
