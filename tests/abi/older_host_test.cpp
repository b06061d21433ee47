// The law of compatibility from the other side: a plugin of today that needs no later minor registers in a host of an
// earlier one, and touches nothing beyond the tables that such a host has. Sizes come from the committed layouts.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "abi/layout_text.hpp"
#include "abi/older_host.hpp"

namespace backplane::abi_test {
namespace {

namespace fs = std::filesystem;

// The plugins of the loader's tests that register something, the released ones, and the ones of this build.
std::vector<fs::path> plugins_of_today() {
  std::vector<fs::path> files;
  for (const char* name : {"first", "first_older", "second", "extra", "revised"})
    files.push_back(fs::path(LOADER_PLUGINS) / (std::string(name) + ".so"));
  std::error_code none;
  for (const auto& file : fs::directory_iterator(BACKPLANE_BUILT_PLUGINS, none))
    if (file.path().extension() == ".so") files.push_back(file.path());
  return files;
}

Layout layout_of(uint32_t minor) {
  std::ifstream in(fs::path(BACKPLANE_SOURCE_DIR) / "dispatcher/abi/released" /
                   ("layout_" + std::to_string(BP_ABI_MAJOR) + "_" + std::to_string(minor) + ".txt"));
  return parse(std::string(std::istreambuf_iterator<char>(in), {}));
}

struct Library {
  explicit Library(const fs::path& path) : handle(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {}
  ~Library() {
#if !defined(__SANITIZE_ADDRESS__)  // which would call lost what the statics of a closed file held
    if (handle) dlclose(handle);
#endif
  }
  Library(const Library&) = delete;
  void* handle;
};

// Asks it for its table and, where it needs no later minor, lets it register. False: it needs one.
bool registers_in(uint32_t minor, const fs::path& path) {
  const Layout layout = layout_of(minor);
  const auto size_of = [&](const char* name) { return static_cast<uint32_t>(layout.structs.at(name).size); };
  const Library library(path);
  if (!library.handle) ADD_FAILURE() << dlerror();
  const auto query = reinterpret_cast<bp_plugin_query_fn>(dlsym(library.handle, BP_PLUGIN_QUERY_SYMBOL));
  const Guarded answer(size_of("bp_plugin")), host(size_of("bp_host"));
  auto* table = answer.as<bp_plugin>();
  table->header = {size_of("bp_plugin"), minor};
  EXPECT_EQ(query(BP_ABI_MAJOR, minor, table), BP_OK);
  if (table->needs_minor > minor) return false;
  fill_host(host.as<bp_host>(), size_of("bp_host"), minor);
  Registered found;
  registered = &found;
  EXPECT_EQ(table->register_all(table->context, host.as<bp_host>(), nullptr), BP_OK) << found.error;
  registered = nullptr;
  if (table->stop) {
    EXPECT_EQ(table->stop(table->context), BP_OK);  // frees what it made for its rows
  }
  EXPECT_THAT(found.things, testing::Not(testing::IsEmpty()));
  for (const bp_header& header : found.headers) {
    EXPECT_GE(header.struct_size, sizeof(bp_header));
    EXPECT_LE(header.struct_size, BP_MAX_STRUCT_SIZE);
    EXPECT_EQ(header.struct_size % 8, 0u);
  }
  return true;
}

TEST(OlderHost, TakesEveryPluginThatNeedsNoLaterMinor) {
  for (uint32_t minor = 1; minor <= BP_ABI_MINOR; ++minor) {
    int taken = 0;
    for (const fs::path& path : plugins_of_today()) {
      SCOPED_TRACE(path.filename().string() + " in a host of minor " + std::to_string(minor));
      taken += registers_in(minor, path);
    }
    EXPECT_GT(taken, 0) << "minor " << minor;
  }
}

TEST(OlderHost, TakesWhatWasReleased) {
#if !defined(__x86_64__)
  GTEST_SKIP() << "the released files are of x86_64";
#endif
  for (const auto& file : fs::recursive_directory_iterator(fs::path(BACKPLANE_SOURCE_DIR) / "tests/abi/released")) {
    if (file.path().extension() != ".so") continue;
    SCOPED_TRACE(file.path().filename().string());
    const bool older = file.path().stem().string().ends_with("for_minor_1");
    EXPECT_TRUE(registers_in(2, file.path()));
    if (older) {
      EXPECT_TRUE(registers_in(1, file.path()));
    }
  }
}

TEST(OlderHost, IsNotReadBeyondItsTable) {
  const Guarded host(layout_of(1).structs.at("bp_host").size);
  fill_host(host.as<bp_host>(), static_cast<uint32_t>(layout_of(1).structs.at("bp_host").size), 1);
  EXPECT_FALSE(BP_HAS(host.as<bp_host>(), bp_host, extension));
  EXPECT_DEATH(static_cast<void>(*static_cast<void* volatile*>(static_cast<void*>(host.as<bp_host>() + 1))), "");
}

}  // namespace
}  // namespace backplane::abi_test
