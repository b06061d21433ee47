// What a shared object asks of the system's loader, read from its file: nothing of it runs.
//
// For reports: a file that read_elf (elf_symbols.hpp) finds damaged gives what could be read. Every offset is checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace backplane::loader {

struct ElfTraits {
  std::vector<std::string> needed;    // libraries, as DT_NEEDED names them
  std::string run_path;               // DT_RUNPATH, else DT_RPATH: folders, separated by colons
  bool text_relocations = false;      // its code is written to while it is being opened
  bool executable_stack = false;      // asks for one, or does not say that it needs none
  bool writable_code = false;         // a segment may be written and run
  bool static_thread_locals = false;  // takes part of the room for them that a process has at its start
  bool never_closed = false;          // -z nodelete
  uint64_t thread_local_bytes = 0;
  uint64_t constructors = 0;  // functions that run when it is opened, without the compiler's own
  std::string
      instruction_sets;  // that it is marked as needing, as the compiler's -march takes them: "x86-64-v3"; or ""
};

ElfTraits read_traits(const std::string& path);

}  // namespace backplane::loader
