// Parts of graphs that a backend's compiler claims: for any claim, a run gives the same.
#include "graph/regions/region.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "graph/plans/executable.hpp"
#include "graph/regions/crossing.hpp"
#include "graph/text/parse.hpp"
#include "graph/text/print.hpp"
#include "random_graph.hpp"

namespace backplane::core::graph {
namespace {

using namespace graph::testing;

// A compiler that keeps a region's nodes, and calls their ops one by one.
struct Program {
  struct Node {
    uint32_t op;
    std::vector<bp_value> args;  // REF: a value; what else they point to is copied
    std::vector<uint32_t> results;
  };
  std::vector<Node> nodes;
  std::vector<uint32_t> inputs, outputs;
  std::vector<Tensor> constants;  // by value
  std::deque<std::vector<int64_t>> ints;
};

std::function<uint32_t(uint32_t node, const bp_graph& graph)> claim;
uint32_t beyond = BP_NO_REGION;  // the first node's region, whatever `claim` says
int compiled, destroyed, executed, refused;
enum class Silent { kNone, kPartition, kCompile, kExecute } silent;  // which fails without a message

template <class T>
const T& at(const bp_array& array, uint32_t i) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(array.data) + size_t{i} * array.stride);
}

bp_status partition_all(void*, const bp_host*, bp_device, const bp_graph* graph, uint32_t* regions, uint32_t* n,
                        const char**) {
  if (silent == Silent::kPartition) return BP_ERROR_INTERNAL;
  *n = 0;
  for (uint32_t i = 0; i < graph->nodes.count; ++i) {
    regions[i] = claim(i, *graph);
    if (regions[i] != BP_NO_REGION) *n = std::max(*n, regions[i] + 1);
  }
  if (beyond != BP_NO_REGION) regions[0] = beyond;
  return BP_OK;
}

bp_status compile_region(void*, const bp_host* host, bp_device, const bp_graph* region, bp_executable_info*,
                         bp_executable** executable) {
  if (silent == Silent::kCompile) return BP_ERROR_INTERNAL;
  if (refused > 0 && refused-- > 0) {
    host->set_error(BP_ERROR_NOT_IMPLEMENTED, "not today");
    return BP_ERROR_NOT_IMPLEMENTED;
  }
  auto* program = new Program;
  program->inputs.assign(region->inputs, region->inputs + region->n_inputs);
  program->outputs.assign(region->outputs, region->outputs + region->n_outputs);
  for (uint32_t i = 0; i < region->values.count; ++i)
    program->constants.push_back(Tensor::share(at<bp_graph_value>(region->values, i).constant));
  for (uint32_t i = 0; i < region->nodes.count; ++i) {
    const auto& node = at<bp_graph_node>(region->nodes, i);
    Program::Node copy{
        node.op_index, {node.args, node.args + node.n_args}, {node.results, node.results + node.n_results}};
    for (bp_value& v : copy.args)
      if (v.tag == BP_TAG_INT_LIST) v.u.ints = program->ints.emplace_back(v.u.ints, v.u.ints + v.count).data();
    program->nodes.push_back(std::move(copy));
  }
  *executable = reinterpret_cast<bp_executable*>(program);
  ++compiled;
  return BP_OK;
}

bp_status execute_region(const bp_frame* frame, bp_executable* executable, const bp_value* inputs, int32_t n_inputs,
                         bp_value* outs, int32_t n_outs) {
  const auto& program = *reinterpret_cast<Program*>(executable);
  if (silent == Silent::kExecute) return BP_ERROR_INTERNAL;
  ++executed;
  std::vector<Tensor> values = program.constants;
  for (int32_t i = 0; i < n_inputs; ++i) values[program.inputs[i]] = Tensor::share(inputs[i].u.t);
  for (const Program::Node& node : program.nodes) {
    std::vector<bp_value> args = node.args;
    for (bp_value& v : args)
      if (v.tag == BP_TAG_REF) v = backplane::value(values[static_cast<size_t>(v.u.i)]);
    bp_value result{};
    if (bp_status status =
            frame->host->call_op(frame, node.op, args.data(), static_cast<int32_t>(args.size()), &result, 1))
      return status;
    values[node.results[0]] = Tensor::adopt(result.u.t);
  }
  const uint32_t copy = frame->host->find_op("bp::copy");
  for (int32_t i = 0; i < n_outs; ++i) {
    const bp_value arg = backplane::value(values[program.outputs[i]]);
    if (bp_status status = frame->host->call_op(frame, copy, &arg, 1, outs + i, 1)) return status;
  }
  return BP_OK;
}

