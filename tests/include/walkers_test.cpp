// The walkers for plugin authors, against enumeration: loops, folds, lines, indexing; elements as scalars; Philox.
#include "backplane/plugin/loop.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backplane/plugin/element.hpp"
#include "backplane/plugin/indexing.hpp"
#include "backplane/plugin/philox.hpp"
#include "memory/tensors/loop.hpp"
#include "record/toy_record.hpp"

namespace backplane::plugin {
namespace {

using core::ToyTensor;
using Sizes = std::vector<int64_t>;

const bp_op_info kInfo{BP_HEADER(bp_op_info), "acme::op", 0, 0, nullptr};

struct Frame {
  explicit Frame(const bp_loop* loop, bp_dtype compute = BP_INT64) {
    frame.op = &kInfo;
    frame.loop = loop;
    frame.compute = compute;
  }
  Context context() const { return Context{&frame}; }
  bp_frame frame{};
};

bp_value value_of(bp_tensor& tensor) {
  bp_value value{};
  value.tag = BP_TAG_TENSOR;
  value.u.t = &tensor;
  return value;
}
bp_value whole(int64_t number) {
  bp_value value{};
  value.tag = BP_TAG_INT;
  value.flags = BP_VALUE_NUMBER;
  value.u.i = number;
  return value;
}

// A tensor of int64 with memory of its own, permuted at random.
struct Owner {
  Owner(const Sizes& shape, std::mt19937& random, int64_t first = 0)
      : data(static_cast<size_t>(std::max<int64_t>(count_of(shape), 1))),
        tensor(shape, permuted(shape, random), 0, BP_INT64) {
    for (int64_t& element : data) element = first++;
    tensor.handle.dl.data = data.data();
    tensor.handle.nbytes = static_cast<uint64_t>(count_of(shape)) * sizeof(int64_t);
  }
  static Sizes permuted(const Sizes& shape, std::mt19937& random) {
    std::vector<size_t> order(shape.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::shuffle(order.begin(), order.end(), random);
    Sizes strides(shape.size());
    int64_t stride = 1;
    for (const size_t d : order) {
      strides[d] = stride;
      stride *= std::max<int64_t>(shape[d], 1);
    }
    return strides;
  }
  std::vector<int64_t> data;
  ToyTensor tensor;
};

Sizes random_shape(std::mt19937& random, bool zero) {
  Sizes shape(random() % 5);
  for (int64_t& size : shape) size = zero && random() % 8 == 0 ? 0 : 1 + static_cast<int64_t>(random() % 4);
  return shape;
}

TEST(ForEachRun, PiecesOfALoopVisitEachPositionOnce) {
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    const Sizes shape = random_shape(random, true);
    Owner out(shape, random), x(shape, random);
    const bp_tensor* operands[] = {&out.tensor.handle, &x.tensor.handle};
    core::LoopStorage storage;
    core::build_elementwise_loop(operands, 2, storage);
    const Frame frame(&storage.loop);
    const Loop<2> loop(frame.context(), value_of(out.tensor.handle), value_of(x.tensor.handle));
    std::map<const char*, int> seen;
    for (int64_t begin = 0; begin < loop.count();) {
      const int64_t end = std::min(loop.count(), begin + 1 + static_cast<int64_t>(random() % 7));
      for_each_run(loop, begin, end, [&](const auto& at, const auto& step, int64_t n) {
        for (int64_t i = 0; i < n; ++i) ++seen[at[0] + i * step[0]];
      });
      begin = end;
    }
    ASSERT_EQ(static_cast<int64_t>(seen.size()), count_of(shape));
    for (const auto& [address, times] : seen) ASSERT_EQ(times, 1);
  }
}

TEST(MapElements, IsTheFunctionOfEachElementAndOfNumbers) {
  std::mt19937 random(2);
  for (int round = 0; round < 500; ++round) {
    const Sizes shape = random_shape(random, true);
    Owner out(shape, random), x(shape, random, 5);
    const bool flat = random() % 2 == 0;  // the core then states no loop
    if (flat) out.tensor.handle = x.tensor.handle, out.tensor.handle.dl.data = out.data.data();
    const bp_tensor* operands[] = {&out.tensor.handle, &x.tensor.handle, nullptr};
    core::LoopStorage storage;
    core::build_elementwise_loop(operands, 3, storage);
    const Frame frame(flat ? nullptr : &storage.loop);
    map_elements<int64_t, int64_t, int64_t>(
        Loop<3>(frame.context(), value_of(out.tensor.handle), value_of(x.tensor.handle), whole(100)),
        [](int64_t a, int64_t b) { return a * b; });
    const Ints strides(out.tensor.handle.dl.strides, shape.size()), from(x.tensor.handle.dl.strides, shape.size());
    walk<2>(shape, {strides, from}, [&](const auto& at) {
      ASSERT_EQ(out.data[static_cast<size_t>(at[0])], x.data[static_cast<size_t>(at[1])] * 100);
    });
  }
}

TEST(ForEachFold, GivesEachResultItsElements) {
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const Sizes shape = random_shape(random, true);
    std::vector<int32_t> axes;
    Sizes kept;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (random() % 2 == 0)
        axes.push_back(static_cast<int32_t>(d));
      else
        kept.push_back(shape[d]);
    }
    Owner out(kept, random), x(shape, random, 1);
    const bp_tensor *outs[] = {&out.tensor.handle}, *inputs[] = {&x.tensor.handle};
    core::LoopStorage storage;
    core::build_reduction_loop(outs, 1, inputs, 1, axes.data(), static_cast<int32_t>(axes.size()), storage);
    const Frame frame(&storage.loop);
    for_each_fold(frame.context(), MutTensor<void>(&out.tensor.handle), ConstTensor<void>(&x.tensor.handle),
                  [&](char* result, const Folded& elements) {
                    int64_t total = 0, n = 0;
                    elements.for_each_run([&](const char* at, int64_t step, int64_t length) {
                      for (int64_t i = 0; i < length; ++i) total += *reinterpret_cast<const int64_t*>(at + i * step);
                      n += length;
                    });
                    ASSERT_EQ(n, elements.count());
                    *reinterpret_cast<int64_t*>(result) = total;
                  });
    Sizes expected(out.data.size(), 0), seen(shape.size(), 0);
    for (size_t d = 0, k = 0; d < shape.size(); ++d)
      if (std::find(axes.begin(), axes.end(), static_cast<int32_t>(d)) == axes.end())
        seen[d] = out.tensor.handle.dl.strides[k++];
    walk<2>(shape, {Ints(seen), Ints(x.tensor.handle.dl.strides, shape.size())},
            [&](const auto& at) { expected[static_cast<size_t>(at[0])] += x.data[static_cast<size_t>(at[1])]; });
    if (count_of(kept) > 0) {
      ASSERT_EQ(out.data, expected);
    }
  }
}

