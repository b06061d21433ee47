// A reader of ELF tables, as far as the segments and the dynamic symbols (System V ABI, chapters 4 and 5). 64-bit only,
// as the contract is.
#include "loader/elf_symbols.hpp"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "loader/elf_bytes.hpp"

namespace backplane::loader {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
#elif defined(__riscv)
constexpr uint16_t kMachine = EM_RISCV;
#else
constexpr uint16_t kMachine = EM_NONE;  // not checked here; dlopen will
#endif
constexpr uint64_t kMaxAddress = uint64_t{1} << 47;
constexpr size_t kMaxSymbolLength = 1024;  // what is looked for is shorter; in a damaged table one may span all of it

// The system's loader believes the table of segments: it also maps pages beyond the file's end, where a read is SIGBUS,
// and computes the room for all segments from the first and the last.
std::string problem_of_segments(const ElfBytes& file, const Elf64_Ehdr& header, std::vector<Elf64_Phdr>& segments) {
  if (header.e_phentsize != sizeof(Elf64_Phdr) ||
      !file.holds(header.e_phoff, uint64_t{header.e_phnum} * sizeof(Elf64_Phdr)))
    return "is damaged: its table of segments is not in the file";
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t mapped_to = 0;
  for (uint16_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr& p = segments.emplace_back();
    if (!file.read(header.e_phoff + uint64_t{i} * sizeof p, p)) return "cannot be read";
    if (p.p_filesz > 0 && !file.holds(p.p_offset, p.p_filesz))
      return "is damaged or truncated: segment " + std::to_string(i) + " ends beyond the file";
    if (p.p_type != PT_LOAD) continue;
    if (p.p_filesz > p.p_memsz || p.p_vaddr > kMaxAddress || p.p_memsz > kMaxAddress || p.p_vaddr < mapped_to ||
        (p.p_vaddr - p.p_offset) % page != 0 || p.p_align > kMaxAddress)
      return "is damaged: segment " + std::to_string(i) + " has an invalid address";
    mapped_to = p.p_vaddr + p.p_memsz;
  }
  // The ranges that become read-only after relocation, rounded to whole pages.
  for (const Elf64_Phdr& p : segments) {
    const auto inside = [&](const Elf64_Phdr& load) {
      const uint64_t end = (load.p_vaddr + load.p_memsz + page - 1) / page * page;
      return load.p_type == PT_LOAD && p.p_vaddr >= load.p_vaddr && p.p_vaddr <= end && p.p_memsz <= end - p.p_vaddr;
    };
    if (p.p_type == PT_GNU_RELRO && std::none_of(segments.begin(), segments.end(), inside))
      return "is damaged: its read-only range is not in a loaded segment";
  }
  return "";
}

// The system's loader looks symbols up by this table's own numbers: of buckets, and of words of its filter.
bool fits_hash_table(const ElfBytes& file, const Elf64_Shdr& section) {
  uint32_t header[4];  // buckets, first symbol, words, shift
  if (section.sh_size < sizeof header || !file.read(section.sh_offset, header)) return false;
  const uint64_t needed =
      sizeof header + uint64_t{header[2]} * sizeof(uint64_t) + uint64_t{header[0]} * sizeof(uint32_t);
  return header[0] > 0 && header[2] > 0 && (header[2] & (header[2] - 1)) == 0 && needed <= section.sh_size;
}

bool holds(const Elf64_Phdr& segment, const Elf64_Shdr& section) {
  return section.sh_offset >= segment.p_offset && section.sh_size <= segment.p_filesz &&
         section.sh_offset - segment.p_offset <= segment.p_filesz - section.sh_size &&
         section.sh_offset - segment.p_offset == section.sh_addr - segment.p_vaddr;
}

// Every loaded section is read, be it by the system's loader alone.
uint32_t rights_for(const Elf64_Shdr& section) {
  return PF_R | (section.sh_flags & SHF_WRITE ? PF_W : 0u) | (section.sh_flags & SHF_EXECINSTR ? PF_X : 0u);
}

// Sections and segments both state the content of memory, so damage to one of them shows.
std::string problem_of_sections(const ElfBytes& file, const Elf64_Ehdr& header,
                                const std::vector<Elf64_Phdr>& segments) {
  if (header.e_shentsize != sizeof(Elf64_Shdr)) return "is damaged: its table of sections has entries of another size";
  const auto in_segment = [&](const Elf64_Shdr& section, uint32_t type, uint32_t rights = 0) {
    return std::any_of(segments.begin(), segments.end(), [&](const Elf64_Phdr& p) {
      return p.p_type == type && (p.p_flags & rights) == rights && holds(p, section);
    });
  };
  bool dynamic = false;
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    if (!file.read(header.e_shoff + uint64_t{i} * sizeof section, section)) return "cannot be read";
    if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (!file.holds(section.sh_offset, section.sh_size))
      return "is damaged or truncated: section " + std::to_string(i) + " ends beyond the file";
    if ((section.sh_flags & SHF_ALLOC) && !in_segment(section, PT_LOAD, rights_for(section)))
      return "is damaged: section " + std::to_string(i) + " is not in a loaded segment with its rights";
    if (section.sh_type == SHT_GNU_HASH && !fits_hash_table(file, section))
      return "is damaged: its table of hashed symbols does not fit its section";
    if (section.sh_type == SHT_DYNAMIC) dynamic = in_segment(section, PT_DYNAMIC);
  }
  return dynamic ? "" : "is damaged: its dynamic section is not its dynamic segment";
}

