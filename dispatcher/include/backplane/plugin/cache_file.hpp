// Files in which a plugin caches results that are expensive to compute, in the folder that an environment variable
// names, or in the user's cache folder. A file that cannot be read or written costs time and is not an error.
//
// `keep` and `find_kept` use a key, a text of everything that determines the bytes. The file's name has the key's hash.
// The file repeats the key and the hash of the bytes, so that bytes of another key and damaged bytes are detected.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "backplane/plugin/whole_file.hpp"

namespace backplane::plugin {

// Empty: nothing is kept, since the variable is empty or the user has no home.
inline std::filesystem::path cache_folder(const char* variable) {
  if (const char* named = std::getenv(variable)) return named;
  if (const char* caches = std::getenv("XDG_CACHE_HOME"); caches && *caches)
    return std::filesystem::path(caches) / "backplane";
  const char* home = std::getenv("HOME");
  return home && *home ? std::filesystem::path(home) / ".cache" / "backplane" : std::filesystem::path();
}

// Empty where there is no such file.
inline std::string read_cache_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return in ? std::string(std::istreambuf_iterator<char>(in), {}) : std::string();
}

inline void write_cache_file(const std::filesystem::path& file, std::string_view bytes) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  try {
    WholeFile out(file);
    out.write(bytes);
    out.commit();
  } catch (const FileError&) {
    return;
  }
}

// FNV-1a (Fowler, Noll and Vo), as sixteen digits.
inline std::string digits_of_hash(std::string_view bytes, uint64_t hash = 0xcbf29ce484222325) {
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[hash >> shift & 15];
  return text;
}

// Of a file, or of whatever else needs one for each key. Two hashes, as nothing but the name keeps two keys apart.
inline std::string name_of_key(std::string_view key) { return digits_of_hash(key) + digits_of_hash(key, ~uint64_t{0}); }

// What a file holds before the bytes.
inline std::string head_of_kept(std::string_view key, std::string_view bytes) {
  return "backplane keeps " + digits_of_hash(bytes) + ", made of\n" + std::string(key) + "\n";
}

// Empty if there is no entry under the key, or the entry is damaged.
inline std::string find_kept(const std::filesystem::path& folder, const std::string& prefix, std::string_view key) {
  if (folder.empty()) return {};
  const std::string found = read_cache_file(folder / (prefix + name_of_key(key)));
  const size_t head = head_of_kept(key, "").size();
  if (found.size() <= head) return {};
  const std::string bytes = found.substr(head);
  return found.compare(0, head, head_of_kept(key, bytes)) == 0 ? bytes : std::string();
}

inline void keep(const std::filesystem::path& folder, const std::string& prefix, std::string_view key,
                 std::string_view bytes) {
  if (!folder.empty()) write_cache_file(folder / (prefix + name_of_key(key)), head_of_kept(key, bytes).append(bytes));
}

}  // namespace backplane::plugin
