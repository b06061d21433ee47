// Writes the outputs of a run: all of them or none, and no file that would not change.
//
// Outputs are collected in memory; commit() writes each that differs as a whole (backplane/plugin/whole_file.hpp), and
// they take their names when all are written.
#pragma once

#include <map>
#include <string>

namespace backplane::codegen {

class OutputSet {
 public:
  // `path` is relative to the output directory and uses '/'.
  void add(std::string path, std::string content) { files_[std::move(path)] = std::move(content); }
  const std::map<std::string, std::string>& files() const { return files_; }
  // Returns "" or what went wrong: before the first rename nothing has changed. `written` counts replaced files.
  std::string commit(const std::string& directory, int& written) const;

 private:
  std::map<std::string, std::string> files_;
};

// One file, new though its content may be the same: a stamp, whose time make compares with the inputs'. As commit().
std::string write_anew(const std::string& path, const std::string& content);

}  // namespace backplane::codegen
