// Laws of manifests: written fields are read, a missing field or a wrong type is named, an unknown field is left
// alone; a plugin that a host cannot use is refused with a reason that names both sides.
#include "loader/manifest.hpp"

#include "loader/host_traits.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::loader {
namespace {

using loader_test::Failure;
using loader_test::failure_of;
using loader_test::Folder;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kWhole = R"({
  "name": "acme", "file": "acme.so", "contract": {"major": 0, "minor": 1},
  "backends": ["acme", "acme2"], "host_backends": ["acme2"], "ops": ["acme::twice"], "kernels_for": ["cpu"],
  "cpu_features": ["avx2"], "sanitizer": "address,undefined", "of a later minor": {"x": [1]}
})";

TEST(Manifest, ReadsWhatIsWritten) {
  const Folder folder;
  const Manifest manifest = read_manifest(folder.write("acme.backplane.json", kWhole));
  EXPECT_EQ(manifest.name, "acme");
  EXPECT_EQ(manifest.file, folder.path() + "/acme.so");
  EXPECT_EQ(manifest.contract_major, 0u);
  EXPECT_EQ(manifest.contract_minor, 1u);
  EXPECT_THAT(manifest.backends, ElementsAre("acme", "acme2"));
  EXPECT_THAT(manifest.host_backends, ElementsAre("acme2"));
  EXPECT_THAT(manifest.ops, ElementsAre("acme::twice"));
  EXPECT_THAT(manifest.kernels_for, ElementsAre("cpu"));
  EXPECT_THAT(manifest.cpu_features, ElementsAre("avx2"));
  EXPECT_EQ(manifest.sanitizer, "address,undefined");
}

struct Fault {
  const char* text;
  const char* expected;  // in the message
};

TEST(Manifest, NamesWhatIsWrong) {
  const Fault faults[] = {
      {"", "is not JSON"},
      {"{\"name\": ", "is not JSON: parse error at line 1"},
      {"[1, 2]", "expected an object"},
      {"{}", "\"name\" is missing"},
      {R"({"name": 3})", "\"name\" is 3; expected a string"},
      {R"({"name": "a"})", "\"file\" is missing"},
      {R"({"name": "a", "file": "../a.so", "contract": {"major": 0, "minor": 1}})", "without folders"},
      {R"({"name": "a", "file": "a.so"})", "\"contract\" is missing"},
      {R"({"name": "a", "file": "a.so", "contract": {"major": 0}})", "no \"minor\""},
      {R"({"name": "a", "file": "a.so", "contract": {"major": -1, "minor": 1}})", "no \"major\""},
      {R"({"name": "a", "file": "a.so", "contract": {"major": 0, "minor": 1}, "ops": "x"})",
       "expected a list of strings"},
      {R"({"name": "a", "file": "a.so", "contract": {"major": 0, "minor": 1}, "ops": ["x", 1]})", "\"ops\" holds 1"},
      {R"({"name": "a", "file": "a.so", "contract": {"major": 0, "minor": 1}, "ops": [""]})", "not empty"},
  };
  const Folder folder;
  for (const Fault& fault : faults) {
    const std::string path = folder.write("a.backplane.json", fault.text);
    const Failure failure = failure_of([&] { read_manifest(path); });
    EXPECT_EQ(failure.code, BP_ERROR_VALUE) << fault.text;
    EXPECT_THAT(failure.text, HasSubstr(fault.expected)) << fault.text;
    EXPECT_THAT(failure.text, HasSubstr(path)) << fault.text;
  }
  EXPECT_THAT(failure_of([&] { read_manifest(folder.path() + "/none.backplane.json"); }).text,
              HasSubstr("cannot be read"));
}

TEST(Manifest, RefusesHugeFiles) {
  const Folder folder;
  const std::string path = folder.write("a.backplane.json", std::string(2 << 20, ' '));
  EXPECT_THAT(failure_of([&] { read_manifest(path); }).text, HasSubstr("at most"));
}

TEST(Manifest, FoldersAreReadInOrderAndOnlyManifestsCount) {
  const Folder folder;
  for (const char* name : {"b.backplane.json", "a.backplane.json", "c.json", "d.so"}) folder.write(name, "{}");
  EXPECT_THAT(manifests_in(folder.path()),
              ElementsAre(folder.path() + "/a.backplane.json", folder.path() + "/b.backplane.json"));
  EXPECT_THAT(failure_of([&] { manifests_in(folder.path() + "/none"); }).text, HasSubstr("/none"));
}

Manifest usable() {
  Manifest manifest;
  manifest.contract_major = BP_ABI_MAJOR;
  manifest.contract_minor = 1;
  return manifest;
}

TEST(Usable, NamesBothVersions) {
  EXPECT_EQ(why_unusable(usable()), "");
  Manifest other = usable();
  other.contract_major = BP_ABI_MAJOR + 1;
  EXPECT_THAT(why_unusable(other), testing::AllOf(HasSubstr("major 1"), HasSubstr("major 0")));
  Manifest newer = usable();
  newer.contract_minor = 99;
  EXPECT_THAT(why_unusable(newer),
              testing::AllOf(HasSubstr("needs contract 0.99"), HasSubstr("has 0." + std::to_string(BP_ABI_MINOR))));
}

TEST(Usable, ChecksTheProcessor) {
  Manifest unknown = usable();
  unknown.cpu_features = {"quantum"};
  EXPECT_THAT(why_unusable(unknown), HasSubstr("\"quantum\", which this host does not know"));
#if defined(__x86_64__)
  EXPECT_EQ(why_cpu_feature_missing("sse4.2").empty(), __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ(why_cpu_feature_missing("avx512vnni").empty(), __builtin_cpu_supports("avx512vnni") != 0);
#endif
}

TEST(Usable, ChecksTheSanitizer) {
  EXPECT_EQ(why_sanitizer_unusable(""), "");
  EXPECT_EQ(why_sanitizer_unusable("undefined"), "");
  for (const std::string sanitizer : {"address", "thread"})
    EXPECT_EQ(why_sanitizer_unusable(sanitizer).empty(), sanitizer == kHostSanitizer) << sanitizer;
  const std::string other = kHostSanitizer == "address" ? "thread" : "address";
  EXPECT_THAT(why_sanitizer_unusable(other + ",undefined"), HasSubstr(other));
}

}  // namespace
}  // namespace backplane::loader
