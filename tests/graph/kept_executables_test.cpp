// A stored executable is read instead of compiling again, but only if its file is unchanged.
#include "graph/regions/kept_executables.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "graph/plans/executable.hpp"
#include "graph/text/parse.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

// A compiler of chains of ops with one argument. An executable is the ops' names, a line each.
int compiled, read_back;
bool refuses_bytes, has_no_key;

template <class T>
const T& at(const bp_array& array, uint64_t i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + i * array.stride);
}
std::string names_of(const bp_graph& region) {
  std::string names;
  for (uint64_t i = 0; i < region.nodes.count; ++i) names += std::string(at<bp_graph_node>(region.nodes, i).op) + "\n";
  return names;
}
std::string& text_of(const bp_executable* executable) {
  return *reinterpret_cast<std::string*>(const_cast<bp_executable*>(executable));
}
bp_executable* made_of(std::string text) { return reinterpret_cast<bp_executable*>(new std::string(std::move(text))); }

bp_status claim_all(void*, const bp_host*, bp_device, const bp_graph* graph, uint32_t* regions, uint32_t* n,
                    const char**) {
  std::fill_n(regions, graph->nodes.count, 0);
  *n = 1;
  return BP_OK;
}
bp_status compile(void*, const bp_host*, bp_device, const bp_graph* region, bp_executable_info*,
                  bp_executable** executable) {
  ++compiled;
  *executable = made_of(names_of(*region));
  return BP_OK;
}
bp_status execute(const bp_frame* frame, bp_executable* executable, const bp_value* inputs, int32_t, bp_value* outs,
                  int32_t) {
  Tensor value = Tensor::share(inputs[0].u.t);
  const std::string names = text_of(executable) + "bp::copy\n";
  for (size_t from = 0, end; (end = names.find('\n', from)) != std::string::npos; from = end + 1) {
    const uint32_t op = frame->host->find_op(names.substr(from, end - from).c_str());
    const bool last = end + 1 == names.size();
    const bp_value arg = backplane::value(value);
    bp_value result{};
    if (bp_status status = frame->host->call_op(frame, op, &arg, 1, last ? outs : &result, 1)) return status;
    if (!last) value = Tensor::adopt(result.u.t);
  }
  return BP_OK;
}
void destroy(void*, bp_executable* executable) { delete &text_of(executable); }
bp_status key(void*, const bp_host*, bp_device, const bp_graph* region, char* key, uint64_t room) {
  const std::string text = "chains 1 of " + names_of(*region);
  if (has_no_key || text.size() >= room) return BP_ERROR_NOT_IMPLEMENTED;
  text.copy(key, text.size());
  key[text.size()] = '\0';
  return BP_OK;
}
bp_status serialize(void*, const bp_executable* executable, void* bytes, uint64_t* size) {
  const std::string& text = text_of(executable);
  if (*size >= text.size()) text.copy(static_cast<char*>(bytes), text.size());
  *size = text.size();
  return BP_OK;
}
bp_status deserialize(void*, const bp_host*, bp_device, const void* bytes, uint64_t size, bp_executable_info*,
                      bp_executable** executable) {
  if (refuses_bytes) return BP_ERROR_DATA;
  ++read_back;
  *executable = made_of(std::string(static_cast<const char*>(bytes), size));
  return BP_OK;
}

class KeptExecutables : public ::testing::Test {
 protected:
  void SetUp() override {
    static constexpr bp_extension_compiler kTable = {
        BP_HEADER(bp_extension_compiler), claim_all, compile, execute, destroy, nullptr, key, serialize, deserialize};
    backend_at(backplane::testing::null_backend().backend).extensions.compiler = &kTable;
    compiled = read_back = 0;
    refuses_bytes = has_no_key = false;
    folder_ = std::filesystem::path(::testing::TempDir()) / ("kept" + std::to_string(getpid()));
    setenv("BACKPLANE_EXECUTABLES", folder_.c_str(), 1);
  }
  void TearDown() override {
    backend_at(backplane::testing::null_backend().backend).extensions.compiler = nullptr;
    unsetenv("BACKPLANE_EXECUTABLES");
    std::filesystem::remove_all(folder_);
  }
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> found;
    if (std::filesystem::exists(folder_))
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) found.push_back(entry.path());
    return found;
  }
  // As a process of its own would: a graph read, compiled and run.
  static void run(const std::string& op = "bp::negative") {
    const std::shared_ptr<const Graph> graph(
        parse("graph \"f\" { input %0 \"x\": float64[2, 3] \"null\"\n %1: float64[2, 3] "
              "\"null\" = " +
              op + "(%0)\n output %1 }"));
    std::mt19937 random(7);
    const std::vector<Tensor> inputs = {random_tensor({2, 3}, random)};
    ASSERT_EQ(bytes_of(Executable(graph).run(inputs)), bytes_of(Executable(graph, {{}, false}).run(inputs)));
  }
  std::filesystem::path folder_;
};

TEST_F(KeptExecutables, WhatWasCompiledIsReadBack) {
  run();
  EXPECT_EQ(compiled, 1);
  ASSERT_EQ(files().size(), 1u);
  run();
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(read_back, 1);
  run("bp::exp");
  EXPECT_EQ(compiled, 2) << "another region has another key";
  EXPECT_EQ(files().size(), 2u);
}

TEST_F(KeptExecutables, DamagedBytesAreCompiledAnew) {
  run();
  const std::filesystem::path file = files().at(0);
  std::ifstream in(file, std::ios::binary);
  const std::string whole(std::istreambuf_iterator<char>(in), {});
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    std::ofstream(file, std::ios::binary) << (i % 2 ? damaged : whole.substr(0, i));
    compiled = read_back = 0;
    run();
    ASSERT_EQ(compiled, 1) << "byte " << i;
    ASSERT_EQ(read_back, 0);
  }
  refuses_bytes = true;  // of another version of the compiler, say
  run();
  EXPECT_EQ(compiled, 2);
}

TEST_F(KeptExecutables, NothingIsKeptWithoutAKeyOrAFolder) {
  has_no_key = true;
  run();
  EXPECT_TRUE(files().empty());
  has_no_key = false;
  setenv("BACKPLANE_EXECUTABLES", "", 1);
  run();
  EXPECT_TRUE(files().empty());
  EXPECT_EQ(compiled, 2);
}

}  // namespace
}  // namespace backplane::core::graph