void destroy_region(void*, bp_executable* executable) {
  delete reinterpret_cast<Program*>(executable);
  ++destroyed;
}

class Regions : public ::testing::Test {
 protected:
  void SetUp() override {
    static constexpr bp_extension_compiler kTable = {BP_HEADER(bp_extension_compiler),
                                                     partition_all,
                                                     compile_region,
                                                     execute_region,
                                                     destroy_region,
                                                     nullptr,
                                                     nullptr,
                                                     nullptr,
                                                     nullptr};
    backend_at(backplane::testing::null_backend().backend).extensions.compiler = &kTable;
    compiled = destroyed = executed = refused = 0;
    silent = Silent::kNone;
  }
  void TearDown() override { backend_at(backplane::testing::null_backend().backend).extensions.compiler = nullptr; }
};

// A run with the claims against one without any.
void expect_same(std::mt19937& random, int nodes) {
  const std::shared_ptr<const Graph> graph = random_graph(random, nodes);
  Executable claimed(graph), plain(graph, {{}, false});
  for (int run = 0; run < 2; ++run) {
    const std::vector<Tensor> inputs = random_inputs(random);
    ASSERT_EQ(bytes_of(claimed.run(inputs)), bytes_of(plain.run(inputs))) << print(*graph);
  }
}

TEST_F(Regions, WhateverIsClaimedTheResultIsTheSame) {
  std::mt19937 random(31);
  for (int round = 0; round < 200; ++round) {
    const uint32_t part = 1 + random() % 4, parts = 1 + random() % 5;
    // Runs of nodes, each second one left alone; every fourth round without regard to whether parts wait for each
    // other.
    claim = [&](uint32_t node, const bp_graph&) {
      const uint32_t region = round % 4 ? node / part : static_cast<uint32_t>(random() % parts);
      return region % 2 ? BP_NO_REGION : region;
    };
    expect_same(random, 1 + static_cast<int>(random() % 30));
  }
  EXPECT_GT(compiled, 200);
  EXPECT_GT(executed, compiled);
  EXPECT_EQ(compiled, destroyed);
}

TEST_F(Regions, WhatIsNotCompiledRunsNodeByNode) {
  std::mt19937 random(32);
  claim = [](uint32_t node, const bp_graph&) { return node / 3; };
  for (int round = 0; round < 20; ++round) {
    refused = 1 + round % 3;
    expect_same(random, 12);
  }
  EXPECT_EQ(compiled, destroyed);
}

TEST_F(Regions, AFailureWithoutAMessageSaysThatAndWhere) {
  claim = [](uint32_t, const bp_graph&) { return 0u; };
  std::mt19937 random(34);
  const std::shared_ptr<const Graph> graph = random_graph(random, 12);
  const std::vector<Tensor> inputs = random_inputs(random);
  const auto run = [&] {
    ::testing::internal::CaptureStderr();
    std::string said;
    try {
      Executable(graph).run(inputs);
    } catch (const Error& error) {
      said = error.what();
    }
    return ::testing::internal::GetCapturedStderr() + said;
  };
  for (const auto& [who, words] :
       {std::pair{Silent::kPartition, "the compiler of null claims nothing: failed without a message"},
        {Silent::kCompile, " nodes on null: failed without a message; it runs node by node"},
        {Silent::kExecute, " nodes on null: failed without a message"}}) {
    silent = who;
    const std::string said = run();
    EXPECT_NE(said.find(words), std::string::npos) << said;
  }
}

