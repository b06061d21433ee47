// A fused chain is one dispatch and has the bits of its ops; compiling it makes its pipeline, once for each content;
// memory that it may share, it may be given; what nobody wants is not written.
#include <cmath>

#include "../device_fixture.hpp"
#include "backplane/abi/extensions.h"
#include "runtime/device.hpp"

namespace {

using backplane::vulkan::Counts;

// y = maximum(-(x * x + 1), x) - x * x over float32 vectors: five nodes. The first is read twice.
class Chain {
 public:
  explicit Chain(int64_t size) : dims_{size} {
    for (bp_graph_value& value : values_) value = {BP_FLOAT32, 0, 1, dims_, {0, 0}, nullptr};
    node("bp::multiply", 1, {of(0), of(0)});
    node("bp::add", 2, {of(1), number(1)});
    node("bp::negative", 3, {of(2)});
    node("bp::maximum", 4, {of(3), of(0)});
    node("bp::subtract", 5, {of(4), of(1)});
    graph_ = {BP_HEADER(bp_graph),
              {values_, 6, sizeof(bp_graph_value)},
              {nodes_, n_nodes_, sizeof(bp_graph_node)},
              inputs_,
              outputs_,
              1,
              2};
  }
  const bp_graph* graph() const { return &graph_; }

  static std::vector<float> computed(std::vector<float> x) {
    for (float& each : x) {
      const float square = each * each;
      each = std::fmax(-(square + 1.0f), each) - square;
    }
    return x;
  }

 private:
  static bp_value of(int64_t value) {
    bp_value made{};
    made.tag = BP_TAG_REF;
    made.u.i = value;
    return made;
  }
  static bp_value number(int64_t of) {
    bp_value made{};
    made.tag = BP_TAG_INT;
    made.flags = BP_VALUE_NUMBER;
    made.u.i = of;
    return made;
  }
  void node(const char* op, uint32_t result, const std::vector<bp_value>& args) {
    std::copy(args.begin(), args.end(), args_[n_nodes_]);
    results_[n_nodes_] = result;
    nodes_[n_nodes_] = {op,
                        0,
                        1,
                        args_[n_nodes_],
                        &results_[n_nodes_],
                        static_cast<uint32_t>(args.size()),
                        1,
                        BP_FLOAT32,
                        0,
                        0,
                        ~uint64_t{0},
                        0,
                        nullptr,
                        BP_FAULT_NONE,
                        BP_REGION_ELEMENTWISE,
                        BP_JOIN_NONE,
                        0};
    ++n_nodes_;
  }

  int64_t dims_[1];
  bp_graph_value values_[6];
  bp_value args_[5][2];
  uint32_t results_[5], n_nodes_ = 0;
  bp_graph_node nodes_[5];
  uint32_t inputs_[1] = {0}, outputs_[2] = {5, 1};
  bp_graph graph_{};
};

// y = second(first(x)) of float32 vectors, by ops of one operand.
class Pair {
 public:
  Pair(const char* first, const char* second, int64_t size) : dims_{size} {
    const char* ops[2] = {first, second};
    for (bp_graph_value& value : values_) value = {BP_FLOAT32, 0, 1, dims_, {0, 0}, nullptr};
    for (uint32_t i = 0; i < 2; ++i) {
      args_[i].tag = BP_TAG_REF;
      args_[i].u.i = i;
      nodes_[i] = {ops[i],
                   0,
                   1,
                   &args_[i],
                   &values_made_[i],
                   1,
                   1,
                   BP_FLOAT32,
                   0,
                   0,
                   ~uint64_t{0},
                   0,
                   nullptr,
                   BP_FAULT_NONE,
                   BP_REGION_ELEMENTWISE,
                   BP_JOIN_NONE,
                   0};
    }
    graph_ = {BP_HEADER(bp_graph),
              {values_, 3, sizeof(bp_graph_value)},
              {nodes_, 2, sizeof(bp_graph_node)},
              inputs_,
              outputs_,
              1,
              1};
  }
  const bp_graph* graph() const { return &graph_; }