TEST(Lines, LieAlongTheAxis) {
  const Sizes shape{2, 3, 4};
  const Lines lines(shape, 1);
  EXPECT_EQ(lines.outer, 2);
  EXPECT_EQ(lines.length, 3);
  EXPECT_EQ(lines.inner, 4);
  Sizes starts, results;
  for_each_line(lines, 1, [&](int64_t x, int64_t out) {
    starts.push_back(x);
    results.push_back(out);
  });
  EXPECT_EQ(starts, (Sizes{0, 1, 2, 3, 12, 13, 14, 15}));
  EXPECT_EQ(results, (Sizes{0, 1, 2, 3, 4, 5, 6, 7}));
}

// A call of index by these tensors, with the host's loop for it.
struct IndexCall {
  IndexCall(ToyTensor& x, ToyTensor& out, std::vector<bp_tensor*> by) : list(std::move(by)) {
    core::build_index_loop(out.handle, &x.handle, list, false, nullptr, storage);
  }
  IndexPlan plan() const { return {storage.loop, list}; }

  std::vector<bp_tensor*> list;
  core::LoopStorage storage;
};

// NumPy: zeros((4, 3, 2, 5))[i, :, j] of i (6, 1) and j (7,) has shape (6, 7, 3, 5); [:, i, j] has (4, 6, 7, 5).
TEST(IndexPlan, HasThePositionsWhereNumPyHasThem) {
  ToyTensor x({4, 3, 2, 5}, BP_INT64), i({6, 1}, BP_INT64), j({7}, BP_INT64);
  ToyTensor apart({6, 7, 3, 5}, BP_INT64), together({4, 6, 7, 5}, BP_INT64);
  const IndexPlan first = IndexCall(x, apart, {&i.handle, nullptr, &j.handle}).plan();
  EXPECT_EQ(first.joint.sizes, (Sizes{6, 7}));
  EXPECT_EQ(first.joint.selected, (Sizes{7 * 15 * 8, 15 * 8}));
  EXPECT_EQ(first.joint.indexed, (Sizes{0, 0}));
  EXPECT_EQ(first.kept.sizes, (Sizes{3, 5}));
  EXPECT_EQ(first.kept.indexed, (Sizes{10 * 8, 8}));
  EXPECT_EQ(first.count, 6 * 7 * 3 * 5);
  ASSERT_EQ(first.indices.size(), 2u);
  EXPECT_EQ(first.indices[0].strides, (Sizes{8, 0}));
  EXPECT_EQ(first.indices[1].strides, (Sizes{0, 8}));
  EXPECT_EQ(first.indices[1].axis, 2);
  EXPECT_EQ(first.indices[1].size, 2);
  EXPECT_EQ(first.indices[1].stride, 5 * 8);
  const IndexPlan second = IndexCall(x, together, {nullptr, &i.handle, &j.handle}).plan();
  EXPECT_EQ(second.joint.sizes, (Sizes{6, 7}));
  EXPECT_EQ(second.joint.selected, (Sizes{35 * 8, 5 * 8}));
  EXPECT_EQ(second.kept.sizes, (Sizes{4, 5}));
  EXPECT_EQ(second.kept.selected, (Sizes{210 * 8, 8}));
}

