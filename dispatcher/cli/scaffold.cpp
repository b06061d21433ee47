// `backplane new`: see scaffold.hpp.
#include "cli/scaffold.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "backplane/error.hpp"
#include "backplane/plugins.hpp"

namespace backplane::cli {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::pair<std::string, std::string>>;  // what stands in a template, what is to stand there

constexpr const char *kDescription = "template.json", *kWheel = "wheel";
// A name becomes a C++ identifier, a CMake target and a file.
constexpr size_t kLongestName = 60;

struct Template {
  fs::path folder;
  std::string kind, language;
  bool kernel;                            // of an op: it comes with one, in that language; else it has no language
  std::string name_word, namespace_word;  // the latter is empty where the template has none
};

fs::path templates_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path().parent_path() / "share" / "backplane" / "templates";
  BP_CHECK(fs::is_directory(folder, error), VALUE, "new: found no ", folder.string(),
           ". Fix: install the SDK's component sdk");
  return folder;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  BP_CHECK(file.good(), VALUE, "new: cannot read ", path.string());
  return text.str();
}

std::vector<Template> templates() {
  std::vector<Template> all;
  for (const fs::directory_entry& entry : fs::directory_iterator(templates_folder())) {
    const fs::path description = entry.path() / kDescription;
    if (!fs::exists(description)) continue;
    const auto json = nlohmann::json::parse(text_of(description));
    all.push_back({entry.path(), json.at("kind"), json.at("language"), json.value("kernel", false), json.at("name"),
                   json.value("namespace", "")});
  }
  std::sort(all.begin(), all.end(), [](const Template& a, const Template& b) { return a.language < b.language; });
  return all;
}

Template template_for(const std::string& kind, const std::string& stated, bool kernel) {
  BP_CHECK(kernel || kind != "op" || stated.empty(), VALUE, "new op: found --language ", stated,
           ", but an op without a kernel has no language. Fix: add --kernel, or leave --language out");
  BP_CHECK(!kernel || kind == "op", VALUE, "new ", kind, ": --kernel applies only to an op. Fix: leave it out");
  const std::string language = stated.empty() && (kernel || kind != "op") ? "c++" : stated;
  std::set<std::string> kinds;
  std::string offered;
  for (const Template& one : templates()) {
    if (one.kind == kWheel) continue;  // files beside those of an op
    kinds.insert(one.kind);
    if (one.kind != kind || one.kernel != kernel) continue;
    if (one.language == language) return one;
    offered += (offered.empty() ? "" : ", ") + one.language;
  }
  BP_CHECK(kinds.count(kind) != 0, VALUE, "new: found \"", kind, "\", expected one of ",
           fmt::format("{}", fmt::join(kinds, ", ")));
  ::backplane::detail::fail(BP_ERROR_VALUE, "new ", kind, ": found no template in the language \"", language,
                            "\". Fix: --language with one of ", offered);
}

// Those of C and C++ that are names otherwise, and what CMake makes targets of by itself.
bool is_reserved(const std::string& name) {
  static const std::set<std::string> kReserved = {"alignas",     "alignof",
                                                  "and",         "asm",
                                                  "auto",        "bitand",
                                                  "bitor",       "bool",
                                                  "break",       "case",
                                                  "catch",       "char",
                                                  "class",       "co_await",
                                                  "co_return",   "co_yield",
                                                  "compl",       "concept",
                                                  "const",       "const_cast",
                                                  "consteval",   "constexpr",
                                                  "constinit",   "continue",
                                                  "decltype",    "default",
                                                  "delete",      "do",
                                                  "double",      "dynamic_cast",
                                                  "else",        "enum",
                                                  "explicit",    "export",
                                                  "extern",      "false",
                                                  "float",       "for",
                                                  "friend",      "goto",
                                                  "if",          "inline",
                                                  "int",         "long",
                                                  "main",        "mutable",
                                                  "namespace",   "new",
                                                  "noexcept",    "not",
                                                  "nullptr",     "operator",
                                                  "or",          "private",
                                                  "protected",   "public",
                                                  "register",    "reinterpret_cast",
                                                  "requires",    "restrict",
                                                  "return",      "short",
                                                  "signed",      "sizeof",
                                                  "static",      "static_assert",
                                                  "static_cast", "struct",
                                                  "switch",      "template",
                                                  "this",        "thread_local",
                                                  "throw",       "true",
                                                  "try",         "typedef",
                                                  "typeid",      "typename",
                                                  "union",       "unsigned",
                                                  "using",       "virtual",
                                                  "void",        "volatile",
                                                  "while",       "xor",
                                                  "all",         "clean",
                                                  "help",        "install",
                                                  "package",     "test",
                                                  "bp",          "backplane",
                                                  "std"};
  return kReserved.count(name) != 0;
}

void check_name(const std::string& what, const std::string& name) {
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool fits =
      !name.empty() && name.size() <= kLongestName && is_letter(name[0]) && name.back() != '_' &&
      name.find("__") == std::string::npos &&
      std::all_of(name.begin(), name.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; });
  BP_CHECK(fits, VALUE, "new: found the ", what, " \"", name,
           "\", expected a lower-case letter, then letters, digits and single _, at most ", kLongestName);
  BP_CHECK(!is_reserved(name), VALUE, "new: the ", what, " \"", name,
           "\" is taken by C++, CMake or backplane. Fix: choose another");
  for (const PluginInfo& plugin : backplane::plugins())
    BP_CHECK(plugin.name != name && std::count(plugin.backends.begin(), plugin.backends.end(), name) == 0, VALUE,
             "new: the ", what, " \"", name, "\" is already used by ", plugin.path, ". Fix: choose another");
}

