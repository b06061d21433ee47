// See emitted_names.hpp.
#include "check/emitted_names.hpp"

#include <map>
#include <set>
#include <string>

#include "schema/identifiers.hpp"

namespace backplane::codegen {
namespace {

class Names {
 public:
  Names(const char* language, Diagnostics& diagnostics) : language_(language), diagnostics_(diagnostics) {}

  // `what` is shown: "op 'a.b'", "the in-place form of 'a'".
  void add(const std::string& name, const std::string& what, const Location& where) {
    const auto [known, inserted] = taken_.emplace(name, what);
    if (!inserted)
      diagnostics_.error(
          where, what + " would be named '" + name + "' in " + language_ + ", as " + known->second + " is; rename one");
  }

 private:
  const char* language_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::string> taken_;
};

void add_functions(const Entry& entry, Names& cpp, Names& python) {
  const std::string op = "op '" + entry.name() + "'", of = " of '" + entry.name() + "'";
  const std::string cpp_name = cpp_identifier(entry.name()), python_name = python_identifier(entry.name());
  cpp.add(cpp_name, op, entry.where);
  if (entry.inplace) cpp.add(cpp_name + "_", "the in-place form" + of, entry.where);
  if (entry.out_variant) cpp.add(cpp_name + "_out", "the form with an output" + of, entry.where);
  if (entry.signature.results.size() > 1) cpp.add(cpp_name + "_results", "the results" + of, entry.where);
  python.add(python_name, op, entry.where);
  if (entry.inplace) python.add(python_name + "_", "the in-place form" + of, entry.where);
  for (const Text& alias : entry.aliases)
    python.add(python_identifier(alias.value), "alias '" + alias.value + "'" + of, alias.location());
}

void check_parameters(const Entry& entry, Diagnostics& diagnostics) {
  Names cpp("C++", diagnostics), python("Python", diagnostics), members("C++", diagnostics);
  const auto location = [&](size_t offset) { return entry.signature.text.location(offset); };
  for (const Arg& arg : entry.signature.args) {
    cpp.add(cpp_identifier(arg.name), "argument '" + arg.name + "'", location(arg.offset));
    python.add(python_identifier(arg.name), "argument '" + arg.name + "'", location(arg.offset));
  }
  if (entry.signature.results.size() < 2) return;
  for (const ResultSpec& result : entry.signature.results) {
    members.add(cpp_identifier(result.name), "result '" + result.name + "'", location(result.offset));
    if (entry.out_variant)
      cpp.add(cpp_identifier(result.name) + "_out", "the output for '" + result.name + "'", location(result.offset));
  }
}

}  // namespace

void check_emitted_names(const std::vector<std::unique_ptr<RegistryFile>>& files, Diagnostics& diagnostics) {
  Names cpp("C++", diagnostics), python("Python", diagnostics);
  std::set<std::string> seen;
  cpp.add("kernels", "the namespace of what kernels receive", {});
  for (const auto& file : files) {
    if (file->imported) continue;
    for (const Entry& entry : file->entries) {
      if (entry.damaged || !seen.insert(entry.full_name).second) continue;  // one that stands twice is reported so
      add_functions(entry, cpp, python);
      check_parameters(entry, diagnostics);
    }
  }
}

}  // namespace backplane::codegen
