// A plugin's file, opened and asked for its table, with everything checked that can be checked before it registers.
//
// Functions throw Error(BP_ERROR_VALUE or BP_ERROR_VERSION) whose message starts with the file's path. The caller owns
// the handle. No lock is needed.
#pragma once

#include <string>

#include "backplane/abi/plugin.h"

namespace backplane::loader {

struct Library {
  void* handle = nullptr;  // dlopen's
  bp_plugin table{};       // the part that both sides know; the rest zero
};

// `path` is a real path. A file that is refused is closed again.
Library open_library(const std::string& path);
// Asks an opened file again: a parked plugin registers anew.
bp_plugin query_table(void* handle, const std::string& path);

// False, with the handle still good, in a sanitizer's build, which keeps every file open, and where something pins the
// file in memory.
bool close_library(void* handle, const std::string& path);

}  // namespace backplane::loader
