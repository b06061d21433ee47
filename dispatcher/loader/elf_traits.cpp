// Segments, the dynamic section, the array of constructors and the property note (System V ABI, chapters 4 and 5; the
// x86-64 psABI, "Program Property").
#include "loader/elf_traits.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "loader/elf_bytes.hpp"

namespace backplane::loader {
namespace {

constexpr uint32_t kPropertyNote = 5;              // NT_GNU_PROPERTY_TYPE_0
constexpr uint32_t kInstructionSets = 0xc0008002;  // GNU_PROPERTY_X86_ISA_1_NEEDED
constexpr uint64_t kMaxNote = 4096, kMaxNeeded = 256;
// What the compiler's own start-up code puts there (frame_dummy).
constexpr uint64_t kOwnConstructors = 1;

void read_segments(const ElfBytes& file, const Elf64_Ehdr& header, ElfTraits& out) {
  bool states_stack = false;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr p;
    if (!file.read(header.e_phoff + uint64_t{i} * sizeof p, p)) return;
    constexpr uint32_t kWritableCode = PF_W | PF_X;
    if (p.p_type == PT_TLS) out.thread_local_bytes = p.p_memsz;
    if (p.p_type == PT_LOAD && (p.p_flags & kWritableCode) == kWritableCode) out.writable_code = true;
    if (p.p_type == PT_GNU_STACK) {
      states_stack = true;
      out.executable_stack = (p.p_flags & PF_X) != 0;
    }
  }
  if (!states_stack) out.executable_stack = true;
}

std::string text_at(const std::string& strings, uint64_t offset) {
  if (offset >= strings.size()) return "";
  const std::string_view rest = std::string_view(strings).substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

void read_dynamic(const std::string& entries, const std::string& strings, ElfTraits& out) {
  for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= entries.size(); at += sizeof(Elf64_Dyn)) {
    Elf64_Dyn entry;
    std::memcpy(&entry, entries.data() + at, sizeof entry);
    switch (entry.d_tag) {
      case DT_NULL:
        return;
      case DT_NEEDED:
        if (out.needed.size() < kMaxNeeded) out.needed.push_back(text_at(strings, entry.d_un.d_val));
        break;
      case DT_RUNPATH:
        out.run_path = text_at(strings, entry.d_un.d_val);
        break;
      case DT_RPATH:
        if (out.run_path.empty()) out.run_path = text_at(strings, entry.d_un.d_val);
        break;
      case DT_TEXTREL:
        out.text_relocations = true;
        break;
      case DT_FLAGS:
        if (entry.d_un.d_val & DF_TEXTREL) out.text_relocations = true;
        if (entry.d_un.d_val & DF_STATIC_TLS) out.static_thread_locals = true;
        break;
      case DT_FLAGS_1:
        if (entry.d_un.d_val & DF_1_NODELETE) out.never_closed = true;
        break;
      case DT_INIT_ARRAYSZ: {
        const uint64_t count = entry.d_un.d_val / sizeof(uint64_t);
        out.constructors = count > kOwnConstructors ? count - kOwnConstructors : 0;
        break;
      }
      default:
        break;
    }
  }
}

// The highest of the levels that the bits name.
std::string instruction_sets_of(uint32_t bits) {
  for (int level = 4; level >= 2; --level)
    if (bits >> (level - 1) & 1) return "x86-64-v" + std::to_string(level);
  return "";
}

uint64_t padded(uint64_t size, uint64_t alignment) { return (size + alignment - 1) / alignment * alignment; }

// The properties of one note: type, size, data, each padded to 8 bytes.
void read_properties(std::string_view note, ElfTraits& out) {
  while (note.size() >= 8) {
    uint32_t head[2];  // type, size
    std::memcpy(head, note.data(), sizeof head);
    if (head[1] > note.size() - 8) return;
    uint32_t bits = 0;
    if (head[0] == kInstructionSets && head[1] >= sizeof bits) {
      std::memcpy(&bits, note.data() + 8, sizeof bits);
      out.instruction_sets = instruction_sets_of(bits);
    }
    note.remove_prefix(std::min<uint64_t>(note.size(), 8 + padded(head[1], 8)));
  }
}

void read_notes(std::string_view notes, ElfTraits& out) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr head;
    std::memcpy(&head, notes.data(), sizeof head);
    const uint64_t name = padded(head.n_namesz, 4), begin = sizeof head + name;
    if (begin > notes.size() || head.n_descsz > notes.size() - begin) return;
    if (head.n_type == kPropertyNote) read_properties(notes.substr(begin, head.n_descsz), out);
    notes.remove_prefix(std::min<uint64_t>(notes.size(), begin + padded(head.n_descsz, 8)));
  }
}

}  // namespace

ElfTraits read_traits(const std::string& path) {
  ElfTraits out;
  const ElfBytes file(path);
  Elf64_Ehdr header;
  if (!file.opened() || !file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return out;
  read_segments(file, header, out);
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    if (!file.read(header.e_shoff + uint64_t{i} * sizeof section, section)) return out;
    if (section.sh_type == SHT_NOTE && section.sh_size <= kMaxNote)
      read_notes(file.bytes(section.sh_offset, section.sh_size), out);
    if (section.sh_type != SHT_DYNAMIC || section.sh_link >= header.e_shnum) continue;
    if (file.read(header.e_shoff + uint64_t{section.sh_link} * sizeof strings, strings))
      read_dynamic(file.bytes(section.sh_offset, section.sh_size), file.bytes(strings.sh_offset, strings.sh_size), out);
  }
  return out;
}

}  // namespace backplane::loader
