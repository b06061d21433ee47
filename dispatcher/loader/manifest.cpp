// Reads manifests: JSON with a fixed set of keys. Keys that this minor does not know are left alone, since a newer
// plugin may carry them; a known key of the wrong type is an error.
#include "loader/manifest.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backplane/abi/base.h"
#include "backplane/error.hpp"
#include "loader/host_traits.hpp"

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uintmax_t kMaxManifestBytes = 1 << 20;
constexpr int kMaxDepth = 32;  // of nested values: what walks over a value afterwards recurses

template <class... Parts>
[[noreturn]] void refuse(const std::string& path, const Parts&... parts) {
  detail::fail(BP_ERROR_VALUE, "manifest ", path, ": ", parts...);
}

// A value's text in ASCII, short enough for a message.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Names go into reports, and a file name into calls of the system, which end it at a NUL.
bool is_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::strchr("_-.:+", c);
  });
}
bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) { return (c >= 0 && c < ' ') || c == 127; });
}

Json parse(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) refuse(path, "cannot be read: ", error.message());
  if (size > kMaxManifestBytes) refuse(path, "has ", size, " bytes; a manifest has at most ", kMaxManifestBytes);
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, "cannot be opened for reading");
  const Json::parser_callback_t check_depth = [&](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxDepth) refuse(path, "nests values more than ", kMaxDepth, " deep");
    return true;
  };
  try {
    return Json::parse(in, check_depth);
  } catch (const Json::exception& failure) {
    const std::string_view what = failure.what();  // behind the library's own number in [ ]
    refuse(path, "is not JSON: ", what.substr(what.find("] ") + 2));
  }
}

class Reader {
 public:
  Reader(const std::string& path, const Json& root) : path_(path), root_(root) {}

  std::string required_text(const char* key) const {
    const std::string text = text_or_empty(key);
    if (text.empty()) refuse(path_, "\"", key, "\" is missing or empty; expected a string");
    return text;
  }
  std::string text_or_empty(const char* key) const {
    const auto found = root_.find(key);
    if (found == root_.end()) return "";
    if (!found->is_string()) refuse(path_, "\"", key, "\" is ", shown(*found), "; expected a string");
    if (has_control_characters(found->get_ref<const std::string&>()))
      refuse(path_, "\"", key, "\" is ", shown(*found), "; expected a string without control characters");
    return found->get<std::string>();
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> out;
    const auto found = root_.find(key);
    if (found == root_.end()) return out;
    if (!found->is_array()) refuse(path_, "\"", key, "\" is ", shown(*found), "; expected a list of strings");
    for (const Json& item : *found) {
      if (!item.is_string() || item.get_ref<const std::string&>().empty())
        refuse(path_, "\"", key, "\" holds ", shown(item), "; expected strings that are not empty");
      if (!is_name(item.get_ref<const std::string&>()))
        refuse(path_, "\"", key, "\" holds ", shown(item), "; expected names of letters, digits and _ - . : +");
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  uint32_t version_part(const char* key) const {
    const auto contract = root_.find("contract");
    if (contract == root_.end() || !contract->is_object())
      refuse(path_, "\"contract\" is missing; expected {\"major\": ", BP_ABI_MAJOR, ", \"minor\": ", BP_ABI_MINOR, "}");
    const auto found = contract->find(key);
    if (found == contract->end() || !found->is_number_unsigned() || found->get<uint64_t>() > UINT32_MAX)
      refuse(path_, "\"contract\" has no \"", key, "\" that is a whole number of at least 0");
    return found->get<uint32_t>();
  }

 private:
  const std::string& path_;
  const Json& root_;
};

}  // namespace

Manifest read_manifest(const std::string& path) {
  const Json root = parse(path);
  if (!root.is_object()) refuse(path, "is ", shown(root), "; expected an object: {\"name\": ..., \"file\": ...}");
  const Reader reader(path, root);
  Manifest manifest;
  manifest.path = path;
  manifest.name = reader.required_text("name");
  if (!is_name(manifest.name))
    refuse(path, "\"name\" is ", shown(root["name"]), "; expected letters, digits or any of _ - . : +");
  const std::string file = reader.required_text("file");
  if (fs::path(file).has_parent_path())
    refuse(path, "\"file\" is \"", file, "\"; expected a file name without folders, of a file next to the manifest");
  manifest.file = (fs::path(path).parent_path() / file).string();
  manifest.contract_major = reader.version_part("major");
  manifest.contract_minor = reader.version_part("minor");
  manifest.backends = reader.texts("backends");
  manifest.host_backends = reader.texts("host_backends");
  manifest.ops = reader.texts("ops");
  manifest.kernels_for = reader.texts("kernels_for");
  manifest.cpu_features = reader.texts("cpu_features");
  manifest.sanitizer = reader.text_or_empty("sanitizer");
  return manifest;
}

std::vector<std::string> manifests_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().filename().string().ends_with(kManifestSuffix)) found.push_back(entry->path().string());
  if (error) detail::fail(BP_ERROR_VALUE, "plugin folder ", folder, ": cannot be read: ", error.message());
  std::sort(found.begin(), found.end());
  return found;
}

std::string why_unusable(const Manifest& manifest) {
  if (std::string why = why_version_unusable(manifest.contract_major, manifest.contract_minor); !why.empty())
    return why;
  for (const std::string& feature : manifest.cpu_features)
    if (std::string why = why_cpu_feature_missing(feature); !why.empty()) return why;
  return why_sanitizer_unusable(manifest.sanitizer);
}

}  // namespace backplane::loader