 private:
  int64_t dims_[1];
  bp_graph_value values_[3];
  bp_value args_[2] = {};
  uint32_t values_made_[2] = {1, 2}, inputs_[1] = {0}, outputs_[1] = {2};
  bp_graph_node nodes_[2];
  bp_graph graph_{};
};

class FuseTest : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    compiler = static_cast<const bp_extension_compiler*>(table.extension(table.context, BP_EXTENSION_COMPILER, 1));
    ASSERT_NE(compiler, nullptr);
    host.table.retain = [](bp_tensor*) {};
    host.table.release = [](bp_tensor*) {};
    uint32_t regions[5] = {}, count = 0;
    const char* reasons[5] = {};
    ASSERT_EQ(compiler->partition(table.context, &host.table, here, chain.graph(), regions, &count, reasons), BP_OK)
        << last_error;
    ASSERT_EQ(count, 1u) << reasons[0];
    for (const uint32_t region : regions) EXPECT_EQ(region, 0u);
    void* handle = nullptr;
    ASSERT_EQ(table.native(table.context, kOrdinal, stream, "Counts", &handle), BP_OK);
    counts = static_cast<Counts*>(handle);
    executable = compile(chain.graph());
    ASSERT_NE(executable, nullptr);
  }
  void TearDown() override {
    if (executable != nullptr) compiler->destroy(table.context, executable);
    DeviceTest::TearDown();
  }

  bp_executable* compile(const bp_graph* graph) {
    bp_executable_info info{BP_HEADER(bp_executable_info), 0, 0, 0};
    bp_executable* made = nullptr;
    EXPECT_EQ(compiler->compile(table.context, &host.table, here, graph, &info, &made), BP_OK) << last_error;
    return made;
  }
  bp_status execute(Vector& x, Vector* y, Vector* square, uint64_t ticket) {
    return execute(executable, x, {y, square}, ticket);
  }
  bp_status execute(bp_executable* what, Vector& x, const std::vector<Vector*>& given, uint64_t ticket) {
    const bp_op_info info{BP_HEADER(bp_op_info), "a region", 0, 1, nullptr};
    bp_frame frame{};
    frame.header = BP_HEADER(bp_frame);
    frame.host = &host.table;
    frame.op = &info;
    frame.context = table.context;
    frame.stream = stream;
    frame.ordinal = kOrdinal;
    frame.ticket = ticket;
    bp_value in{};
    std::vector<bp_value> outs(given.size());
    in.tag = BP_TAG_TENSOR;
    in.u.t = &x.tensor;
    for (size_t k = 0; k < given.size(); ++k) {
      if (given[k] == nullptr) continue;
      outs[k].tag = BP_TAG_TENSOR;
      outs[k].flags = BP_VALUE_GIVEN;
      outs[k].u.t = &given[k]->tensor;
    }
    return compiler->execute(&frame, what, &in, 1, outs.data(), static_cast<int32_t>(outs.size()));
  }

  static constexpr int64_t kSize = 5000;
  const bp_device here{0, kOrdinal};
  Chain chain{kSize};
  const bp_extension_compiler* compiler = nullptr;
  const Counts* counts = nullptr;
  bp_executable* executable = nullptr;
};

TEST_F(FuseTest, AChainOfFiveOpsIsOneDispatchAndNoObjects) {
  Vector &x = new_vector(kSize, 0.3f, stream, 1), &y = new_vector(kSize, 0, stream, 2);
  Vector& square = new_vector(kSize, 0, stream, 3);
  ASSERT_EQ(add(y, x, x, stream, 4), BP_OK) << last_error;  // opens the stream's batch, which is an object
  const uint64_t commands = counts->commands, objects = counts->objects;
  ASSERT_EQ(execute(x, &y, &square, 5), BP_OK) << last_error;
  EXPECT_EQ(counts->commands - commands, 1u);
  EXPECT_EQ(counts->objects - objects, 0u);  // compiling made the pipeline
  EXPECT_EQ(read(y, stream), Chain::computed(std::vector<float>(kSize, 0.3f)));
  EXPECT_EQ(read(square, stream), std::vector<float>(kSize, 0.3f * 0.3f));
}

