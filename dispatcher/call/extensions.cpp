// The host's extensions: groups of functions that plugins ask for by name. See backplane/abi/extensions.h.
#include "call/extensions.hpp"

#include <cstring>

#include "memory/process/thread_state.hpp"
#include "registry/plan.hpp"

namespace backplane::core {
namespace {

uint64_t find_plugin_key(const char* name) {
  const KeyRecord* key = name ? find_key(name) : nullptr;
  return key && !key->withdrawn && key->bit < kPluginBits ? uint64_t{1} << key->bit : 0;
}

uint64_t include_keys(uint64_t keys, int32_t on) {
  keys &= kPluginKeys;
  uint64_t& included = thread_state.included_keys;
  const uint64_t before = included & keys;
  included = on ? included | keys : included & ~keys;
  return before;
}

constexpr bp_extension_keys kKeys{BP_HEADER(bp_extension_keys), find_plugin_key, include_keys};

}  // namespace

const void* host_extension(const char* name, uint32_t version) {
  if (name && std::strcmp(name, BP_EXTENSION_KEYS) == 0 && version <= 1) return &kKeys;
  return nullptr;
}

}  // namespace backplane::core
