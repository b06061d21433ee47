// Graphs in files: a saved graph loads as the same graph, with every bit of its constants, and a damaged file is an
// error.
#include "graph/files/model_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "backplane/device.hpp"
#include "graph/files/document.hpp"
#include "graph/files/safetensors.hpp"
#include "graph/plans/executable.hpp"
#include "graph/text/print.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

class ModelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    backplane::testing::null_backend();
    folder_ = std::filesystem::temp_directory_path() / ("model_file_test." + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return (folder_ / "m.safetensors").string(); }
  std::string bytes() const {
    std::ifstream in(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& bytes) const { std::ofstream(path(), std::ios::binary) << bytes; }
  std::string refusal() const {
    try {
      load(path());
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

constexpr const char* kGraph = R"(graph "f" {
  symbol batch of %0 axis 0 example 4
  input %0 "x": float64[batch, 3] "null"
  constant %1 "w": float64[3] "null" = {1.0, -inf, 1e-05}
  constant %2 "": complex64[2] "null" = {1.0, 2.0, 3.0, 4.0}
  %3: float64[batch, 3] "null" = bp::add(%0, %1)  # model.py:12 in f
  %4: float64[batch, 3] "null" = recomputed bp::multiply(%3, 2.5)
  %5: float64[3] "null" = bp::sum(%4, [0], keepdims=false)
  %6: float64[3*batch] "null" = bp::reshape(%4, [3*batch])
  constraint batch <= 100 "the table"  # model.py:9
  output %5, %6, %2
}
)";

TEST_F(ModelFiles, LoadedIsSaved) {
  const auto graph = parse(kGraph);
  save(*graph, path());
  const auto loaded = load(path());
  EXPECT_EQ(loaded->constants()[0].name, "w");
  EXPECT_EQ(loaded->constants()[1].name, "constant.1");
  // But for the name that the second constant has got.
  std::string expected = print(*graph);
  expected.replace(expected.find("%2 \"\""), 5, "%2 \"constant.1\"");
  EXPECT_EQ(print(*loaded), expected);
}

TEST_F(ModelFiles, ExportAndLoadKeepEveryBit) {
  std::mt19937 random(41);
  for (int round = 0; round < 60; ++round) {
    const std::shared_ptr<Graph> graph = random_graph(random, static_cast<int>(random() % 30));
    save(*graph, path());
    const auto loaded = load(path());
    const std::vector<Tensor> inputs = random_inputs(random);
    Executable before(graph), after(loaded);
    ASSERT_EQ(bytes_of(after.run(inputs)), bytes_of(before.run(inputs))) << print(*graph);
  }
}

TEST_F(ModelFiles, DamageIsAnErrorOrAGraph) {
  save(*parse(kGraph), path());
  const std::string whole = bytes();
  std::mt19937 random = fuzz_random();
  const int rounds = fuzz_rounds(1500);
  for (size_t length = 0; length < whole.size(); length += 1 + random() % 40) {
    write(whole.substr(0, length));
    EXPECT_NE(refusal(), "") << "cut off at " << length;
  }
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = whole;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    write(damaged);
    refused += !refusal().empty();
  }
  EXPECT_GT(refused, rounds / 2);
}

