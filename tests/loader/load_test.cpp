// Laws of loading: each bad file is refused with its reason and leaves nothing behind; tables of other sizes are read
// as far as both sides know them; registration is all or nothing.
#include "loader/plugin_files.hpp"

#define BP_TEXT_OF(x) #x
#define BP_TEXT(x) BP_TEXT_OF(x)
#define BP_MINOR_TEXT BP_TEXT(BP_ABI_MINOR)

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

struct Bad {
  const char* plugin;
  bp_status code;
  const char* reason;
};

class BadPlugin : public testing::TestWithParam<Bad> {};

TEST_P(BadPlugin, IsRefusedWithItsReasonAndLeavesNothing) {
  const std::vector<OpHandle> ops = all_ops();
  const std::string path = plugin_file(GetParam().plugin);
  // Twice: a refusal must not change what the next attempt meets.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Failure failure = failure_of([&] { load_plugin(path); });
    EXPECT_EQ(failure.code, GetParam().code) << failure.text;
    EXPECT_THAT(failure.text, AllOf(HasSubstr("load_plugin: "), HasSubstr(path), HasSubstr(GetParam().reason)));
  }
  EXPECT_EQ(all_ops(), ops);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadPlugin,
    testing::Values(Bad{"no_symbol", BP_ERROR_VALUE, "does not export bp_plugin_query"},
                    Bad{"other_major", BP_ERROR_VERSION, "contract major 7 and this host has major 0"},
                    Bad{"newer_minor", BP_ERROR_VERSION,
                        "needs contract 0.99 or newer and this host has 0." BP_MINOR_TEXT},
                    Bad{"size_8", BP_ERROR_VERSION, "invalid size 8"},
                    Bad{"size_odd", BP_ERROR_VERSION, "invalid size 61"},
                    Bad{"size_huge", BP_ERROR_VERSION, "invalid size 1000000"},
                    Bad{"no_name", BP_ERROR_VALUE, "its table has no name"},
                    Bad{"bad_name", BP_ERROR_VALUE, "its name is \"two words\""},
                    Bad{"no_register", BP_ERROR_VALUE, "no register_all"},
                    Bad{"query_fails", BP_ERROR_VERSION, "refused a host of contract 0." BP_MINOR_TEXT},
                    Bad{"throws_in_query", BP_ERROR_VALUE, "bp_plugin_query threw"},
                    Bad{"throws_in_register", BP_ERROR_INTERNAL, "threw an exception: out of luck"},
                    Bad{"half_way", BP_ERROR_DEVICE, "the second half is missing"},
                    Bad{"half_way_silent", BP_ERROR_DEVICE, "register_all failed with status 8"}),
    [](const auto& info) { return std::string(info.param.plugin); });

TEST(Load, RefusesWhatIsNoFileOfOurs) {
  const Folder folder;
  EXPECT_THAT(failure_of([&] { load_plugin(folder.path() + "/none.so"); }).text, HasSubstr("No such file"));
  EXPECT_THAT(failure_of([&] { load_plugin(folder.path()); }).text, HasSubstr("is not a file"));
  const std::string text = folder.write("text.so", "hello, I am a text");
  EXPECT_THAT(failure_of([&] { load_plugin(text); }).text, HasSubstr("is not a shared object"));
  const std::string empty = folder.write("empty.so", "");
  EXPECT_THAT(failure_of([&] { load_plugin(empty); }).text, HasSubstr("is not a shared object"));
}

