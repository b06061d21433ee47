// Laws of discovery: finding opens nothing; the first use of a backend or op opens its plugin, once, with the plugins
// that bring kernels for it; a refusal is reported where it matters and kept.
#include "memory/process/plugin_finder.hpp"

#include "loader/plugin_files.hpp"
#include "memory/devices/device.hpp"

namespace backplane::loader_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// Entries are for good, so each test plants plugins under names that no other test finds.
std::string state_at(const std::string& path) {
  for (const PluginInfo& plugin : plugins())
    if (fs::path(plugin.path) == path) return plugin.state;
  return "";
}

TEST(Discovery, FindingOpensNothingAndTheFirstLookUpOpens) {
  const Loaded first("first");
  const Folder folder;
  const std::string path = folder.plant("lazy", "lazy", "\"ops\": [\"lazy::scale\"]");
  add_plugin_path(folder.path());
  EXPECT_EQ(state_at(path), "found");
  EXPECT_EQ(find_op("lazy::unheard_of"), BP_NO_OP);
  EXPECT_EQ(state_at(path), "found");
  EXPECT_NE(find_op("lazy::scale"), BP_NO_OP);
  EXPECT_EQ(state_at(path), "loaded");
  EXPECT_EQ(call_on("first", "lazy::scale", {1}), (std::vector<float>{3}));
  unload_plugin("lazy");
  EXPECT_FALSE(has_op("lazy::scale")) << "what a user unloads comes back only when a user loads it";
}

TEST(Discovery, ABackendOpensThePluginsWithKernelsForIt) {
  const Folder folder;
  folder.plant("second", "second", "\"backends\": [\"second\"], \"ops\": [\"second::scale\", \"second::poison\"]");
  const std::string kernels =
      folder.plant("larger", "larger", "\"kernels_for\": [\"second\"], \"ops\": [\"larger::scale\"]");
  add_plugin_path(folder.path());
  EXPECT_THAT(core::plugin_finder.known_backends(), Contains("second"));
  EXPECT_EQ(state_at(kernels), "found");
  parse_device("second");
  EXPECT_EQ(state_at(kernels), "loaded");
  EXPECT_FALSE(core::plugin_finder.for_backend("second")) << "open already";
  unload_plugin("larger");
  unload_plugin("second");
}

TEST(Discovery, APluginThatRegistersWhatItsManifestDoesNotNameIsRefused) {
  const Folder folder;
  const std::string path =
      folder.plant("second", "second", "\"backends\": [\"another\"], \"ops\": [\"second::scale\"]");
  EXPECT_THAT(failure_of([&] { load_plugin(path); }).text,
              AllOf(HasSubstr("registers the backend \"second\""), HasSubstr("\"backends\""),
                    HasSubstr("nothing of plugin \"second\" stays registered")));
  EXPECT_EQ(core::find_backend("second"), nullptr);
}

TEST(Discovery, ARefusalIsReportedToWhoAsksAndKept) {
  const Folder folder;
  const std::string path = folder.plant("half_way", "half", "\"backends\": [\"broken\"], \"ops\": [\"broken::op\"]");
  add_plugin_path(folder.path());
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_THAT(failure_of([] { parse_device("broken"); }).text,
                AllOf(HasSubstr("backend broken"), HasSubstr("the second half is missing")));
    EXPECT_EQ(find_op("broken::op"), BP_NO_OP);
  }
  bool found = false;
  for (const PluginInfo& plugin : plugins())
    if (plugin.state == "refused" && fs::path(plugin.path) == path) {
      found = true;
      EXPECT_THAT(plugin.why, HasSubstr("the second half is missing"));
    }
  EXPECT_TRUE(found);
}

TEST(Discovery, ABrokenManifestDoesNotHideTheOthers) {
  const Folder folder;
  folder.write("a_broken.backplane.json", "{");
  const std::string path = folder.plant("smaller", "smaller", "\"ops\": [\"smaller::none\"]");
  add_plugin_path(folder.path());
  EXPECT_EQ(state_at(path), "found");
  bool reported = false;
  for (const PluginInfo& plugin : plugins())
    reported = reported || (plugin.name == "a_broken" && plugin.state == "refused" &&
                            plugin.why.find("is not JSON") != std::string::npos);
  EXPECT_TRUE(reported);
}

TEST(Discovery, OfTwoPluginsOfOneNameTheFirstFoundCounts) {
  const Folder folder, other;
  const std::string counts = folder.plant("bodies", "bodies", "\"ops\": [\"bodies::silent\"]");
  const std::string loses = other.plant("bodies", "bodies", "\"ops\": [\"bodies::silent\"]");
  add_plugin_path(folder.path());
  add_plugin_path(other.path());
  EXPECT_EQ(state_at(counts), "found");
  EXPECT_EQ(state_at(loses), "refused");
}

