// What the loader's tests share: the tests' plugins by name, temporary folders of copies, errors as values, and calls
// on a device.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "backplane/device.hpp"
#include "backplane/op.hpp"
#include "backplane/plugins.hpp"

namespace backplane::loader_test {

namespace fs = std::filesystem;

inline std::string plugin_file(const std::string& name) { return std::string(LOADER_PLUGINS) + "/" + name + ".so"; }

// The error of an action; code BP_OK: it succeeded.
struct Failure {
  bp_status code = BP_OK;
  std::string text;
};
template <class Action>
Failure failure_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

class Folder {
 public:
  Folder() {
    umask(022);  // what a group may write is not trusted
    std::string name = (fs::temp_directory_path() / "backplane_loader_XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  Folder(const Folder&) = delete;

  std::string path() const { return path_.string(); }
  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return (path_ / name).string();
  }
  // A copy of a tests' plugin, with a manifest that claims `words` ("\"ops\": [\"a::b\"]").
  std::string plant(const std::string& plugin, const std::string& name, const std::string& words = "") const {
    // Never over a file that may be mapped: that would take its pages away.
    fs::copy_file(plugin_file(plugin), path_ / (plugin + ".so"), fs::copy_options::skip_existing);
    write(plugin + ".backplane.json", "{\"name\": \"" + name + "\", \"file\": \"" + plugin +
                                          ".so\", \"contract\": {\"major\": 0, \"minor\": 1}" +
                                          (words.empty() ? "" : ", " + words) + "}");
    return (path_ / (plugin + ".so")).string();
  }

 private:
  fs::path path_;
};

// Loads a plugin for the length of a scope.
class Loaded {
 public:
  explicit Loaded(const std::string& plugin) : name_(load_plugin(plugin_file(plugin)).name) {}
  ~Loaded() {
    if (state_of(name_) == "loaded") unload_plugin(name_);
  }
  Loaded(const Loaded&) = delete;

  static std::string state_of(const std::string& name) {
    for (const PluginInfo& plugin : plugins())
      if (plugin.name == name) return plugin.state;
    return "";
  }

 private:
  std::string name_;
};

inline bool has_op(const std::string& name) {
  const OpHandle op = find_op(name);
  if (op == BP_NO_OP) return false;
  for (const OpHandle other : all_ops())
    if (other == op) return true;
  return false;
}

inline Tensor tensor_on(const std::string& device, const std::vector<float>& values) {
  const int64_t size = static_cast<int64_t>(values.size());
  return from_host(values.data(), Shape(&size, 1), {}, BP_FLOAT32, parse_device(device));
}

inline std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.shape()[0]));
  to_host(tensor, values.data());
  return values;
}

inline std::vector<float> call_on(const std::string& device, const std::string& op, const std::vector<float>& values) {
  return values_of(call(find_op(op), {value(tensor_on(device, values))}));
}

}  // namespace backplane::loader_test
