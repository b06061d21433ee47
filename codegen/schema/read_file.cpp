// Registry files as a whole: namespace, ops, and the files that they include. See reader.hpp.
//
// An included file lies in the folder of the file that includes it, or below. So a registry is one folder, which is
// installed or handed on as it is, and nothing that its author wrote makes codegen read elsewhere.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "schema/identifiers.hpp"
#include "schema/padded.hpp"
#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

namespace fs = std::filesystem;

// False where the file cannot be read; more than kMaxFileBytes are not, and are refused where the text is parsed. The
// text grows with the file: a buffer of the largest size for each include would cost more than reading the registry.
bool read_bytes(const std::string& path, std::string& text) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return false;
  char piece[1 << 16];
  while (text.size() <= kMaxFileBytes && (stream.read(piece, sizeof piece), stream.gcount() > 0))
    text.append(piece, static_cast<size_t>(stream.gcount()));
  return !stream.bad();
}

fs::path folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

// `real` is canonical.
bool lies_below(const fs::path& real, const fs::path& folder) {
  std::error_code failure;
  const fs::path base = fs::canonical(folder, failure);
  return !failure && *real.lexically_relative(base).begin() != "..";
}

class FileReader {
 public:
  FileReader(RegistryFile& file, Diagnostics& diagnostics) : file_(file), reader_(diagnostics) {}

  void read(std::string path, std::string text) {
    std::error_code none;
    const fs::path real = fs::weakly_canonical(path, none);
    const std::string name = fs::path(path).filename().string();
    add(name, std::move(path), real, std::move(text), nullptr);
  }

 private:
  void add(std::string name, std::string path, const fs::path& real, std::string text, const YamlNode* included_at) {
    file_.documents.push_back(std::make_unique<Document>());
    Document& document = *file_.documents.back();
    document.name = std::move(name);
    document.source = std::make_unique<Source>(std::move(path), std::move(text));
    known_[real] = included_at;
    open_.push_back(real);
    if (const size_t bad = first_hidden(document.source->text()); bad != std::string::npos)
      reader_.diagnostics().error(
          document.source->location(bad),
          "here is a byte that is not UTF-8, or a character that does not show; save the file as "
          "UTF-8 and remove it");
    else
      document.tree = parse_yaml(*document.source, reader_.diagnostics());
    if (document.tree) read_keys(document, included_at == nullptr);
    open_.pop_back();
  }

  void read_keys(const Document& document, bool first) {
    const YamlNode& root = *document.tree->root;
    if (!reader_.expect_map(root, "the file")) return;
    for (const auto& [key, value] : root.entries) {
      const std::string& word = key->text.value;
      if (word == "namespace" && !first)
        reader_.error(*key, "an included file has the namespace of the file that includes it; remove this line");
      else if (word != "namespace" && word != "include" && word != "args" && word != "tables" && word != "define" &&
               word != "rewrites" && word != "ops")
        reader_.error(*key, "unknown key '" + word +
                                "'; a registry file has 'namespace', 'include', 'args', 'tables', 'define', "
                                "'rewrites' and 'ops'");
    }
    if (first) read_namespace(root);
    const YamlNode* include = root.find("include");
    if (include) read_includes(*include, document);
    if (const YamlNode* args = root.find("args")) read_arguments(reader_, *args, file_.shared);
    if (const YamlNode* tables = root.find("tables")) read_tables(reader_, *tables, file_.shared);
    if (const YamlNode* define = root.find("define")) read_definitions(reader_, *define, file_.shared);
    if (const YamlNode* rewrites = root.find("rewrites")) read_rewrites(reader_, *rewrites, file_);
    const YamlNode* ops = root.find("ops");
    if (ops && ops->is(YamlNode::Kind::kList))
      read_ops(*ops, document);
    else if (ops ||
             !(include || root.find("args") || root.find("tables") || root.find("define") || root.find("rewrites")))
      reader_.error(ops ? *ops : root, "the file needs 'ops', a list of entries");
  }

  void read_namespace(const YamlNode& root) {
    const YamlNode* ns = root.find("namespace");
    if (!ns || !ns->is(YamlNode::Kind::kScalar))
      reader_.error(ns ? *ns : root, "the file needs a namespace; write `namespace: NAME` with a C identifier");
    else if (const std::string why = why_no_namespace(ns->text.value); !why.empty())
      reader_.error(*ns,
                    "the file needs a namespace; '" + ns->text.value + "' " + why + ": choose another C identifier");
    else
      file_.ns = ns->text.value;
  }

