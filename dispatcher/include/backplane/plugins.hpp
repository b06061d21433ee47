// Finding, loading and unloading plugins. Functions throw Error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

struct PluginInfo {
  std::string name;
  std::string version;
  std::string path;
  std::string state;  // "found", "loaded", "parked", "closed", "unloading", "refused"
  std::string why;    // of a refusal
  std::vector<std::string> backends;
  std::vector<std::string> ops;
  uint64_t leases = 0;
  std::string manifest;  // its path; "" where the plugin was loaded without one
  // Backends ("acme") and functionality keys ("key:profile") that its kernel rows are for and that no plugin, loaded or
  // found, brings: until one does, those rows are never called.
  std::vector<std::string> waits_for;
};

// Loads the file now and registers all of its contents, or nothing.
BACKPLANE_API PluginInfo load_plugin(const std::string& path);
// Throws BP_ERROR_BUSY while leases are held (the message lists them), and from inside a call of the plugin.
BACKPLANE_API void unload_plugin(std::string_view name);
// The plugins found by manifest and the loaded plugins.
BACKPLANE_API std::vector<PluginInfo> plugins();
// Reads the manifests (*.backplane.json) of a folder; the files open when a device or op of theirs is first used.
BACKPLANE_API void add_plugin_path(const std::string& folder);
// As add_plugin_path, but a folder that cannot be searched is not an error: plugin_folders() lists it with the reason.
BACKPLANE_API void offer_plugin_path(const std::string& folder);
// For the end of a program whose other threads may still be computing, or starting a plugin or a device: waits for
// calls that run, up to two seconds, since static objects of libraries that they use end with the program; and for
// libraries that are being opened, which can hang it. From then on the calling thread alone starts any.
BACKPLANE_API void end_loading();
// For a thread that will not return from the calls that it is in: nobody waits for their end.
BACKPLANE_API void abandon_calls() noexcept;
// The folders that were read so far, in order, those that could not be read with the reason.
struct PluginFolder {
  std::string path;
  std::string why;  // it could not be read; else ""
};
BACKPLANE_API std::vector<PluginFolder> plugin_folders();

// What would keep a file from loading here (errors), from serving others well (warnings), or should be known of it
// (notes). Unless it is loaded already, opens the file, registers it and takes that back.
enum class LintLevel : uint8_t { kNote, kWarning, kError };
struct LintFinding {
  LintLevel level;
  std::string text;  // what was found, as a sentence about the file
  std::string why;   // it matters; "" where the text says so
  std::string fix;
};
BACKPLANE_API std::vector<LintFinding> lint_plugin(const std::string& path);

}  // namespace backplane
