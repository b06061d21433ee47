// Owners and modes of files. Access lists beyond the mode are not read: where one grants more, the mode's group bits
// show it (POSIX 1003.1e, the mask entry).
#include "loader/trust.hpp"

#include <dlfcn.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sstream>
#include <vector>

namespace backplane::loader {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxEntryBytes = 1 << 20;  // of a user or group in the system's database

// Reads an entry of a user or group with a buffer as large as it needs; false if the entry does not exist.
template <class Entry, class Id>
bool look_up(int (*read)(Id, Entry*, char*, size_t, Entry**), Id id, Entry& entry, std::vector<char>& buffer) {
  for (buffer.resize(1024); buffer.size() <= kMaxEntryBytes; buffer.resize(2 * buffer.size())) {
    Entry* found = nullptr;
    const int status = read(id, &entry, buffer.data(), buffer.size(), &found);
    if (status != ERANGE) return status == 0 && found;
  }
  return false;
}

// A group with a single user, as most systems make for each user: only that user can use the group's write permission.
bool is_private_group(gid_t group, uid_t owner) {
  passwd user;
  struct group members;
  std::vector<char> user_text, group_text;
  if (!look_up(getpwuid_r, owner, user, user_text)) return group == owner;
  if (!look_up(getgrgid_r, group, members, group_text)) return false;
  if (user.pw_gid != group || std::strcmp(user.pw_name, members.gr_name) != 0) return false;
  for (char** name = members.gr_mem; *name; ++name)
    if (std::strcmp(*name, user.pw_name) != 0) return false;
  return true;
}

// A user who can write this code, or replace it in its folder, can run any code here without a plugin.
const std::array<struct stat, 2>& own_status() {
  static const std::array<struct stat, 2> status = [] {
    std::array<struct stat, 2> both{};  // of user 0, written by no group, where it cannot be examined
    if (::stat(own_file().c_str(), &both[0]) != 0 || ::stat(own_file().parent_path().c_str(), &both[1]) != 0) both = {};
    return both;
  }();
  return status;
}

bool owner_is_trusted(uid_t owner) {
  const auto is_own = [&](const struct stat& own) { return own.st_uid == owner; };
  return owner == 0 || owner == geteuid() || std::any_of(own_status().begin(), own_status().end(), is_own);
}

bool group_is_trusted(gid_t group, uid_t owner) {
  const auto is_own = [&](const struct stat& own) { return (own.st_mode & S_IWGRP) && own.st_gid == group; };
  return group == 0 || std::any_of(own_status().begin(), own_status().end(), is_own) || is_private_group(group, owner);
}

// `above`: a folder on the way, whose entries others cannot replace where the sticky bit is set.
std::string why_entry_untrusted(const fs::path& path, bool above) {
  std::ostringstream why;
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) {
    why << path.string() << " cannot be examined: " << std::strerror(errno);
    return why.str();
  }
  const bool sticky = above && (about.st_mode & S_ISVTX);
  if (!owner_is_trusted(about.st_uid))
    why << path.string() << " belongs to user " << about.st_uid << "; expected root, the user of this process ("
        << geteuid() << ") or the owner of backplane itself (" << own_status()[0].st_uid
        << "); install the plugin yourself, or change the owner";
  else if ((about.st_mode & S_IWOTH) && !sticky)
    why << path.string() << " may be written by everybody; run: chmod o-w " << path.string();
  else if ((about.st_mode & S_IWGRP) && !sticky && !group_is_trusted(about.st_gid, about.st_uid))
    why << path.string() << " may be written by all of group " << about.st_gid << "; run: chmod g-w " << path.string();
  return why.str();
}

}  // namespace

fs::path own_file() {
  static const char anchor = 0;
  Dl_info info{};
  if (dladdr(&anchor, &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  return fs::canonical(info.dli_fname, error);
}

std::string why_untrusted(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return path.string() + ": " + error.message();
  // Who may write a folder above this code could replace the code itself.
  const fs::path own = own_file();
  const auto holds_own = [&](const fs::path& folder) {
    return std::mismatch(folder.begin(), folder.end(), own.begin(), own.end()).first == folder.end();
  };
  std::string why = why_entry_untrusted(real, false);
  for (fs::path folder = real.parent_path(); why.empty() && !holds_own(folder); folder = folder.parent_path()) {
    why = why_entry_untrusted(folder, true);
    if (folder == folder.parent_path()) break;
  }
  return why;
}

std::string why_untrusted_in(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  const fs::path root = fs::canonical(folder, error), real = fs::canonical(file, error);
  if (error) return file.string() + ": " + error.message();
  if (std::mismatch(root.begin(), root.end(), real.begin(), real.end()).first != root.end())
    return file.string() + " is a link out of its folder, to " + real.string() +
           "; put the file itself there, or load it by its path";
  return why_untrusted(real);
}

}  // namespace backplane::loader