Words words_of(const Template& made_of, const std::string& name) {
  const size_t colons = name.find("::");
  const std::string last = colons == std::string::npos ? name : name.substr(colons + 2);
  check_name("name", last);
  Words words{{made_of.name_word, last}};
  if (made_of.namespace_word.empty()) {
    BP_CHECK(colons == std::string::npos, VALUE, "new: found \"", name, "\"; a ", made_of.kind,
             " does not have a namespace");
    return words;
  }
  const std::string space = colons == std::string::npos ? "my_" + last : name.substr(0, colons);
  check_name("namespace", space);
  const std::string entry = text_of(made_of.folder / "ops.yaml");
  const bool own = last == made_of.name_word || last == made_of.namespace_word;
  BP_CHECK(own || !std::regex_search(entry, std::regex("\\b" + last + "\\b")), VALUE, "new: the name \"", last,
           "\" has another meaning in the generated op. Fix: choose another, as in my_", last);
  BP_CHECK(space != last, VALUE, "new: the namespace and the op are both \"", last,
           "\". Fix: choose another namespace, as in my_", last, "::", last);
  words.emplace_back(made_of.namespace_word, space);
  return words;
}

// Is the word, in that place, part of another name? It is beside a hyphen, as in a package's, and in capitals behind
// an underscore, as in CL_TARGET_OPENCL_VERSION.
bool is_part(const std::string& text, size_t at, const std::string& word) {
  const char before = at == 0 ? ' ' : text[at - 1];
  const size_t end = at + word.size();
  return before == '-' || (end < text.size() && text[end] == '-') ||
         (before == '_' && std::isupper(static_cast<unsigned char>(word[0])) != 0);
}

// Every word at once, so that no new name is taken for another's word.
std::string renamed(const std::string& text, const Words& words) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const auto found = std::find_if(words.begin(), words.end(), [&](const auto& word) {
      return text.compare(at, word.first.size(), word.first) == 0 && !is_part(text, at, word.first);
    });
    if (found == words.end()) {
      made += text[at++];
      continue;
    }
    made += found->second;
    at += found->first.size();
  }
  return made;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// Words are renamed in capitals too, as CMake's options have them. Folders of a template may be links to those of
// another one: they are followed.
size_t write_project(const Template& made_of, const fs::path& target, Words words) {
  const size_t given = words.size();
  for (size_t i = 0; i < given; ++i) words.emplace_back(capitals(words[i].first), capitals(words[i].second));
  size_t files = 0;
  const auto options = fs::directory_options::follow_directory_symlink;
  for (auto it = fs::recursive_directory_iterator(made_of.folder, options); it != fs::end(it); ++it) {
    const std::string name = it->path().filename();
    if (it->is_directory() && (name == "build" || name == "__pycache__")) it.disable_recursion_pending();
    if (!it->is_regular_file() || name == kDescription) continue;
    const fs::path path = target / renamed(it->path().lexically_relative(made_of.folder).string(), words);
    fs::create_directories(path.parent_path());
    std::ofstream file(path, std::ios::binary);
    file << renamed(text_of(it->path()), words);
    file.close();
    BP_CHECK(file.good(), VALUE, "new: cannot write ", path.string());
    fs::permissions(path, fs::status(it->path()).permissions());
    ++files;
  }
  return files;
}

bool on_path(const char* program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
  return false;
}

// CMake's default generator needs make.
const char* generator_option() {
  return !std::getenv("CMAKE_GENERATOR") && !on_path("make") && on_path("ninja") ? " -G Ninja" : "";
}

}  // namespace

int scaffold(const std::string& kind, const std::string& name, const std::string& folder, const std::string& language,
             bool kernel, bool wheel) {
  BP_CHECK(!wheel || kind == "op", VALUE, "new ", kind, ": --wheel applies only to an op. Fix: leave it out");
  const Template made_of = template_for(kind, language, kernel);
  const Words words = words_of(made_of, name);
  std::error_code error;
  BP_CHECK(!fs::exists(folder, error) || (fs::is_directory(folder, error) && fs::is_empty(folder, error)), VALUE,
           "new: ", folder, " exists already. Fix: name a new folder");
  size_t files = write_project(made_of, folder, words);
  for (const Template& one : templates())
    if (wheel && one.kind == kWheel) files += write_project(one, folder, words);
  const fs::path tree = templates_folder().parent_path().parent_path().parent_path();
  const bool installed = fs::exists(tree / "include" / "backplane", error);
  const std::string prefix = installed ? tree : tree / "prefix";
  const std::string in = made_of.language.empty() ? "" : ", in " + made_of.language;
  fmt::print("{}: {} files of the {} {}{}. Next:\n", folder, files, kind, name, in);
  if (!installed) fmt::print("  cmake --install {} --prefix {}  # once all is built\n", tree.string(), prefix);
  fmt::print("  cmake -S {0} -B {0}/build{1} -DCMAKE_PREFIX_PATH={2}\n", folder, generator_option(), prefix);
  fmt::print("  cmake --build {0}/build --parallel && ctest --test-dir {0}/build --output-on-failure\n", folder);
  // pip takes a word without a slash for the name of a package on an index.
  const std::string path = folder.find('/') == std::string::npos ? "./" + folder : folder;
  if (wheel) fmt::print("  BACKPLANE_PREFIX={} pip wheel --no-deps {}\n", prefix, path);
  if (kind == "op")
    fmt::print("For another op of this namespace, add an entry to {}/ops.yaml: a namespace belongs to one plugin\n",
               folder);
  return 0;
}

}  // namespace backplane::cli
