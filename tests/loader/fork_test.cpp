// Laws of fork: a device of host memory works on in the child, one that was used before and cannot be restarted is
// refused there with the advice to use spawn, and plugins can be loaded and unloaded in the child.
#include <sys/wait.h>
#include <unistd.h>

#include "loader/plugin_files.hpp"

namespace backplane::loader_test {
namespace {

// Runs `law` in a forked child; its message is "" where the law holds.
template <class Law>
std::string in_child(Law law) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      text = law();
    } catch (const std::exception& error) {
      text = std::string("threw: ") + error.what();
    }
    const ssize_t written = write(ends[1], text.data(), text.size());
    _exit(written == static_cast<ssize_t>(text.size()) ? 0 : 2);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? text : "the child died";
}

TEST(Fork, ADeviceOfHostMemoryWorksOn) {
  const Loaded first("first");
  const Tensor before = tensor_on("first", {1, 2});
  EXPECT_EQ(in_child([&]() -> std::string {
              const Tensor after = call(find_op("first::scale"), {value(before)});
              return values_of(after) == std::vector<float>{2, 4} ? "" : "wrong values";
            }),
            "");
  EXPECT_EQ(values_of(before), (std::vector<float>{1, 2}));
}

TEST(Fork, ADeviceThatWasUsedBeforeSaysSpawn) {
  const Loaded second("second");
  EXPECT_EQ(call_on("second", "second::scale", {1}), (std::vector<float>{-1}));
  EXPECT_THAT(
      in_child([]() -> std::string { return failure_of([] { call_on("second", "second::scale", {1}); }).text; }),
      testing::HasSubstr("spawn"));
  EXPECT_EQ(call_on("second", "second::scale", {1}), (std::vector<float>{-1}));
}

TEST(Fork, ACallOnATensorFromBeforeSaysSpawn) {
  const Loaded second("second");
  const Tensor before = tensor_on("second", {1});
  EXPECT_THAT(in_child([&]() -> std::string {
                return failure_of([&] { call(find_op("second::scale"), {value(before)}); }).text;
              }),
              testing::HasSubstr("spawn"));
}

TEST(Fork, PluginsComeAndGoInTheChild) {
  EXPECT_EQ(in_child([]() -> std::string {
              load_plugin(plugin_file("first"));
              if (call_on("first", "first::scale", {1}) != std::vector<float>{2}) return "wrong values";
              unload_plugin("first");
              return has_op("first::scale") ? "still there" : "";
            }),
            "");
  EXPECT_FALSE(has_op("first::scale"));
}

}  // namespace
}  // namespace backplane::loader_test