std::string problem_of(const ElfBytes& file, Elf64_Ehdr& header) {
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "is not a shared object";
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit shared object";
  if (header.e_type != ET_DYN) return "is not a shared object, but another kind of ELF file";
  if (kMachine != EM_NONE && header.e_machine != kMachine) return "was built for another processor architecture";
  // The table of sections stands at the end: without it the file was cut short.
  if (header.e_shnum == 0 || !file.holds(header.e_shoff, uint64_t{header.e_shnum} * sizeof(Elf64_Shdr)))
    return "is truncated or has no table of sections";
  std::vector<Elf64_Phdr> segments;
  const std::string problem = problem_of_segments(file, header, segments);
  return problem.empty() ? problem_of_sections(file, header, segments) : problem;
}

void read_symbols(const ElfBytes& file, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfFile& out) {
  const std::string entries = file.bytes(table.sh_offset, table.sh_size);
  const std::string names = file.bytes(strings.sh_offset, strings.sh_size);
  const uint64_t count = entries.size() / sizeof(Elf64_Sym);
  for (uint64_t i = 1; i < count; ++i) {  // entry 0 is reserved
    Elf64_Sym symbol;
    std::memcpy(&symbol, entries.data() + i * sizeof symbol, sizeof symbol);
    if (symbol.st_name >= names.size()) continue;
    const std::string_view rest = std::string_view(names).substr(symbol.st_name, kMaxSymbolLength);
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (name.empty()) continue;
    out.symbols.push_back(
        {std::string(name), symbol.st_shndx != SHN_UNDEF, ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE});
  }
}

}  // namespace

ElfFile read_elf(const std::string& path) {
  ElfFile out;
  const ElfBytes file(path);
  if (!file.opened()) {
    out.problem = "cannot be opened for reading";
    return out;
  }
  Elf64_Ehdr header;
  out.problem = problem_of(file, header);
  if (!out.problem.empty()) return out;
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, strings;
    if (!file.read(header.e_shoff + uint64_t{i} * sizeof table, table)) break;
    if (table.sh_type != SHT_DYNSYM) continue;
    if (table.sh_link < header.e_shnum && file.read(header.e_shoff + uint64_t{table.sh_link} * sizeof strings, strings))
      read_symbols(file, table, strings, out);
    return out;
  }
  out.problem = "has no table of dynamic symbols";
  return out;
}

bool ElfFile::exports(const char* name) const {
  return std::any_of(symbols.begin(), symbols.end(), [&](const auto& s) { return s.defined && s.name == name; });
}

bool ElfFile::imports(const char* name) const {
  return std::any_of(symbols.begin(), symbols.end(), [&](const auto& s) { return !s.defined && s.name == name; });
}

std::string ElfFile::sanitizer() const {
  if (imports("__asan_init")) return "address";
  return imports("__tsan_init") ? "thread" : "";
}

}  // namespace backplane::loader
