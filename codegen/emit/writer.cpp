// See writer.hpp.
#include "emit/writer.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "backplane/plugin/whole_file.hpp"

namespace backplane::codegen {
namespace {

namespace fs = std::filesystem;

bool has_content(const fs::path& path, const std::string& content) {
  std::error_code error;
  if (fs::file_size(path, error) != content.size() || error) return false;
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {}) == content;
}

}  // namespace

std::string OutputSet::commit(const std::string& directory, int& written) const {
  written = 0;
  std::vector<std::pair<fs::path, plugin::WholeFile>> pending;
  fs::path path;
  try {
    for (const auto& [name, content] : files_) {
      path = fs::path(directory) / name;
      if (has_content(path, content)) continue;
      std::error_code error;
      fs::create_directories(path.parent_path(), error);
      plugin::WholeFile& file = pending.emplace_back(path, plugin::WholeFile(path)).second;
      file.write(content);
      file.finish();  // one open file at a time
    }
    for (auto& [final_path, file] : pending) {
      path = final_path;
      file.commit();
      ++written;
    }
  } catch (const plugin::FileError& failure) {
    return path.string() + ": " + failure.what();
  }
  return "";
}

std::string write_anew(const std::string& path, const std::string& content) {
  try {
    plugin::WholeFile file(path);
    file.write(content);
    file.commit();
  } catch (const plugin::FileError& failure) {
    return path + ": " + failure.what();
  }
  return "";
}

}  // namespace backplane::codegen