TEST_F(FuseTest, TheSameRegionCompiledAgainIsTheSamePipeline) {
  const uint64_t objects = counts->objects;
  const Chain other(7);  // of another size
  bp_executable* again = compile(other.graph());
  EXPECT_EQ(counts->objects - objects, 0u);
  compiler->destroy(table.context, again);
}

TEST_F(FuseTest, PipelinesThatNobodyRunsGoButForTheLast) {
  using backplane::vulkan::RegionPipelines;
  Vector &x = new_vector(kSize, 0.3f, stream, 1), &y = new_vector(kSize, 0, stream, 2);
  const Pair used("bp::exp", "bp::negative", kSize);
  bp_executable* gone = compile(used.graph());
  ASSERT_EQ(execute(gone, x, {&y}, 3), BP_OK) << last_error;
  compiler->destroy(table.context, gone);  // before the device has run it
  const char* ops[] = {"bp::sin", "bp::cos", "bp::tanh", "bp::sqrt", "bp::negative", "bp::abs", "bp::square"};
  uint64_t made = 0;
  for (const char* first : ops)
    for (const char* second : ops) {
      const uint64_t objects = counts->objects;
      compiler->destroy(table.context, compile(Pair(first, second, kSize).graph()));
      made += counts->objects - objects;
    }
  EXPECT_GT(made, RegionPipelines::kMostIdle + 3);
  // With the fixture's pipeline, the one that a batch holds, and the last, which its executable held.
  EXPECT_LE(counts->region_pipelines, RegionPipelines::kMostIdle + 3);
  EXPECT_NEAR(read(y, stream).back(), -std::exp(0.3f), 1e-6);
  const uint64_t objects = counts->objects;
  compiler->destroy(table.context, compile(Pair("bp::square", "bp::square", kSize).graph()));
  EXPECT_EQ(counts->objects - objects, 0u);  // the last one is still there
}

TEST_F(FuseTest, AnOutputMayTakeTheInputsMemory) {
  ASSERT_EQ(compiler->may_share(table.context, executable, 0, 0), 1);
  Vector &x = new_vector(kSize, -2, stream, 1), &square = new_vector(kSize, 0, stream, 2);
  ASSERT_EQ(execute(x, &x, &square, 3), BP_OK) << last_error;
  EXPECT_EQ(read(x, stream), Chain::computed(std::vector<float>(kSize, -2)));
}

TEST_F(FuseTest, WhatNobodyWantsIsNotWritten) {
  Vector &x = new_vector(kSize, 2, stream, 1), &square = new_vector(kSize, 0, stream, 2);
  ASSERT_EQ(execute(x, nullptr, &square, 3), BP_OK) << last_error;
  EXPECT_EQ(read(square, stream), std::vector<float>(kSize, 4));
}

TEST_F(FuseTest, StridedOperandsAreReadWhereTheyLie) {
  Vector &every = new_vector(2 * kSize, 3, stream, 1), &y = new_vector(kSize, 0, stream, 2);
  every.tensor.dl.shape = &y.size;  // its second half lies between the elements that are seen
  int64_t stride = 2;
  every.tensor.dl.strides = &stride;
  every.tensor.flags = 0;
  ASSERT_EQ(execute(every, &y, nullptr, 3), BP_OK) << last_error;
  EXPECT_EQ(read(y, stream), Chain::computed(std::vector<float>(kSize, 3)));
  const uint64_t commands = counts->commands;
  ASSERT_EQ(execute(every, &y, nullptr, 4), BP_OK) << last_error;
  EXPECT_EQ(counts->commands - commands, 1u);
}

TEST_F(FuseTest, OtherNumbersOfTensorsAreRefused) {
  bp_op_info info{BP_HEADER(bp_op_info), "a region", 0, 1, nullptr};
  bp_frame frame{};
  frame.header = BP_HEADER(bp_frame);
  frame.host = &host.table;
  frame.op = &info;
  frame.context = table.context;
  frame.stream = stream;
  bp_value none[1] = {};
  EXPECT_NE(compiler->execute(&frame, executable, none, 0, none, 1), BP_OK);
  EXPECT_NE(last_error.find("found 0 inputs and 1 outputs, expected 1 and 2"), std::string::npos) << last_error;
}

}  // namespace
