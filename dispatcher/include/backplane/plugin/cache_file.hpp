// Files in which a plugin keeps what was expensive to make: in the folder that an environment variable names, or where
// the user's caches are. A file that cannot be read or written costs time and is no error.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

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

// Beside the file and then over it, so that no other process reads half of one.
inline void write_cache_file(const std::filesystem::path& file, std::string_view bytes) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  const std::filesystem::path beside = file.string() + "." + std::to_string(getpid());
  std::ofstream out(beside, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out.good()) std::filesystem::rename(beside, file, failed);
  std::filesystem::remove(beside, failed);
}

}  // namespace backplane::plugin