template <class I>
std::vector<int64_t> picked(const std::vector<I>& positions, bp_dtype dtype) {
  std::mt19937 random(0);
  const auto n = static_cast<int64_t>(positions.size());
  Owner x({4}, random, 10), out({n}, random);
  ToyTensor index({n}, dtype);
  index.handle.dl.data = const_cast<I*>(positions.data());
  const IndexCall call(x.tensor, out.tensor, {&index.handle});
  const Frame frame(&call.storage.loop);
  for_each_indexed<int64_t>(frame.context(), call.list, [&](int64_t from, int64_t to) {
    out.data[static_cast<size_t>(to)] = x.data[static_cast<size_t>(from)];
  });
  return out.data;
}

TEST(ForEachIndexed, CountsNegativesFromTheEndAndRefusesWhatIsBeyond) {
  EXPECT_EQ(picked<int64_t>({0, -1, 3}, BP_INT64), (Sizes{10, 13, 13}));
  EXPECT_EQ(picked<uint8_t>({3, 0}, BP_UINT8), (Sizes{13, 10}));
  EXPECT_THROW(picked<int64_t>({4}, BP_INT64), Error);
  EXPECT_THROW(picked<int64_t>({-5}, BP_INT64), Error);
  EXPECT_THROW(picked<uint64_t>({~uint64_t{0}}, BP_UINT64), Error);  // not the last one
}

TEST(Apply, ComputesHalfFloatsInFloatAndRoundsOnce) {
  const float16 one(1.0f), small(0.0004f);  // below half of the last place of 1
  EXPECT_EQ(apply<scalar::add>(one, small).bits, one.bits);
  EXPECT_EQ(static_cast<float>(apply<scalar::multiply>(float16(3.0f), float16(0.5f))), 1.5f);
  const std::complex<float> i(0, 1);
  EXPECT_EQ(apply<scalar::multiply>(i, i), std::complex<float>(-1, 0));
  static_assert(std::is_same_v<ResultOf<scalar::abs, std::complex<float>, 1>, float>);
  static_assert(std::is_same_v<ResultOf<scalar::less, float16, 2>, bool>);
  static_assert(std::is_same_v<ResultOf<scalar::add, bfloat16, 2>, bfloat16>);
  EXPECT_EQ((accepted<scalar::add, 2>), BP_MASK_ANY);
  EXPECT_EQ((accepted<scalar::maximum, 2>), BP_MASK_ANY & ~BP_MASK_COMPLEX);
  EXPECT_EQ((accepted<scalar::bitwise_invert, 1>), BP_MASK_INTEGER | BP_MASK_BOOL);
}

TEST(Convert, IsTheRegistrysCast) {
  EXPECT_EQ(convert<int32_t>(-2.9f), -2);
  EXPECT_EQ((convert<bool>(std::complex<double>(0, 1))), true);
  EXPECT_EQ((convert<float>(std::complex<double>(2, 1))), 2.0f);
  const int64_t from[] = {1, 2, 3};
  float16 to[2];
  convert_run(BP_FLOAT16, BP_INT64)(reinterpret_cast<char*>(to), sizeof(float16), reinterpret_cast<const char*>(from),
                                    16, 2);
  EXPECT_EQ(static_cast<float>(to[0]), 1.0f);
  EXPECT_EQ(static_cast<float>(to[1]), 3.0f);
}

// The known answer of Random123, by the authors of the paper, for a counter and a key of zeros.
TEST(Philox, GivesTheKnownAnswer) {
  EXPECT_EQ(philox(0, 0), (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

}  // namespace
}  // namespace backplane::plugin