std::string refusal_of(const std::string& document) {
  try {
    graph_of_document(document,
                      [](const WantedConstant& wanted) { return empty(wanted.shape, wanted.dtype, wanted.device); });
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_F(ModelFiles, DocumentsThatAreNoneAreNamed) {
  const std::string whole = document_of(*parse(kGraph));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = whole;
    changed.replace(changed.find(from), from.size(), to);
    return refusal_of(changed);
  };
  EXPECT_NE(refusal_of("").find("not JSON"), std::string::npos);
  EXPECT_NE(refusal_of("[]").find("expected an object"), std::string::npos);
  EXPECT_NE(with("\"version\":1", "\"version\":4").find("a newer backplane"), std::string::npos);
  EXPECT_NE(with("backplane.graph", "onnx").find("expected an object"), std::string::npos);
  EXPECT_NE(with("\"op\":\"bp::add\"", "\"op\":\"bp::odd\"").find("has no revision of bp::odd"), std::string::npos);
  EXPECT_NE(with("\"outputs\":[5", "\"outputs\":[50").find("uses %50"), std::string::npos);
  EXPECT_NE(with("\"nodes\":[{", "\"nodes\":[[],{").find("\"op\""), std::string::npos);
  EXPECT_EQ(refusal_of(whole), "");
  EXPECT_THROW(graph_of_document(whole, {}), Error);
  std::string newer = whole;
  const size_t revision = newer.find("\"revision\":", newer.find("\"bp::add\":"));
  newer.replace(newer.find_first_of("0123456789", revision), 1, "99");
  EXPECT_NE(refusal_of(newer).find("revision 99"), std::string::npos) << refusal_of(newer);
  EXPECT_NE(refusal_of(std::string(100000, '[')).find("deep"), std::string::npos);
}

// A file that one version has written is read by every later one. BACKPLANE_WRITE_KEPT=1 writes them anew.
TEST_F(ModelFiles, AKeptFileLoads) {
  const std::string kept = BACKPLANE_GRAPH_TESTS "/kept/version_1.safetensors";
  if (std::getenv("BACKPLANE_WRITE_KEPT")) save(*parse(kGraph), kept);
  Executable executable(load(kept, backplane::testing::null_backend()));
  const std::vector<Tensor> out = executable.run(std::vector{backplane::testing::tensor({1, 2, 3, 4, 5, 6}, {2, 3})});
  const double low = -std::numeric_limits<double>::infinity();
  EXPECT_EQ(backplane::testing::values(out[0]),
            (std::vector<double>{17.5, low, (3 + 1e-05) * 2.5 + (6 + 1e-05) * 2.5}));
  EXPECT_EQ(backplane::testing::values(out[1])[5], (6 + 1e-05) * 2.5);
  EXPECT_EQ(out[2].dtype(), BP_COMPLEX64);
}

constexpr const char* kGraphOfVersion2 = R"(graph "f" {
  symbol n of %0 axis 0 example 4
  input %0 "x": float64[n, 2] "null"
  constant %1 "w": float64[2] "null" = {1.0, 3.0}
  graph "step" {
    input %0 "a": float64[2] "null"
    input %1 "b": float64[2] "null"
    input %2 "c": float64[2] "null"
    %3: float64[2] "null" = bp::multiply(%1, %2)
    %4: float64[2] "null" = bp::add(%0, %3)
    output %4
  }
  %2: float64[2] "null" = bp::scan(graph(0), [%1], [%0], [%1], length=n)
  %3: float64[((n + 1)//2), 2] "null" = bp::slice(%0, [0], [0], [n], [2])
  output %2, %3
}
)";

// With quotients of sizes and control flow.
TEST_F(ModelFiles, AKeptFileOfVersion2Loads) {
  const std::string kept = BACKPLANE_GRAPH_TESTS "/kept/version_2.safetensors";
  if (std::getenv("BACKPLANE_WRITE_KEPT")) save(*parse(kGraphOfVersion2), kept);
  Executable executable(load(kept, backplane::testing::null_backend()));
  const std::vector<Tensor> out = executable.run(std::vector{backplane::testing::tensor({1, 2, 3, 4, 5, 6}, {3, 2})});
  EXPECT_EQ(backplane::testing::values(out[0]), (std::vector<double>{1 + 1 + 3 + 5, 3 + 6 + 12 + 18}));
  EXPECT_EQ(backplane::testing::values(out[1]), (std::vector<double>{1, 2, 5, 6}));
}

TEST_F(ModelFiles, DamageOfControlFlowIsAnErrorOrAGraph) {
  const std::string whole = document_of(*parse(kGraphOfVersion2));
  std::mt19937 random = fuzz_random();
  const int rounds = fuzz_rounds(1500);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string damaged = whole;
    for (uint32_t edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % whole.size();
      if (random() % 2)
        damaged[at % damaged.size()] = static_cast<char>('0' + random() % 10);
      else
        damaged.replace(at % damaged.size(), random() % 8, whole.substr(random() % whole.size(), random() % 8));
    }
    refused += !refusal_of(damaged).empty();
  }
  EXPECT_GT(refused, rounds / 2);
}

TEST_F(ModelFiles, TensorsAloneAreNoModel) {
  write_tensor_file(path(), std::vector<NamedTensor>{{"a", backplane::testing::tensor({1}, {1})}}, {});
  EXPECT_NE(refusal().find("holds tensors and no graph"), std::string::npos);
  EXPECT_NE(refusal().find(path()), std::string::npos);
}

}  // namespace
}  // namespace backplane::core::graph
