// The law of compatibility: a plugin built for a released minor loads, computes, fails and unloads in this core as it
// did. The files of released/ were built then (released/build.sh), and are never built again.
#include <sys/utsname.h>

#include <algorithm>

#include "loader/host_traits.hpp"
#include "loader/plugin_files.hpp"

namespace backplane::abi_test {
namespace {

using namespace loader_test;
using testing::HasSubstr;

const fs::path kReleased = fs::path(BACKPLANE_SOURCE_DIR) / "tests/abi/released";

struct Released {
  std::string minor, name;  // "0_2", "device_c_gcc"
};

std::vector<Released> released() {
  std::vector<Released> found;
  for (const auto& minor : fs::directory_iterator(kReleased))
    if (minor.is_directory())
      for (const auto& file : fs::directory_iterator(minor))
        if (file.path().extension() == ".so") found.push_back({minor.path().filename(), file.path().stem()});
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.minor + a.name < b.minor + b.name; });
  return found;
}

std::string machine() {
  utsname system{};
  uname(&system);
  return system.machine;
}

// What its source states (released/*.c, *.cpp).
float factor_of(const std::string& name) {
  return name.starts_with("device") ? 2.0f : name.starts_with("stream") ? 3.0f : 5.0f;
}

// Where the op of the file runs: on its own device; one that brings none, on that of another.
std::string device_of(const Released& file) {
  return "released_" + (file.name.starts_with("op") ? std::string("device_c_gcc") : file.name);
}

// A copy where nobody else may write, as the loader asks of every file; loaded for the length of a scope.
class LoadedCopy {
 public:
  explicit LoadedCopy(const Released& file) {
    const std::string path = folder_.path() + "/" + file.name + ".so";
    fs::copy_file(kReleased / file.minor / (file.name + ".so"), path);
    fs::permissions(path, fs::perms::group_write | fs::perms::others_write, fs::perm_options::remove);
    name_ = load_plugin(path).name;
  }
  ~LoadedCopy() {
    unload_plugin(name_);
    EXPECT_EQ(Loaded::state_of(name_), loader::kHostSanitizer.empty() ? "closed" : "parked");
  }

 private:
  Folder folder_;
  std::string name_;
};

class ReleasedPlugin : public testing::TestWithParam<Released> {
 protected:
  void SetUp() override {
    if (machine() != "x86_64") GTEST_SKIP() << "the released files are of x86_64, this machine is " << machine();
  }
};

TEST_P(ReleasedPlugin, ComputesFailsAndUnloads) {
  const Released& file = GetParam();
  std::optional<LoadedCopy> device;
  if (file.name.starts_with("op")) device.emplace(Released{file.minor, "device_c_gcc"});
  const LoadedCopy plugin(file);
  const std::string op = "released_" + file.name + "::scale";
  const float factor = factor_of(file.name);
  EXPECT_EQ(call_on(device_of(file), op, {1, 2, 4}), (std::vector<float>{factor, 2 * factor, 4 * factor}));
  EXPECT_EQ(call_on(device_of(file), op, {}), std::vector<float>{});
  const Failure failure = failure_of([&] { call_on(device_of(file), op, {-1, 2}); });
  EXPECT_NE(failure.code, BP_OK);
  EXPECT_THAT(failure.text, testing::AllOf(HasSubstr(op), HasSubstr("the first element is negative")));
  EXPECT_EQ(call_on(device_of(file), op, {3}), std::vector<float>{3 * factor}) << "it works after a failure";
}

TEST_P(ReleasedPlugin, CopiesWithinItsDeviceAndBack) {
  const Released& file = GetParam();
  if (file.name.starts_with("op")) GTEST_SKIP() << "brings no device";
  const LoadedCopy plugin(file);
  const bp_device device = parse_device(device_of(file));
  EXPECT_EQ(values_of(tensor_on(device_of(file), {1, -2, 3})), (std::vector<float>{1, -2, 3}));
  synchronize(device);
  EXPECT_EQ(devices().back().name, device_of(file));
}

TEST_P(ReleasedPlugin, HasNoFaultForTheLinter) {
  const Released& file = GetParam();
  const Folder folder;
  const std::string path = folder.path() + "/" + file.name + ".so";
  fs::copy_file(kReleased / file.minor / (file.name + ".so"), path);
  fs::permissions(path, fs::perms::group_write | fs::perms::others_write, fs::perm_options::remove);
  for (const LintFinding& finding : lint_plugin(path)) EXPECT_NE(finding.level, LintLevel::kError) << finding.text;
}

TEST_P(ReleasedPlugin, IsSmall) {
  EXPECT_LT(fs::file_size(kReleased / GetParam().minor / (GetParam().name + ".so")), 30u << 10);
}

INSTANTIATE_TEST_SUITE_P(All, ReleasedPlugin, testing::ValuesIn(released()),
                         [](const auto& info) { return info.param.minor + "_" + info.param.name; });

TEST(Released, EachKindIsThereFromBothCompilers) {
  std::vector<std::string> names;
  for (const Released& file : released()) names.push_back(file.minor + "/" + file.name);
  for (const char* kind : {"device_c", "stream_c", "op_cpp"})
    for (const char* compiler : {"gcc", "clang"})
      EXPECT_THAT(names, testing::Contains(std::string("0_2/") + kind + "_" + compiler));
}

}  // namespace
}  // namespace backplane::abi_test
