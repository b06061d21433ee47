#include "graph/regions/kept_executables.hpp"

#include <string>

#include "backplane/log.hpp"
#include "backplane/plugin/cache_file.hpp"
#include "memory/process/epoch.hpp"
#include "record/host_table.hpp"

namespace backplane::core::graph {
namespace {

constexpr const char* kFolder = "BACKPLANE_EXECUTABLES";
constexpr size_t kLongestKey = 1 << 20;

bool can_be_kept(const bp_extension_compiler& compiler) {
  return BP_HAS(&compiler, bp_extension_compiler, deserialize) && compiler.cache_key && compiler.serialize &&
         compiler.deserialize;
}

// Empty: the compiler gives none.
std::string key_of(const Device& device, const bp_graph& region) {
  const BackendRecord& backend = *device.backend;
  std::string key(kLongestKey, '\0');
  const bp_status status = backend.extensions.compiler->cache_key(backend.def.context, &host_table, id_of(device),
                                                                  &region, key.data(), key.size());
  key.resize(status == BP_OK ? key.find('\0') : 0);
  return key;
}

std::string written_down(const BackendRecord& backend, const bp_executable* executable) {
  const auto serialize = [&](std::string& bytes) {
    uint64_t size = bytes.size();
    if (backend.extensions.compiler->serialize(backend.def.context, executable, bytes.data(), &size) != BP_OK) size = 0;
    return size;
  };
  std::string bytes;
  bytes.resize(serialize(bytes));
  return serialize(bytes) == bytes.size() ? bytes : std::string();
}

}  // namespace

bp_status find_or_compile(const Device& device, const bp_graph& region, bp_executable_info* info,
                          bp_executable** executable) {
  const BackendRecord& backend = *device.backend;
  const bp_extension_compiler& compiler = *backend.extensions.compiler;
  const std::filesystem::path folder = can_be_kept(compiler) ? plugin::cache_folder(kFolder) : std::filesystem::path();
  const std::string key = folder.empty() ? std::string() : key_of(device, region), prefix = backend.name + "-";
  if (!key.empty()) {
    const std::string bytes = plugin::find_kept(folder, prefix, key);
    if (!bytes.empty() && compiler.deserialize(backend.def.context, &host_table, id_of(device), bytes.data(),
                                               bytes.size(), info, executable) == BP_OK) {
      if (logs(LogTopic::kFuse))
        log_line(LogTopic::kFuse, "a region on " + name_of(device) + ": read from " + folder.string());
      return BP_OK;
    }
    *info = {};
    info->header = BP_HEADER(bp_executable_info);
    *executable = nullptr;
  }
  take_error();
  const bp_status status = compiler.compile(backend.def.context, &host_table, id_of(device), &region, info, executable);
  if (logs(LogTopic::kFuse))
    log_line(LogTopic::kFuse,
             "a region on " + name_of(device) + (status == BP_OK ? ": compiled" : ": the compiler failed"));
  if (status == BP_OK && *executable && !key.empty()) {
    plugin::keep(folder, prefix, key, written_down(backend, *executable));
    take_error();
  }
  return status;
}

}  // namespace backplane::core::graph
