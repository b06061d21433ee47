// The manifest of a plugin: NAME.backplane.json, next to the shared object that it describes.
//
// It is read instead of the file, so that a search does not open plugins. docs/reference/manifest.md is its
// reference. Pure functions of the file; they throw Error(BP_ERROR_VALUE) with the manifest's path, the value found and
// the value expected.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace backplane::loader {

inline constexpr const char* kManifestSuffix = ".backplane.json";

struct Manifest {
  std::string path;  // of the manifest
  std::string name;  // of the plugin
  std::string file;  // the shared object: a full path
  uint32_t contract_major = 0;
  uint32_t contract_minor = 0;  // the oldest host minor that it can run on
  std::vector<std::string> backends;
  std::vector<std::string> host_backends;  // those of `backends` whose memory the host reads and writes directly
  std::vector<std::string> ops;
  std::vector<std::string> kernels_for;   // other plugins' backends
  std::vector<std::string> cpu_features;  // host_traits.cpp lists the names
  std::string sanitizer;                  // as the compiler's option takes it: "", "address,undefined"
};

Manifest read_manifest(const std::string& path);

// The manifests of a folder, by name. Throws where the folder cannot be read.
std::vector<std::string> manifests_in(const std::string& folder);

// Why this host cannot use the plugin, or "": contract version, processor, sanitizer. Does not touch its file.
std::string why_unusable(const Manifest& manifest);

}  // namespace backplane::loader
