// Opening a plugin's file: its kind, then its only symbol, then the table that this function returns.
#include "loader/library.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>

#include "backplane/error.hpp"
#include "loader/elf_symbols.hpp"
#include "loader/host_traits.hpp"
#include "loader/trust.hpp"
#include "memory/process/foreign_call.hpp"
#include "record/foreign_struct.hpp"

namespace backplane::loader {
namespace {

// Up to `stop`, which is optional; a table may end before it, and no table of 0.1 ends earlier.
constexpr uint32_t kMinimumTable = offsetof(bp_plugin, stop);
constexpr size_t kMaxNameLength = 64;

void check_file(const std::string& path) {
  const std::string untrusted = why_untrusted(path);
  BP_CHECK(untrusted.empty(), VALUE, path, ": is not opened, since others may have written it: ", untrusted);
  const ElfFile file = read_elf(path);
  BP_CHECK(file.problem.empty(), VALUE, path, ": ", file.problem);
  BP_CHECK(file.exports(BP_PLUGIN_QUERY_SYMBOL), VALUE, path, ": does not export " BP_PLUGIN_QUERY_SYMBOL,
           ", so it is not a plugin of backplane; backplane_add_plugin() builds one");
  const std::string why = why_sanitizer_unusable(file.sanitizer());
  BP_CHECK(why.empty(), VERSION, path, ": ", why);
}

void check_sizes(const std::string& path, const bp_plugin& table) {
  const uint32_t size = table.header.struct_size;
  BP_CHECK(size >= kMinimumTable && size <= BP_MAX_STRUCT_SIZE && size % 8 == 0, VERSION, path,
           ": its table has the invalid size ", size, "; expected a multiple of 8 from ", kMinimumTable, " to ",
           BP_MAX_STRUCT_SIZE);
}

void check_name(const std::string& path, const char* name) {
  BP_CHECK(name, VALUE, path, ": its table has no name");
  const std::string_view text(name, strnlen(name, kMaxNameLength + 1));
  bool good = !text.empty() && text.size() <= kMaxNameLength;
  for (const char c : text) good = good && (std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-.", c));
  BP_CHECK(good, VALUE, path, ": its name is \"", text, "\"; expected 1 to ", kMaxNameLength,
           " letters, digits or any of _ - .");
}

bp_status call_query(bp_plugin_query_fn query, const std::string& path, bp_plugin* table) {
  core::take_error();
  const bp_status status =
      core::call_foreign(BP_PLUGIN_QUERY_SYMBOL, [&] { return query(BP_ABI_MAJOR, BP_ABI_MINOR, table); });
  const std::string thrown = status == BP_ERROR_INTERNAL ? core::take_error() : "";
  BP_CHECK(thrown.empty(), VALUE, path, ": ", thrown);
  return status;
}

}  // namespace

bp_plugin query_table(void* handle, const std::string& path) {
  const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(handle, BP_PLUGIN_QUERY_SYMBOL));
  BP_CHECK(query, VALUE, path, ": does not export " BP_PLUGIN_QUERY_SYMBOL, ", so it is not a plugin of backplane");
  // As large as any table may be, so that a plugin which writes all of its own, newer one harms nobody.
  alignas(bp_plugin) unsigned char buffer[BP_MAX_STRUCT_SIZE] = {};
  auto* written = reinterpret_cast<bp_plugin*>(buffer);
  written->header = BP_HEADER(bp_plugin);
  const bp_status status = call_query(query, path, written);
  // The major is at the same offset in every version, so it is read first. A query that refuses may have written
  // nothing.
  if (status == BP_OK || written->abi_major != 0)
    if (std::string why = why_version_unusable(written->abi_major, 0); !why.empty())
      detail::fail(BP_ERROR_VERSION, path, ": ", why);
  BP_CHECK(status == BP_OK, VERSION, path, ": " BP_PLUGIN_QUERY_SYMBOL " refused a host of contract ", BP_ABI_MAJOR,
           ".", BP_ABI_MINOR, " with status ", status);
  check_sizes(path, *written);
  if (std::string why = why_version_unusable(written->abi_major, written->needs_minor); !why.empty())
    detail::fail(BP_ERROR_VERSION, path, ": ", why);
  core::check_flags(written->flags, core::flags_up_to(BP_PLUGIN_UNLOADABLE), BP_HINTS_OF_32, path, ": its table");
  bp_plugin table{};
  std::memcpy(&table, written, std::min<size_t>(written->header.struct_size, sizeof table));
  check_name(path, table.name);
  BP_CHECK(table.register_all, VALUE, path, ": its table has no register_all");
  return table;
}

Library open_library(const std::string& path) {
  check_file(path);
  // Local: symbols of one plugin must not satisfy another's. Now: a missing function shows here, not in a call.
  std::unique_ptr<void, int (*)(void*)> handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL), dlclose);
  if (!handle) {
    const char* reason = dlerror();
    detail::fail(BP_ERROR_VALUE, path, ": cannot be opened: ", reason ? reason : "the system gives no reason");
  }
  Library library;
  library.table = query_table(handle.get(), path);
  library.handle = handle.release();
  return library;
}

bool close_library(void* handle, const std::string& path) {
  if (!kHostSanitizer.empty()) return false;
  dlclose(handle);
  // Where something pins the file, this takes back the reference that was dropped: the handle stays good.
  return dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD) == nullptr;
}

}  // namespace backplane::loader
