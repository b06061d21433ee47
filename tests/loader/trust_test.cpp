// Whom the loader trusts: files and folders that others may write are refused, links out of a folder and names that are
// taken as well, each with its reason; the user's own files load.
#include "loader/trust.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uid_t kStranger = 12345;

PluginInfo info_at(const std::string& manifest) {
  for (const PluginInfo& plugin : plugins())
    if (plugin.manifest == manifest) return plugin;
  return {};
}

std::string manifest_of(const Folder& folder, const std::string& plugin) {
  return folder.path() + "/" + plugin + ".backplane.json";
}

void set_mode(const std::string& path, mode_t mode) { ASSERT_EQ(chmod(path.c_str(), mode), 0); }

TEST(Trust, NobodyElseMayWriteAFile) {
  const Folder folder;
  const std::string file = folder.write("a", "");
  for (const mode_t mode : {0400, 0444, 0600, 0644, 0755}) {
    set_mode(file, mode);
    EXPECT_EQ(loader::why_untrusted(file), "") << std::oct << mode;
  }
  for (const mode_t mode : {0602, 0666, 0777, 0646}) {
    set_mode(file, mode);
    EXPECT_THAT(loader::why_untrusted(file), AllOf(HasSubstr(file), HasSubstr("chmod o-w"))) << std::oct << mode;
  }
  EXPECT_THAT(loader::why_untrusted(folder.path() + "/none"), HasSubstr("No such file"));
}

TEST(Trust, NobodyElseMayWriteAFolderAbove) {
  const Folder folder;
  const std::string inner = folder.path() + "/inner";
  fs::create_directory(inner);
  const std::string file = inner + "/a";
  std::ofstream(file) << "";
  set_mode(inner, 0777);
  EXPECT_THAT(loader::why_untrusted(file), HasSubstr(inner + " may be written by everybody"));
  set_mode(inner, 0755);
  set_mode(folder.path(), 0777);
  EXPECT_THAT(loader::why_untrusted(file), HasSubstr(folder.path() + " may be written by everybody"));
  // Where the sticky bit is set, as in /tmp, others cannot replace files; but they can add some.
  set_mode(folder.path(), 01777);
  EXPECT_EQ(loader::why_untrusted(file), "");
  EXPECT_THAT(loader::why_untrusted(folder.path()), HasSubstr("may be written by everybody"));
}

// A user-private group has its one user's name; `root` is trusted with everything.
TEST(Trust, AGroupMayWriteOnlyWhereItIsNobodyElse) {
  const Folder folder;
  const std::string file = folder.write("a", "");
  set_mode(file, 0664);
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root gives files to other groups";
  }
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  EXPECT_EQ(loader::why_untrusted(file), "");
  ASSERT_EQ(chown(file.c_str(), 0, kStranger), 0);
  EXPECT_THAT(loader::why_untrusted(file), AllOf(HasSubstr("group 12345"), HasSubstr("chmod g-w")));
}

TEST(Trust, TheOwnerIsTheUserOrRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const Folder folder;
  const std::string file = folder.write("a", "");
  ASSERT_EQ(chown(file.c_str(), kStranger, 0), 0);
  EXPECT_THAT(loader::why_untrusted(file), HasSubstr("belongs to user 12345"));
  ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(folder.path().c_str(), kStranger, 0), 0);
  EXPECT_THAT(loader::why_untrusted(file), HasSubstr(folder.path() + " belongs to user 12345"));
}

// Of every way to a plugin: by its folder, by its path, and what looks at it without loading.
TEST(Trust, HoldsOnEveryWayToAPlugin) {
  const Folder folder;
  const std::string file = folder.plant("no_name", "untrusted", "\"ops\": [\"untrusted::op\"]");
  set_mode(file, 0666);
  add_plugin_path(folder.path());
  const PluginInfo found = info_at(manifest_of(folder, "no_name"));
  EXPECT_EQ(found.state, "refused");
  EXPECT_THAT(found.why, HasSubstr("may be written by everybody"));
  EXPECT_THAT(failure_of([&] { load_plugin(file); }).text, HasSubstr("may be written by everybody"));
  bool reported = false;
  for (const LintFinding& finding : lint_plugin(file))
    reported = reported || (finding.level == LintLevel::kError &&
                            finding.text.find("may be written by everybody") != std::string::npos);
  EXPECT_TRUE(reported);
}

TEST(Trust, OfAManifestThatOthersMayWriteNothingIsBelieved) {
  const Folder folder;
  folder.plant("bad_name", "believed", "\"backends\": [\"believed\"]");
  const std::string manifest = manifest_of(folder, "bad_name");
  set_mode(manifest, 0666);
  add_plugin_path(folder.path());
  const PluginInfo found = info_at(manifest);
  EXPECT_EQ(found.state, "refused");
  EXPECT_EQ(found.name, "bad_name") << "by its file's name";
  EXPECT_THAT(found.backends, IsEmpty());
  EXPECT_THAT(failure_of([&] { load_plugin(folder.path() + "/bad_name.so"); }).text,
              HasSubstr("may be written by everybody"));
}

