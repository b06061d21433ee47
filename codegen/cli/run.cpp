// Read, check, then write everything or nothing. See run.hpp.
#include "cli/run.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <ostream>
#include <sstream>

#include "cli/explain.hpp"
#include "emit/emit.hpp"
#include "emit/scalar_dialects.hpp"
#include "schema/identifiers.hpp"
#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

namespace fs = std::filesystem;

struct Emitter {
  const char* name;
  void (*emit)(const EmitContext&, OutputSet&);
};
constexpr Emitter kEmitters[] = {
    {"records", emit_records},    {"formulas", emit_formulas}, {"samples", emit_samples},   {"cpp", emit_cpp},
    {"kernels", emit_kernels},    {"pyi", emit_pyi},           {"docs", emit_docs},         {"scalar", emit_scalar},
    {"rewrites", emit_rewrites},  {"plugin", emit_plugin},     {"manifest", emit_manifest}, {"python", emit_python},
    {"spellings", emit_spellings}};

// Where the SDK may be installed: the folder that bin/ of this program lies in; for a copy of it, $BACKPLANE_PREFIX
// and the prefixes whose bin/ is on the PATH.
std::vector<fs::path> prefixes() {
  std::vector<fs::path> found;
  std::error_code error;
  if (const fs::path self = fs::read_symlink("/proc/self/exe", error); !error)
    found.push_back(self.parent_path().parent_path());
  if (const char* stated = std::getenv("BACKPLANE_PREFIX"); stated && *stated) found.emplace_back(stated);
  std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path path(folder); path.is_absolute()) found.push_back(path.parent_path());
  return found;
}

// share/backplane/ops.yaml of the first that has it, which a build has as a link. The file itself: includes are read
// from its folder. Empty if no folder has it.
std::string installed_registry() {
  for (const fs::path& prefix : prefixes()) {
    std::error_code error;
    const fs::path file = fs::canonical(prefix / "share" / "backplane" / "ops.yaml", error);
    if (!error) return file.string();
  }
  return "";
}

// Only the registry that comes with backplane may say that it is it: a stranger's would replace its header.
void check_base(const Options& options, const std::vector<std::unique_ptr<RegistryFile>>& files,
                Diagnostics& diagnostics) {
  for (const auto& file : files)
    if (file->ns == "bp" && !file->imported && !options.base)
      diagnostics.error(
          file->documents.front()->tree->root->find("namespace")->location(),
          "the namespace 'bp' is that of backplane's own ops; choose another, or for backplane's own file "
          "give --base");
}

bool reads_own_base(const std::vector<std::unique_ptr<RegistryFile>>& files) {
  return std::any_of(files.begin(), files.end(), [](const auto& file) { return file->ns == "bp"; });
}

std::string escape_for_make(const std::string& path) {
  std::string result;
  for (const char c : path) {
    if (c == ' ' || c == '#') result += '\\';
    if (c == '$') result += '$';
    result += c;
  }
  return result;
}

std::string unknown_output(const std::vector<std::string>& words) {
  std::vector<std::string_view> names;
  for (const Emitter& emitter : kEmitters) names.push_back(emitter.name);
  for (const std::string& word : words)
    if (!std::count(names.begin(), names.end(), word))
      return "unknown output '" + word + "'" + suggestion(word, names) + "; outputs are " + listed(names);
  return "";
}

std::string unknown_dialect(const std::vector<std::string>& words) {
  const std::vector<std::string_view> names = dialect_words();
  for (const std::string& word : words)
    if (!std::count(names.begin(), names.end(), word))
      return "unknown dialect '" + word + "'" + suggestion(word, names) + "; dialects are " + listed(names);
  return "";
}

