// A reader of ELF section tables, as far as the dynamic symbols (System V ABI, chapters 4 and 5). 64-bit only, as the
// contract is.
#include "loader/elf_symbols.hpp"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
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

// Reads the pieces that are asked for: with its debug information a plugin may be a hundred times as large as they are.
class File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat about;
    if (opened() && ::fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode))
      size_ = static_cast<uint64_t>(about.st_size);
  }
  File(const File&) = delete;
  ~File() {
    if (opened()) ::close(descriptor_);
  }
  bool opened() const { return descriptor_ >= 0; }

  // [offset, offset + size); nothing where the file ends before that.
  std::string bytes(uint64_t offset, uint64_t size) const {
    if (offset > size_ || size > size_ - offset) return {};
    std::string content(size, '\0');
    return fill(offset, content.data(), size) ? content : std::string();
  }
  // Copies a T out of the file; false beyond its end.
  template <class T>
  bool read(uint64_t offset, T& out) const {
    return offset <= size_ && size_ - offset >= sizeof(T) && fill(offset, reinterpret_cast<char*>(&out), sizeof(T));
  }

 private:
  bool fill(uint64_t offset, char* to, uint64_t size) const {
    while (size > 0) {
      const ssize_t got = ::pread(descriptor_, to, size, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      to += got;
      offset += static_cast<uint64_t>(got);
      size -= static_cast<uint64_t>(got);
    }
    return true;
  }

  int descriptor_;
  uint64_t size_ = 0;
};

std::string problem_of(const File& file, Elf64_Ehdr& header) {
  if (!file.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "is not a shared object";
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return "is not a 64-bit shared object";
  if (header.e_type != ET_DYN) return "is not a shared object, but another kind of ELF file";
  // The table of sections stands at the end: without it the file was cut short, and to map it could crash.
  Elf64_Shdr last;
  if (header.e_shnum == 0 || !file.read(header.e_shoff + (header.e_shnum - uint64_t{1}) * sizeof last, last))
    return "is truncated or has no table of sections";
  if (kMachine != EM_NONE && header.e_machine != kMachine) return "was built for another processor architecture";
  return "";
}

void read_symbols(const File& file, const Elf64_Shdr& table, const Elf64_Shdr& strings, ElfFile& out) {
  const std::string entries = file.bytes(table.sh_offset, table.sh_size);
  const std::string names = file.bytes(strings.sh_offset, strings.sh_size);
  const uint64_t count = entries.size() / sizeof(Elf64_Sym);
  for (uint64_t i = 1; i < count; ++i) {  // entry 0 is reserved
    Elf64_Sym symbol;
    std::memcpy(&symbol, entries.data() + i * sizeof symbol, sizeof symbol);
    if (symbol.st_name >= names.size()) continue;
    const std::string_view rest = std::string_view(names).substr(symbol.st_name);
    const std::string_view name = rest.substr(0, rest.find('\0'));
    if (name.empty()) continue;
    out.symbols.push_back(
        {std::string(name), symbol.st_shndx != SHN_UNDEF, ELF64_ST_BIND(symbol.st_info) == STB_GNU_UNIQUE});
  }
}

}  // namespace

ElfFile read_elf(const std::string& path) {
  ElfFile out;
  const File file(path);
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
