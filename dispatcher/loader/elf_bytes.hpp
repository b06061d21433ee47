// The bytes of an untrusted file, by offset. It never reads beyond the end.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

namespace backplane::loader {

// Opening does not wait for the other end of a FIFO or take a terminal. Reads only the requested pieces: with its
// debug information a plugin may be a hundred times as large as they are.
class ElfBytes {
 public:
  explicit ElfBytes(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    struct stat about;
    if (opened() && ::fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode))
      size_ = static_cast<uint64_t>(about.st_size);
  }
  ElfBytes(const ElfBytes&) = delete;
  ~ElfBytes() {
    if (opened()) ::close(descriptor_);
  }
  bool opened() const { return descriptor_ >= 0; }
  bool holds(uint64_t offset, uint64_t size) const { return offset <= size_ && size <= size_ - offset; }

  // [offset, offset + size); nothing where the file ends before that.
  std::string bytes(uint64_t offset, uint64_t size) const {
    if (!holds(offset, size)) return {};
    std::string content(size, '\0');
    return fill(offset, content.data(), size) ? content : std::string();
  }
  // Copies a T out of the file; false beyond its end.
  template <class T>
  bool read(uint64_t offset, T& out) const {
    return holds(offset, sizeof(T)) && fill(offset, reinterpret_cast<char*>(&out), sizeof(T));
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

}  // namespace backplane::loader
