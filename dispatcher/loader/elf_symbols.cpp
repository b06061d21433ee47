// A reader of ELF section tables, as far as the dynamic symbols (System V ABI, chapters 4 and 5). 64-bit only, as the
// contract is.
#include "loader/elf_symbols.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

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

class Bytes {
 public:
  explicit Bytes(std::string content) : content_(std::move(content)) {}

  // Copies a T out of the file; false beyond its end.
  template <class T>
  bool read(uint64_t offset, T& out) const {
    if (offset > content_.size() || content_.size() - offset < sizeof(T)) return false;
    std::memcpy(&out, content_.data() + offset, sizeof(T));
    return true;
  }
  // The NUL-terminated string at `offset`, within [begin, begin + size).
  std::string_view text(uint64_t begin, uint64_t size, uint64_t offset) const {
    if (begin > content_.size() || size > content_.size() - begin || offset >= size) return {};
    const std::string_view rest = std::string_view(content_).substr(begin + offset, size - offset);
    return rest.substr(0, rest.find('\0'));
  }

 private:
  std::string content_;
};

std::string problem_of(const Bytes& bytes, Elf64_Ehdr& header) {
  if (!bytes.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "is not a shared object";
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit shared object";
  if (header.e_type != ET_DYN) return "is not a shared object, but another kind of ELF file";
  // The table of sections stands at the end: without it the file was cut short, and to map it could crash.
  Elf64_Shdr last;
  if (header.e_shnum == 0 || !bytes.read(header.e_shoff + (header.e_shnum - uint64_t{1}) * sizeof last, last))
    return "is truncated or has no table of sections";
  if (kMachine != EM_NONE && header.e_machine != kMachine) return "was built for another processor architecture";
  return "";
}

void read_symbols(const Bytes& bytes, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfFile& out) {
  const uint64_t count = table.sh_size / sizeof(Elf64_Sym);
  for (uint64_t i = 1; i < count; ++i) {  // entry 0 is reserved
    Elf64_Sym symbol;
    if (!bytes.read(table.sh_offset + i * sizeof symbol, symbol)) return;
    const std::string_view name = bytes.text(strings.sh_offset, strings.sh_size, symbol.st_name);
    if (name.empty()) continue;
    out.symbols.push_back(
        {std::string(name), symbol.st_shndx != SHN_UNDEF, ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE});
  }
}

}  // namespace

ElfFile read_elf(const std::string& path) {
  ElfFile out;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    out.problem = "cannot be opened for reading";
    return out;
  }
  const Bytes bytes(std::string(std::istreambuf_iterator<char>(in), {}));
  Elf64_Ehdr header;
  out.problem = problem_of(bytes, header);
  if (!out.problem.empty()) return out;
  for (uint16_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr table, strings;
    if (!bytes.read(header.e_shoff + uint64_t{i} * sizeof table, table)) break;
    if (table.sh_type != SHT_DYNSYM) continue;
    if (table.sh_link < header.e_shnum &&
        bytes.read(header.e_shoff + uint64_t{table.sh_link} * sizeof strings, strings))
      read_symbols(bytes, table, strings, out);
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
