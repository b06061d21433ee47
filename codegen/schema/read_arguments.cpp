// `args: {axis: the axis that is summed}`: what arguments mean, for help texts and pages. See reader.hpp.
//
// An entry states the meaning of its own arguments. A file states the meaning that an argument has in all entries of
// the registry: `axis: TEXT`, or `Axes? axis: TEXT` where it depends on the type.
#include "schema/identifiers.hpp"
#include "schema/reader.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

// False, with an error, for a text that is not one line.
bool is_one_line(ValueReader& reader, const Text& name, const Text& text) {
  if (!text.empty() && text.value.find('\n') == std::string::npos) return true;
  reader.diagnostics().error(name.location(), "the meaning of '" + name.value + "' must be a text of one line");
  return false;
}

}  // namespace

void read_arguments(ValueReader& reader, const YamlNode& node, Entry& entry) {
  std::vector<std::string_view> names;
  for (const Arg& arg : entry.signature.args) names.push_back(arg.name);
  for (const auto& [name, text] : reader.read_word_map(node, "args")) {
    const int arg = entry.signature.find_arg(name.value);
    if (arg < 0)
      reader.diagnostics().error(name.location(), "'args' names '" + name.value + "', which is not an argument of '" +
                                                      entry.name() + "'" + suggestion(name.value, names) +
                                                      "; arguments are " + listed(names));
    else if (is_one_line(reader, name, text))
      entry.signature.args[static_cast<size_t>(arg)].doc = text;
  }
}

void read_arguments(ValueReader& reader, const YamlNode& node, SharedNames& shared) {
  for (const auto& [name, text] : reader.read_word_map(node, "args")) {
    if (!is_one_line(reader, name, text)) continue;
    const size_t space = name.value.rfind(' ');
    if (!is_identifier(space == std::string::npos ? name.value : name.value.substr(space + 1)))
      reader.diagnostics().error(name.location(), "'" + name.value + "' names no argument; write NAME or TYPE NAME");
    else if (!shared.args.emplace(name.value, text).second)
      reader.diagnostics().error(name.location(), "'args' of the files state '" + name.value + "' twice; keep one");
  }
}

std::string type_text(const Arg& arg) {
  std::string type(type_name(arg.type));
  if (arg.has(BP_ARG_LIST))
    return type + (arg.has(BP_ARG_OPTIONAL_ELEMENTS) ? "?[]" : arg.has(BP_ARG_OPTIONAL) ? "[]?" : "[]");
  return arg.has(BP_ARG_OPTIONAL) ? type + "?" : type;
}

std::string argument_doc(const Entry& entry, const Arg& arg) {
  if (!arg.doc.empty()) return arg.doc.value;
  const auto& shared = entry.shared->args;
  auto found = shared.find(type_text(arg) + " " + arg.name);
  if (found == shared.end()) found = shared.find(arg.name);
  return found == shared.end() ? "" : found->second.value;
}

}  // namespace backplane::codegen
