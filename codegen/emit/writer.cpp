// See writer.hpp.
#include "emit/writer.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace backplane::codegen {
namespace {

namespace fs = std::filesystem;

bool has_content(const fs::path& path, const std::string& content) {
  std::error_code error;
  if (fs::file_size(path, error) != content.size() || error) return false;
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {}) == content;
}

struct Pending {
  fs::path temporary;
  fs::path final;
};

void discard(const std::vector<Pending>& pending) {
  std::error_code ignored;
  for (const Pending& file : pending) fs::remove(file.temporary, ignored);
}

}  // namespace

std::string OutputSet::commit(const std::string& directory, int& written) const {
  written = 0;
  std::vector<Pending> pending;
  for (const auto& [name, content] : files_) {
    const fs::path path = fs::path(directory) / name;
    if (has_content(path, content)) continue;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    fs::path temporary = path;
    temporary += ".tmp";
    pending.push_back({temporary, path});
    std::ofstream stream(temporary, std::ios::binary | std::ios::trunc);
    stream << content;
    stream.close();
    if (!stream) {
      discard(pending);
      return "cannot write " + temporary.string();
    }
  }
  for (const Pending& file : pending) {
    std::error_code error;
    fs::rename(file.temporary, file.final, error);
    if (error) {
      discard(pending);
      return "cannot replace " + file.final.string() + ": " + error.message();
    }
    ++written;
  }
  return "";
}

}  // namespace backplane::codegen