TEST(Trust, AFolderThatOthersMayWriteIsNotSearched) {
  const Folder folder;
  folder.plant("no_register", "in_the_open");
  for (const mode_t mode : {0777, 01777}) {
    set_mode(folder.path(), mode);
    EXPECT_THAT(failure_of([&] { add_plugin_path(folder.path()); }).text,
                AllOf(HasSubstr("is not searched"), HasSubstr("may be written by everybody")));
  }
  EXPECT_EQ(info_at(manifest_of(folder, "no_register")).name, "");
}

TEST(Trust, LinksMayNotLeadOutOfAFolder) {
  const Folder folder, elsewhere;
  const std::string file = elsewhere.plant("query_fails", "linked");
  fs::create_symlink(manifest_of(elsewhere, "query_fails"), manifest_of(folder, "query_fails"));
  // A manifest of the folder's own, whose file is a link.
  folder.plant("size_odd", "linked_too");
  fs::remove(folder.path() + "/size_odd.so");
  fs::create_symlink(plugin_file("size_odd"), folder.path() + "/size_odd.so");
  add_plugin_path(folder.path());
  for (const char* name : {"query_fails", "size_odd"}) {
    const PluginInfo found = info_at(manifest_of(folder, name));
    EXPECT_EQ(found.state, "refused") << name;
    EXPECT_THAT(found.why, HasSubstr("is a link out of its folder")) << name;
  }
}

TEST(Trust, LinksWithinAFolderAndToOneThatIsNamedAreFollowed) {
  const Folder folder, elsewhere;
  folder.plant("size_huge", "versioned");
  fs::rename(folder.path() + "/size_huge.so", folder.path() + "/size_huge.so.1");
  fs::create_symlink("size_huge.so.1", folder.path() + "/size_huge.so");
  const std::string link = elsewhere.path() + "/link";
  fs::create_directory_symlink(folder.path(), link);
  add_plugin_path(link);
  EXPECT_EQ(info_at(link + "/size_huge.backplane.json").state, "found");
  // By its path the user has named the link himself.
  const std::string file = elsewhere.path() + "/first.so";
  fs::create_symlink(plugin_file("first"), file);
  load_plugin(file);
  unload_plugin("first");
}

TEST(Trust, WhatIsTakenIsRefused) {
  const Folder mine, others;
  mine.plant("revised", "taken", "\"backends\": [\"taken_device\"], \"ops\": [\"taken_ops::one\"]");
  add_plugin_path(mine.path());
  const std::pair<const char*, const char*> claims[] = {
      {"throws_in_query", "\"backends\": [\"free_device\", \"taken_device\"]"},
      {"newer_minor", "\"ops\": [\"free_ops::x\", \"taken_ops::two\"]"},
      {"other_major", "\"ops\": [\"bp::mine\"]"},
  };
  for (const auto& [plugin, words] : claims) others.plant(plugin, std::string("claims_") + plugin, words);
  others.plant("extra", "taken");
  others.plant("takes_op", "taker_of_kernels", "\"kernels_for\": [\"taken_device\"]");
  add_plugin_path(others.path());
  EXPECT_THAT(info_at(manifest_of(others, "throws_in_query")).why,
              AllOf(HasSubstr("its backend \"taken_device\""), HasSubstr(mine.path())));
  EXPECT_THAT(info_at(manifest_of(others, "newer_minor")).why, HasSubstr("the namespace of its op \"taken_ops::two\""));
  EXPECT_THAT(info_at(manifest_of(others, "other_major")).why, HasSubstr("backplane itself"));
  EXPECT_THAT(info_at(manifest_of(others, "extra")).why, HasSubstr("its name \"taken\""));
  EXPECT_EQ(info_at(manifest_of(others, "takes_op")).state, "found") << "kernels for a device are no claim to its name";
  EXPECT_EQ(info_at(manifest_of(mine, "revised")).state, "found");
}

TEST(Trust, WhatALoadedPluginHasIsTaken) {
  const Loaded first("first");
  const Folder folder;
  folder.plant("bodies", "claims_first", "\"backends\": [\"first\"]");
  add_plugin_path(folder.path());
  EXPECT_THAT(info_at(manifest_of(folder, "bodies")).why,
              AllOf(HasSubstr("its backend \"first\""), HasSubstr(plugin_file("first"))));
}

}  // namespace
}  // namespace backplane::loader_test