TEST_F(Regions, ARegionBeyondTheLastIsSaid) {
  claim = [](uint32_t, const bp_graph&) { return 0u; };
  std::mt19937 random(35);
  beyond = 77;
  ::testing::internal::CaptureStderr();
  expect_same(random, 6);
  const std::string said = ::testing::internal::GetCapturedStderr();
  beyond = BP_NO_REGION;
  EXPECT_NE(said.find("the compiler of null puts node 0 into region 77 of 1; it runs by itself"), std::string::npos)
      << said;
}

TEST_F(Regions, AGraphCrossesAsItIs) {
  claim = [](uint32_t node, const bp_graph& graph) {
    EXPECT_EQ(graph.nodes.count, 3u);
    EXPECT_EQ(graph.n_inputs, 1u);
    EXPECT_EQ(graph.n_outputs, 1u);
    const auto& facts = at<bp_graph_node>(graph.nodes, node);
    EXPECT_EQ(facts.faults, uint64_t{BP_FAULT_NONE}) << facts.op;
    EXPECT_EQ(facts.region, node == 1 ? BP_REGION_REDUCE : BP_REGION_ELEMENTWISE) << facts.op;
    EXPECT_EQ(facts.join, node == 1 ? BP_JOIN_SUM : BP_JOIN_NONE) << facts.op;
    if (node == 1) {
      const auto& sum = at<bp_graph_node>(graph.nodes, 1);
      EXPECT_STREQ(sum.op, "bp::sum");
      EXPECT_EQ(sum.compute, BP_FLOAT64);
      EXPECT_STREQ(sum.source, "model.py:12");
      EXPECT_EQ(sum.args[0].tag, BP_TAG_REF);
      EXPECT_EQ(sum.args[1].tag, BP_TAG_INT_LIST);
      EXPECT_EQ(sum.args[1].u.ints[0], 1) << "axes count from the front";
      const auto& result = at<bp_graph_value>(graph.values, sum.results[0]);
      EXPECT_EQ(result.ndim, 1);
      EXPECT_EQ(result.dims[0], 5);
    }
    return 0u;
  };
  Executable executable(std::shared_ptr<const Graph>(parse(R"(graph "f" {
    symbol n of %0 axis 0 example 2
    input %0 "x": float64[n, 3] "null"
    constant %1 "c": float64[] "null" = {2.0}
    %2: float64[n, 3] "null" = bp::multiply(%0, %1)
    %3: float64[n] "null" = bp::sum(%2, [-1])  # model.py:12 in f
    %4: float64[n] "null" = bp::negative(%3)
    output %4 })")));
  std::mt19937 random(33);
  const std::vector<Tensor> inputs = {random_tensor({5, 3}, random)};
  executable.run(inputs);
  const PlanSummary summary = executable.summary(inputs);
  EXPECT_EQ(summary.regions, 1u);
  EXPECT_EQ(summary.in_regions, 3u);
  EXPECT_EQ(summary.kernels + summary.calls, 0u);
}

TEST(Faults, OfDivisorsAndExponentsAreThoseOfIntegers) {
  constexpr uint64_t kDivision = BP_FAULT_DIVISION, kNone = BP_FAULT_NONE, kBoth = kDivision | BP_FAULT_INDEX;
  for (const bp_dtype dtype : {BP_INT8, BP_INT64, BP_UINT8, BP_UINT64, BP_DTYPE_NONE}) {
    EXPECT_EQ(faults_in(kDivision, dtype), kDivision) << dtype;
    EXPECT_EQ(faults_in(kBoth, dtype), kBoth) << dtype;
  }
  for (const bp_dtype dtype : {BP_BOOL, BP_FLOAT16, BP_FLOAT64, BP_COMPLEX64}) {
    EXPECT_EQ(faults_in(kDivision, dtype), kNone) << dtype;
    EXPECT_EQ(faults_in(BP_FAULT_EXPONENT, dtype), kNone) << dtype;
    EXPECT_EQ(faults_in(kBoth, dtype), uint64_t{BP_FAULT_INDEX}) << dtype;
    EXPECT_EQ(faults_in(BP_FAULTS_UNSTATED, dtype), uint64_t{BP_FAULTS_UNSTATED}) << dtype;
  }
  EXPECT_EQ(faults_in(kNone, BP_INT32), kNone);
}

}  // namespace
}  // namespace backplane::core::graph