// A plugin cut short anywhere is refused; none brings the process down.
TEST(Load, RefusesTruncatedFiles) {
  const Folder folder;
  std::ifstream in(plugin_file("larger"), std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  for (size_t size = 0; size < whole.size(); size += whole.size() / 37 + 1) {
    const std::string path = folder.write("cut.so", whole.substr(0, size));
    EXPECT_EQ(failure_of([&] { load_plugin(path); }).code, BP_ERROR_VALUE) << size;
  }
}

TEST(Load, DoesNotOpenWhatIsNoPlugin) {
  unsetenv("BACKPLANE_TEST_OPENED_NO_SYMBOL");
  EXPECT_NE(failure_of([] { load_plugin(plugin_file("no_symbol")); }).code, BP_OK);
  EXPECT_EQ(std::getenv("BACKPLANE_TEST_OPENED_NO_SYMBOL"), nullptr);
}

TEST(Load, IgnoresHintsThatItDoesNotKnow) {
  const Loaded plugin("hint_flags");
  EXPECT_EQ(Loaded::state_of("hint_flags"), "loaded");
}

TEST(Load, ReadsTheKnownPartOfALargerTable) {
  const Loaded plugin("larger");
  EXPECT_EQ(Loaded::state_of("larger"), "loaded");
}

// `stop` is beyond the table's end: the unload must not call the bytes there.
TEST(Load, TakesASmallerTableAsItIs) {
  { const Loaded plugin("smaller"); }
  EXPECT_NE(Loaded::state_of("smaller"), "loaded");
}

TEST(Load, IsAllOrNothing) {
  EXPECT_NE(failure_of([] { load_plugin(plugin_file("half_way")); }).code, BP_OK);
  EXPECT_FALSE(has_op("half::first"));
  EXPECT_NE(failure_of([] { parse_device("half"); }).code, BP_OK);
  for (const PluginInfo& plugin : plugins())
    if (plugin.name == "half" && plugin.manifest.empty()) {
      EXPECT_EQ(plugin.state, "refused");
      EXPECT_THAT(plugin.why, HasSubstr("the second half is missing"));
      EXPECT_THAT(plugin.ops, testing::IsEmpty());
      EXPECT_THAT(plugin.backends, testing::IsEmpty());
    }
}

TEST(Load, MaySucceedAfterAFailure) {
  EXPECT_NE(failure_of([] { load_plugin(plugin_file("half_way")); }).code, BP_OK);
  setenv("BACKPLANE_TEST_HALF_WAY_WORKS", "1", 1);
  {
    const Loaded plugin("half_way");
    EXPECT_TRUE(has_op("half::first"));
    parse_device("half");
  }
  unsetenv("BACKPLANE_TEST_HALF_WAY_WORKS");
}

TEST(Load, ASecondTimeGivesTheSamePlugin) {
  const Loaded first("first");
  const OpHandle op = find_op("first::scale");
  const Folder folder;
  fs::create_symlink(plugin_file("first"), folder.path() + "/link.so");
  EXPECT_EQ(load_plugin(folder.path() + "/link.so").path, load_plugin(plugin_file("first")).path);
  EXPECT_EQ(find_op("first::scale"), op);
}

TEST(Load, ATakenNameNamesItsOwner) {
  const Loaded first("first");
  const Folder folder;
  const std::string copy = folder.path() + "/copy.so";
  fs::copy_file(plugin_file("first"), copy);
  EXPECT_THAT(failure_of([&] { load_plugin(copy); }).text,
              AllOf(HasSubstr("the name \"first\" is taken"), HasSubstr(plugin_file("first"))));

  for (const char* taker : {"takes_op", "takes_backend"}) {
    const Failure failure = failure_of([&] { load_plugin(plugin_file(taker)); });
    EXPECT_EQ(failure.code, BP_ERROR_VALUE);
    EXPECT_THAT(failure.text, AllOf(HasSubstr("is taken by plugin \"first\""), HasSubstr("plugin \"taker\"")));
    EXPECT_FALSE(has_op("taker::own")) << taker;
  }
  EXPECT_EQ(call_on("first", "first::scale", {1, 2}), (std::vector<float>{2, 4}));
}

TEST(Load, OfTwoVersionsOneIsThereAtATime) {
  const Loaded first("first");
  const auto is_version = [](const char* file, const char* version, float factor) {
    const PluginInfo info = load_plugin(plugin_file(file));
    EXPECT_EQ(info.version, version);
    EXPECT_EQ(info.path, plugin_file(file));
    const char* other = std::string(file) == "extra" ? "extra_2" : "extra";
    EXPECT_THAT(failure_of([&] { load_plugin(plugin_file(other)); }).text,
                AllOf(HasSubstr("the name \"extra\" is taken"), HasSubstr(plugin_file(file)), HasSubstr("unload")));
    EXPECT_EQ(call_on("first", "extra::scale", {1}), (std::vector<float>{factor}));
    unload_plugin("extra");
  };
  for (int again = 0; again < 2; ++again) {
    is_version("extra", "1.0", 3);
    is_version("extra_2", "2.0", 7);
  }
}

TEST(Load, HoldsTheManifestAgainstTheFile) {
  const Folder folder;
  const std::string path = folder.plant("larger", "somebody_else");
  EXPECT_THAT(failure_of([&] { load_plugin(path); }).text,
              AllOf(HasSubstr("its name is \"larger\""), HasSubstr("its manifest says \"somebody_else\"")));
  folder.plant("larger", "larger", "\"cpu_features\": [\"quantum\"]");
  EXPECT_THAT(failure_of([&] { load_plugin(path); }).text, HasSubstr("quantum"));
  folder.write("larger.backplane.json", "{");
  EXPECT_THAT(failure_of([&] { load_plugin(path); }).text, HasSubstr("is not JSON"));
}

TEST(Load, ReportsWhatWasRegistered) {
  const Loaded first("first");
  const PluginInfo info = load_plugin(plugin_file("first"));
  EXPECT_EQ(info.name, "first");
  EXPECT_EQ(info.version, "1.0");
  EXPECT_EQ(info.state, "loaded");
  EXPECT_THAT(info.backends, testing::ElementsAre("first"));
  EXPECT_THAT(info.ops, testing::ElementsAre("first::scale"));
  EXPECT_EQ(info.leases, 0u);
}

}  // namespace
}  // namespace backplane::loader_test
