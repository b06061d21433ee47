// A minimal host for a plugin: it keeps registrations and lends scratch memory.
//
// Opens the plugin as the real one does, through bp_plugin_query alone. One FakeHost at a time; errors are per thread.
#pragma once

#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "backplane/abi/plugin.h"

inline thread_local std::string fake_error;

class FakeHost {
 public:
  explicit FakeHost(const char* path) {
    library_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw std::runtime_error(dlerror());
    const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(library_, BP_PLUGIN_QUERY_SYMBOL));
    plugin_.header.struct_size = sizeof(plugin_);
    if (!query || query(BP_ABI_MAJOR, BP_ABI_MINOR, &plugin_) != BP_OK) throw std::runtime_error("query failed");

    table_.header = BP_HEADER(bp_host);
    table_.abi_major = BP_ABI_MAJOR;
    table_.abi_minor = BP_ABI_MINOR;
    table_.set_error = [](bp_status, const char* message) { fake_error = message; };
    table_.get_error = []() -> const char* { return fake_error.c_str(); };
    table_.register_backend = [](bp_plugin_record* record, const bp_backend_def* def) -> bp_status {
      self(record).backends_[def->name] = *def;
      return BP_OK;
    };
    table_.register_kernel = [](bp_plugin_record* record, const bp_kernel_def* def) -> bp_status {
      self(record).kernels_[{def->backend, def->op}] = *def;
      return BP_OK;
    };
    table_.register_op = [](bp_plugin_record*, const bp_op_def*) -> bp_status { return BP_OK; };
    if (plugin_.register_all(plugin_.context, &table_, reinterpret_cast<bp_plugin_record*>(this)) != BP_OK)
      throw std::runtime_error(fake_error);
  }
  ~FakeHost() {
    stop();
    dlclose(library_);
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  void stop() {
    if (plugin_.stop) plugin_.stop(plugin_.context);
    plugin_.stop = nullptr;
  }
  const bp_host* table() const { return &table_; }
  const bp_plugin& plugin() const { return plugin_; }
  const bp_backend_def& backend(const std::string& name) const { return backends_.at(name); }
  const auto& kernels() const { return kernels_; }  // by backend and op
  const bp_kernel_def& kernel(const std::string& backend, const std::string& op) const {
    return kernels_.at({backend, op});
  }

 private:
  static FakeHost& self(bp_plugin_record* record) { return *reinterpret_cast<FakeHost*>(record); }

  void* library_ = nullptr;
  bp_plugin plugin_{};
  bp_host table_{};
  std::map<std::string, bp_backend_def> backends_;
  std::map<std::pair<std::string, std::string>, bp_kernel_def> kernels_;
};
