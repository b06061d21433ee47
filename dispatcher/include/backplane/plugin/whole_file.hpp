// Writes a file atomically: readers see the old or the new content, and two writers never mix their content.
//
// The bytes go to a file with a random name in the same folder. At the end it is renamed to the target; on failure it
// is removed. A symbolic link is followed to its target. A replaced file keeps its owner and mode. Throws for a target
// that is not a regular file (a device, a pipe, a folder), or that this user may not write. A failure is a FileError;
// its text gives the reason and, if there is one, the fix. For Linux; one thread per object.
#pragma once

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace backplane::plugin {

struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class WholeFile {
 public:
  // `durable`: the bytes are on the disk before the name is taken, for which commit() waits.
  explicit WholeFile(const std::filesystem::path& path, bool durable = false) : durable_(durable) {
    find_target(path);
    open_temporary();
    try {
      if (replaces_) keep_owner_and_mode();
    } catch (...) {
      discard();
      throw;
    }
  }
  WholeFile(WholeFile&& other) noexcept
      : durable_(other.durable_),
        replaces_(other.replaces_),
        file_(std::exchange(other.file_, -1)),
        target_(std::move(other.target_)),
        temporary_(std::exchange(other.temporary_, {})),
        before_(other.before_) {}
  WholeFile& operator=(WholeFile&&) = delete;
  ~WholeFile() { discard(); }

  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(errno);
      bytes.remove_prefix(static_cast<size_t>(n));
    }
  }
  // No more is written. commit() does it, too: of many files, each is closed as it is written.
  void finish() {
    if (file_ < 0) return;
    if (durable_ && fsync(file_) != 0) fail(errno);
    if (close(std::exchange(file_, -1)) != 0) fail(errno);
  }
  void commit() {
    finish();
    if (std::rename(temporary_.c_str(), target_.c_str()) != 0) fail(errno);
    temporary_.clear();
    if (durable_) sync_folder();
  }

 private:
  [[noreturn]] static void fail(int error, const char* fix = "") {
    throw FileError("cannot be written: " + std::generic_category().message(error) + fix);
  }
  static std::filesystem::path folder_of(const std::filesystem::path& path) {
    return path.has_parent_path() ? path.parent_path() : ".";
  }

  void find_target(std::filesystem::path path) {
    if (path.native().find('\0') != std::string::npos)
      throw FileError("cannot be written: its path has a zero byte. Fix: leave it out");
    for (int links = 0;; ++links) {
      std::error_code error;
      if (!std::filesystem::is_symlink(std::filesystem::symlink_status(path, error))) break;
      if (links == 40) fail(ELOOP);  // as many as Linux follows
      const std::filesystem::path target = std::filesystem::read_symlink(path, error);
      if (error) fail(error.value());
      path = path.parent_path() / target;
    }
    target_ = std::move(path);
    replaces_ = lstat(target_.c_str(), &before_) == 0;
    if (!replaces_ && (errno != ENOENT || !target_.has_filename())) fail(errno);
    if (replaces_ && !S_ISREG(before_.st_mode)) throw FileError("cannot be written: it is not a regular file");
    if (replaces_ && faccessat(AT_FDCWD, target_.c_str(), W_OK, AT_EACCESS) != 0) fail(errno);
  }

  // Nobody else may read what replaces a private file, not even while it has another name.
  void open_temporary() {
    for (int tries = 0; file_ < 0; ++tries) {
      uint64_t digits = 0;
      if (getrandom(&digits, sizeof digits, 0) != sizeof digits) fail(errno);
      char name[32];
      std::snprintf(name, sizeof name, ".backplane-%016llx", static_cast<unsigned long long>(digits));
      temporary_ = folder_of(target_) / name;
      file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, replaces_ ? 0600 : 0666);
      if (file_ < 0 && (errno != EEXIST || tries == 100))
        fail(errno, errno == ENOENT ? ". Fix: make its folder first" : "");
    }
  }

  void keep_owner_and_mode() const {
    struct stat made {};
    if (fstat(file_, &made) != 0) fail(errno);
    const bool same = made.st_uid == before_.st_uid && made.st_gid == before_.st_gid;
    if (!same && fchown(file_, before_.st_uid, before_.st_gid) != 0)
      fail(errno, ": it would no longer belong to its owner and group. Fix: remove it first, or write to another name");
    if (fchmod(file_, before_.st_mode & 07777) != 0) fail(errno);
  }

  // A folder may be written to and not be read; then the name reaches the disk in time.
  void sync_folder() const {
    const int folder = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    fsync(folder);
    close(folder);
  }

  void discard() noexcept {
    if (file_ >= 0) close(file_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }

  bool durable_;
  bool replaces_ = false;
  int file_ = -1;
  std::filesystem::path target_, temporary_;
  struct stat before_ {};  // of the file that is replaced
};

// A device or a pipe, /dev/stdout say, takes the bytes as they come.
inline void write_whole_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code error;
  const std::filesystem::file_type type = std::filesystem::status(path, error).type();
  if (type != std::filesystem::file_type::character && type != std::filesystem::file_type::fifo) {
    WholeFile file(path);
    file.write(bytes);
    return file.commit();
  }
  std::FILE* stream = std::fopen(path.c_str(), "wb");
  const bool written = stream && std::fwrite(bytes.data(), 1, bytes.size(), stream) == bytes.size();
  if ((stream && std::fclose(stream) != 0) || !written)
    throw FileError("cannot be written: " + std::generic_category().message(errno));
}

}  // namespace backplane::plugin
