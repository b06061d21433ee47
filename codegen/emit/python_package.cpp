// python/NAMESPACE: a typed package of the ops, which finds the plugin beside it. See emit.hpp.
#include "emit/emit.hpp"

namespace backplane::codegen {

void emit_python(const EmitContext& context, OutputSet& out) {
  const std::string ns = python_identifier(context.ns), folder = "python/" + ns + "/";
  std::string names, text = file_banner("# ", "The ops of namespace " + context.ns + " as a package.", context, "");
  text += "import pathlib as _pathlib\n\nimport backplane as _backplane\n\n";
  text += "# Where the plugin lies beside this file, with its manifest, it is found without being installed.\n";
  text +=
      "_backplane.add_plugin_path(str(_pathlib.Path(__file__).resolve().parent))\n_ops = _backplane.ops." + ns + "\n\n";
  const auto add = [&](const std::string& name) {
    text += name + " = _ops." + name + "\n";
    names += (names.empty() ? "" : ", ") + python_string(name);
  };
  for (const CompiledOp& op : context.registry.ops) {
    const Entry& entry = *op.entry;
    std::vector<std::string> words = {python_identifier(entry.name())};
    for (const Text& alias : entry.aliases) words.push_back(python_identifier(alias.value));
    for (const std::string& word : words) {
      add(word);
      if (entry.inplace) add(word + "_");
    }
  }
  out.add(folder + "__init__.py", text + "\n__all__ = [" + names + "]\n");
  out.add(folder + "__init__.pyi", stubs(context));
  out.add(folder + "py.typed", "");
}

}  // namespace backplane::codegen