int emit_all(const Options& options, const CompiledRegistry& registry, std::ostream& out, std::ostream& errors) {
  const std::string ns = registry.files.front()->ns;
  const auto wanted = [&](const char* name) {
    return options.emit.empty() || std::count(options.emit.begin(), options.emit.end(), name) > 0;
  };
  const EmitContext context{
      registry,          options.symbol.empty() ? ns : options.symbol, ns, wanted("formulas"), options.dialects,
      options.standalone};
  OutputSet outputs;
  for (const Emitter& emitter : kEmitters)
    if (wanted(emitter.name)) emitter.emit(context, outputs);
  if (options.list_outputs) {
    for (const auto& [name, content] : outputs.files()) out << (fs::path(options.out) / name).string() << '\n';
    return 0;
  }
  int written = 0;
  std::string failure = outputs.commit(options.out, written);
  if (failure.empty() && !options.depfile.empty()) {
    OutputSet depfile;
    const std::string records = (fs::path(options.out) / (context.symbol + "_records.c")).string();
    std::string rule = escape_for_make(options.stamp.empty() ? records : options.stamp) + ":";
    for (const auto& file : registry.files)
      for (const auto& document : file->documents) rule += " \\\n  " + escape_for_make(document->source->path());
    depfile.add(fs::path(options.depfile).filename().string(), rule + "\n");
    failure = depfile.commit(fs::path(options.depfile).parent_path().string(), written);
  }
  if (failure.empty() && !options.stamp.empty()) failure = write_anew(options.stamp, "backplane-codegen\n");
  if (failure.empty()) return 0;
  errors << "backplane-codegen: error: " << failure << '\n';
  return 1;
}

}  // namespace

int run(const Options& options, std::ostream& out, std::ostream& errors) {
  if (const std::string wrong = unknown_output(options.emit); !wrong.empty()) {
    errors << "backplane-codegen: error: " << wrong << '\n';
    return 2;
  }
  if (const std::string wrong = unknown_dialect(options.dialects); !wrong.empty()) {
    errors << "backplane-codegen: error: " << wrong << '\n';
    return 2;
  }
  if (options.standalone &&
      (options.dialects.empty() || std::count(options.dialects.begin(), options.dialects.end(), "wgsl"))) {
    errors
        << "backplane-codegen: error: --standalone is of the dialects c++, cuda, glsl and opencl, since a WGSL file is "
           "put together by its host; name some of them with --dialect\n";
    return 2;
  }
  if (const std::string why = options.symbol.empty() ? "" : why_no_namespace(options.symbol); !why.empty()) {
    errors << "backplane-codegen: error: --symbol '" << options.symbol << "' " << why << "; give a C identifier\n";
    return 2;
  }
  for (const std::string& path : options.ops)
    if (first_hidden(path) != std::string::npos || path.find_first_of("\n\r") != std::string::npos) {
      errors << "backplane-codegen: error: the path " << c_string(path)
             << " is not one line of text, which the outputs need; rename the file\n";
      return 2;
    }
  Diagnostics diagnostics;
  std::vector<std::unique_ptr<RegistryFile>> files;
  for (const std::string& path : options.ops) files.push_back(read_registry(path, false, diagnostics));
  std::vector<std::string> imports = options.imports;
  if (imports.empty() && options.default_import && !reads_own_base(files)) {
    if (const std::string base = installed_registry(); !base.empty())
      imports.push_back(base);
    else
      errors << "backplane-codegen: warning: no share/backplane/ops.yaml beside this program, in $BACKPLANE_PREFIX or "
                "beside the PATH, so that Backplane's own ops are unknown; give --import "
                "PREFIX/share/backplane/ops.yaml\n";
  }
  for (const std::string& path : imports) files.push_back(read_registry(path, true, diagnostics));
  check_base(options, files, diagnostics);
  const CompiledRegistry registry = check(std::move(files), diagnostics);
  errors << diagnostics.render_warnings();
  if (!diagnostics.empty()) {
    errors << diagnostics.render();
    return 1;
  }
  if (options.list)
    for (const CompiledOp& op : registry.ops) out << op.entry->ns << "::" << op.entry->signature.text.value << '\n';
  if (!options.explain.empty() && !explain(registry, options.explain, out, errors)) return 1;
  if (options.check || options.list || !options.explain.empty()) return 0;
  return emit_all(options, registry, out, errors);
}

}  // namespace backplane::codegen