TEST(Discovery, ARegistrationMayOpenOtherPlugins) {
  const Loaded first("first");
  const Folder folder;
  folder.plant("looker", "looker", "\"ops\": [\"looker::own\"]");
  add_plugin_path(folder.path());
  const Loaded extra("extra");
  EXPECT_NE(find_op("looker::own"), BP_NO_OP);
  unload_plugin("looker");
}

// A copy of the plugin that is named after its file, with its manifest.
void plant_numbered(const Folder& folder, const std::string& name) {
  fs::copy_file(plugin_file("numbered"), folder.path() + "/" + name + ".so");
  folder.write(name + ".backplane.json", "{\"name\": \"" + name + "\", \"file\": \"" + name +
                                             ".so\", \"contract\": {\"major\": 0, \"minor\": 1}, \"backends\": [\"" +
                                             name + "\"], \"ops\": [\"" + name + "::scale\"]}");
}

// More than the plugins whose leases threads count for themselves; one that fails is in nobody's way.
TEST(Discovery, ThirtyTwoBackendsAtOnce) {
  const Folder folder;
  std::vector<std::string> names;
  for (int i = 0; i < 32; ++i) names.push_back("numbered_" + std::to_string(i));
  for (const std::string& name : names) plant_numbered(folder, name);
  plant_numbered(folder, "bad_numbered");
  add_plugin_path(folder.path());
  std::vector<Tensor> live;
  for (const std::string& name : names) {
    EXPECT_THAT(failure_of([] { parse_device("bad_numbered"); }).text, HasSubstr("this one is broken"));
    live.push_back(tensor_on(name, {1, 2}));
  }
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(values_of(call(find_op(names[i] + "::scale"), {value(live[i])})), (std::vector<float>{7, 14}));
    EXPECT_THAT(failure_of([&] { unload_plugin(names[i]); }).text, HasSubstr("1 tensor storages"));
  }
  live.clear();
  for (const std::string& name : names) unload_plugin(name);
}

TEST(Discovery, APluginWithoutAManifestIsReported) {
  const Folder folder;
  const std::string path = folder.path() + "/lonely.so";
  fs::copy_file(plugin_file("numbered"), path);
  folder.write("text.so", "no plugin");
  add_plugin_path(folder.path());
  add_plugin_path(folder.path());
  int reported = 0;
  for (const PluginInfo& plugin : plugins()) {
    EXPECT_NE(plugin.name, "text");
    if (fs::path(plugin.path) != path) continue;
    ++reported;
    EXPECT_EQ(plugin.state, "refused");
    EXPECT_THAT(plugin.why, AllOf(HasSubstr("has no manifest"), HasSubstr("lonely.backplane.json")));
  }
  EXPECT_EQ(reported, 1);
  EXPECT_EQ(load_plugin(path).state, "loaded") << "by its path it loads";
  unload_plugin("lonely");
}

TEST(Discovery, RowsForABackendThatNobodyBringsAreReported) {
  { const Loaded first("first"); }  // whose op is known from then on
  const Loaded extra("extra");
  EXPECT_THAT(load_plugin(plugin_file("extra")).waits_for, testing::ElementsAre("first"));
  const Loaded first("first");
  EXPECT_THAT(load_plugin(plugin_file("extra")).waits_for, testing::IsEmpty());
}

TEST(Discovery, AFolderThatIsOfferedMayBeMissing) {
  offer_plugin_path("/nowhere/at/all");
  bool reported = false;
  for (const PluginFolder& folder : plugin_folders())
    reported = reported || folder.why.find("/nowhere/at/all") != std::string::npos;
  EXPECT_TRUE(reported);
}

TEST(Discovery, AFolderThatCannotBeReadIsAnError) {
  const Failure failure = failure_of([] { add_plugin_path("/nowhere/at/all"); });
  EXPECT_EQ(failure.code, BP_ERROR_VALUE);
  EXPECT_THAT(failure.text, HasSubstr("/nowhere/at/all"));
}

TEST(Discovery, AnUnknownDeviceIsNamedWithThoseThatExist) {
  const Loaded first("first");
  EXPECT_THAT(failure_of([] { parse_device("abacus"); }).text, AllOf(HasSubstr("abacus"), HasSubstr("first")));
}

}  // namespace
}  // namespace backplane::loader_test