  void read_ops(const YamlNode& ops, const Document& document) {
    for (const YamlNode* node : ops.items) {
      if (!reader_.expect_map(*node, "an entry")) continue;
      Entry& entry = file_.entries.emplace_back();
      entry.ns = file_.ns;
      entry.file = document.name;
      entry.shared = &file_.shared;
      entry.imported = file_.imported;
      read_entry(reader_, *node, entry);
      if (!entry.padded.empty()) add_exact_form(entry, file_.entries.emplace_back(), reader_.diagnostics());
    }
  }

  void read_includes(const YamlNode& include, const Document& document) {
    if (!include.is(YamlNode::Kind::kList)) {
      reader_.error(include, "'include' must be a list of files, e.g. [ops/linalg.yaml]");
      return;
    }
    for (const YamlNode* item : include.items)
      if (reader_.expect_scalar(*item, "include")) read_include(*item, document);
  }

  // The letters are few so that a build system can find the names without knowing YAML (cmake/BackplaneCodegen.cmake).
  static bool is_inner_path(std::string_view path) {
    const auto ends = [&](std::string_view end) {
      return path.size() > end.size() && path.substr(path.size() - end.size()) == end;
    };
    const bool letters = std::all_of(path.begin(), path.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
             c == '.' || c == '/';
    });
    if (!letters || (!ends(".yaml") && !ends(".yml"))) return false;
    const fs::path parts(path);
    return !parts.is_absolute() && std::count(parts.begin(), parts.end(), "..") == 0;
  }

  void read_include(const YamlNode& item, const Document& from) {
    const std::string& word = item.text.value;
    if (!is_inner_path(word)) {
      reader_.error(item, "'" + word +
                              "' is not a path of an included file; write one below this file's folder, of letters, "
                              "digits, _, -, . and /, that ends in .yaml");
      return;
    }
    const fs::path folder = folder_of(from.source->path());
    std::error_code failure;
    const fs::path real = fs::canonical(folder / word, failure);
    // A sandbox (Bazel's) holds a link for every input: such a file's own folder is the one that its link leads to.
    if (!failure && !lies_below(real, folder) &&
        !lies_below(real, fs::weakly_canonical(from.source->path(), failure).parent_path())) {
      reader_.error(item, "'" + word + "' is a link that leads out of this file's folder; put the file itself there");
      return;
    }
    std::string text;
    if (failure || !fs::is_regular_file(real, failure) || !read_bytes(real.string(), text)) {
      reader_.error(item, "cannot read '" + (folder / word).string() + "'; give the path of a registry file, from " +
                              "the folder of this one");
      return;
    }
    if (refuse_repetition(item, real)) return;
    if (open_.size() >= kMaxDepth) {
      reader_.error(item,
                    "files include each other more than " + std::to_string(kMaxDepth) + " deep; list them in one");
      return;
    }
    const std::string name = (fs::path(from.name).parent_path() / word).lexically_normal().generic_string();
    add(name, (folder / word).string(), real, std::move(text), &item);
  }

  bool refuse_repetition(const YamlNode& item, const fs::path& real) {
    const auto known = known_.find(real);
    if (known == known_.end()) return false;
    const std::string& word = item.text.value;
    if (std::count(open_.begin(), open_.end(), real)) {
      std::string chain;
      for (auto one = std::find(open_.begin(), open_.end(), real); one != open_.end(); ++one)
        chain += one->filename().string() + " -> ";
      reader_.error(item,
                    "files include each other: " + chain + real.filename().string() + "; remove one of the lines");
    } else {
      const Location first = known->second->location();
      reader_.error(item, "'" + word + "' is included twice, first at " + std::string(first.file) + ":" +
                              std::to_string(first.line) + "; keep one");
    }
    return true;
  }

  RegistryFile& file_;
  ValueReader reader_;
  std::vector<fs::path> open_;                 // those that are being read, each included by the one before
  std::map<fs::path, const YamlNode*> known_;  // where each was included; nullptr: the first
};

}  // namespace

std::unique_ptr<RegistryFile> read_registry_text(std::string path, std::string text, bool imported,
                                                 Diagnostics& diagnostics) {
  auto file = std::make_unique<RegistryFile>();
  file->imported = imported;
  FileReader(*file, diagnostics).read(std::move(path), std::move(text));
  return file;
}

std::unique_ptr<RegistryFile> read_registry(const std::string& path, bool imported, Diagnostics& diagnostics) {
  std::string text;
  if (read_bytes(path, text)) return read_registry_text(path, std::move(text), imported, diagnostics);
  auto file = std::make_unique<RegistryFile>();
  file->documents.push_back(std::make_unique<Document>());
  file->documents[0]->source = std::make_unique<Source>(path, "");
  diagnostics.error({file->documents[0]->source->path(), 1, 1},
                    "cannot read this file; give the path of a registry file");
  return file;
}

}  // namespace backplane::codegen
