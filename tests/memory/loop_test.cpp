// Laws of loop descriptors and of overlap, against enumeration of every element's offset.
#include "memory/tensors/loop.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "memory/tensors/overlap.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using Offsets = std::vector<int64_t>;  // one per operand

// The offsets of all operands, over all iterations of a descriptor.
std::multiset<Offsets> walk(const bp_loop& loop) {
  std::multiset<Offsets> all;
  std::vector<int64_t> index(static_cast<size_t>(loop.rank), 0);
  if (loop.count == 0) return all;
  for (;;) {
    Offsets at(static_cast<size_t>(loop.n_operands), 0);
    for (int32_t i = 0; i < loop.n_operands; ++i)
      for (int32_t d = 0; d < loop.rank; ++d)
        at[static_cast<size_t>(i)] += index[static_cast<size_t>(d)] * loop.strides[i * loop.rank + d];
    all.insert(at);
    int32_t d = loop.rank - 1;
    for (; d >= 0 && ++index[static_cast<size_t>(d)] == loop.sizes[d]; --d) index[static_cast<size_t>(d)] = 0;
    if (d < 0) return all;
  }
}

int64_t offset_of(const ToyTensor* t, const Ints& index) {
  if (!t) return 0;
  int64_t at = 0;
  const size_t lead = index.size() - t->shape.size();
  for (size_t d = 0; d < t->shape.size(); ++d)
    if (t->shape[d] != 1) at += index[lead + d] * t->strides[d] * kItemSize[t->handle.dtype];
  return at;
}

template <class F>
void for_each_index(const Ints& sizes, F&& f) {
  if (std::count(sizes.begin(), sizes.end(), 0)) return;
  Ints index(sizes.size(), 0);
  for (;;) {
    f(index);
    size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

class Shapes {
 public:
  explicit Shapes(unsigned seed) : random_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  Ints sizes(int64_t max_rank, int64_t max_size, bool zero = true) {
    Ints sizes(static_cast<size_t>(below(max_rank + 1)));
    for (int64_t& s : sizes) s = below(3) ? 1 + below(max_size) : (zero && !below(6) ? 0 : 1);
    return sizes;
  }
  // Contiguous, permuted, stepped, reversed or expanded.
  std::unique_ptr<ToyTensor> tensor(const Ints& sizes) {
    const bp_dtype dtype = std::vector<bp_dtype>{BP_INT8, BP_FLOAT32, BP_COMPLEX128}[static_cast<size_t>(below(3))];
    if (!below(3)) return std::make_unique<ToyTensor>(sizes, dtype);
    std::vector<size_t> order(sizes.size());
    for (size_t d = 0; d < order.size(); ++d) order[d] = d;
    std::shuffle(order.begin(), order.end(), random_);
    Ints strides(sizes.size());
    int64_t stride = 1 + below(2);
    for (size_t d : order) {
      strides[d] = below(6) ? stride : 0;
      if (!below(5)) strides[d] = -strides[d];
      stride *= std::max<int64_t>(sizes[d], 1) + below(2);
    }
    return std::make_unique<ToyTensor>(sizes, strides, 0, dtype);
  }
  // A shape that broadcasts to `sizes`.
  Ints part_of(const Ints& sizes) {
    Ints part(sizes.begin() + below(static_cast<int64_t>(sizes.size()) + 1), sizes.end());
    for (int64_t& s : part)
      if (!below(4)) s = 1;
    return part;
  }

 private:
  std::mt19937 random_;
};

TEST(ElementwiseLoop, VisitsExactlyTheBroadcastOffsets) {
  Shapes shapes(1);
  for (int round = 0; round < 3000; ++round) {
    const Ints sizes = shapes.sizes(5, 4);
    std::vector<std::unique_ptr<ToyTensor>> tensors;
    tensors.push_back(shapes.tensor(sizes));
    const int64_t n_inputs = shapes.below(4);
    for (int64_t i = 0; i < n_inputs; ++i)
      tensors.push_back(shapes.below(5) ? shapes.tensor(shapes.below(2) ? sizes : shapes.part_of(sizes)) : nullptr);
    std::vector<const bp_tensor*> operands;
    for (const auto& t : tensors) operands.push_back(t ? &t->handle : nullptr);
    LoopStorage out;
    build_elementwise_loop(operands.data(), static_cast<int32_t>(operands.size()), out);
    std::multiset<Offsets> expected;
    for_each_index(sizes, [&](const Ints& index) {
      Offsets at;
      for (const auto& t : tensors) at.push_back(offset_of(t.get(), index));
      expected.insert(at);
    });
    ASSERT_EQ(out.loop.count, static_cast<int64_t>(expected.size()));
    ASSERT_EQ(walk(out.loop), expected);
    for (int32_t d = 0; d < out.loop.rank; ++d) ASSERT_TRUE(out.loop.sizes[d] > 1 || out.loop.count == 0);
  }
}

TEST(ElementwiseLoop, MergesWhatCanBeMerged) {
  ToyTensor out({2, 3, 4}), x({2, 3, 4}), bias({4}), column({3, 1});
  const auto rank = [&](std::vector<const bp_tensor*> operands) {
    LoopStorage storage;
    build_elementwise_loop(operands.data(), static_cast<int32_t>(operands.size()), storage);
    return storage.loop.rank;
  };
  EXPECT_EQ(rank({&out.handle, &x.handle}), 1);
  EXPECT_EQ(rank({&out.handle, &x.handle, nullptr}), 1);
  EXPECT_EQ(rank({&out.handle, &x.handle, &bias.handle}), 2);
  EXPECT_EQ(rank({&out.handle, &x.handle, &column.handle}), 3);
  ToyTensor one({1, 1, 1}), row({1, 3, 1});
  EXPECT_EQ(rank({&one.handle, &one.handle}), 0);
  EXPECT_EQ(rank({&row.handle, &row.handle}), 1);
  // All operands transposed alike: walked in memory's order.
  ToyTensor transposed({4, 3}, {1, 4}, 0), also({4, 3}, {1, 4}, 0);
  EXPECT_EQ(rank({&transposed.handle, &also.handle}), 1);
}

TEST(ElementwiseLoop, KeepsTheOrderWhereOperandsDisagree) {
  ToyTensor out({3, 4}), x({3, 4}, {1, 3}, 0);
  const bp_tensor* operands[] = {&out.handle, &x.handle};
  LoopStorage storage;
  build_elementwise_loop(operands, 2, storage);
  ASSERT_EQ(storage.loop.rank, 2);
  EXPECT_EQ(storage.loop.sizes[1], 4);  // the output's innermost dim
}

TEST(ReductionLoop, AddsEachInputElementToItsGroup) {
  Shapes shapes(2);
  for (int round = 0; round < 3000; ++round) {
    const Ints sizes = shapes.sizes(5, 4);
    const auto x = shapes.tensor(sizes);
    const bool keep = shapes.below(2);
    std::vector<int32_t> axes;
    Ints kept_sizes;
    for (size_t d = 0; d < sizes.size(); ++d) {
      const bool gone = shapes.below(2);
      if (gone) axes.push_back(static_cast<int32_t>(d));
      if (!gone || keep) kept_sizes.push_back(gone ? 1 : sizes[d]);
    }
    const auto out = shapes.tensor(kept_sizes);
    const bp_tensor* outs[] = {&out->handle};
    const bp_tensor* inputs[] = {&x->handle};
    LoopStorage storage;
    build_reduction_loop(outs, 1, inputs, 1, axes.data(), static_cast<int32_t>(axes.size()), storage);
    std::multiset<Offsets> expected;
    for_each_index(sizes, [&](const Ints& index) {
      Ints at;
      for (size_t d = 0; d < index.size(); ++d) {
        const bool gone = std::count(axes.begin(), axes.end(), static_cast<int32_t>(d)) != 0;
        if (!gone || keep) at.push_back(gone ? 0 : index[d]);
      }
      expected.insert({offset_of(out.get(), at), offset_of(x.get(), index)});
    });
    ASSERT_EQ(walk(storage.loop), expected);
    ASSERT_EQ(storage.loop.count, static_cast<int64_t>(expected.size()));
  }
}

TEST(ReductionLoop, AFullReductionOfAContiguousTensorIsOneDim) {
  ToyTensor x({2, 3, 4}), out({});
  const bp_tensor* outs[] = {&out.handle};
  const bp_tensor* inputs[] = {&x.handle};
  const int32_t axes[] = {0, 1, 2};
  LoopStorage storage;
  build_reduction_loop(outs, 1, inputs, 1, axes, 3, storage);
  EXPECT_EQ(storage.loop.rank, 1);
  EXPECT_EQ(storage.loop.strides[0], 0);
  EXPECT_EQ(storage.loop.strides[1], 4);
}

// NumPy's rule: what the joint dims of the indices replace stands where they stood, or comes first where an axis
// between them is kept.
TEST(IndexLoop, VisitsWhatTheIndicesSelect) {
  Shapes shapes(7);
  for (int round = 0; round < 3000; ++round) {
    const bool writes = shapes.below(2);
    const Ints sizes = shapes.sizes(4, 4), most = shapes.sizes(2, 3);
    const auto x = shapes.tensor(sizes);
    std::vector<std::unique_ptr<ToyTensor>> indices;
    Ints joint, kept;
    for (int64_t n = shapes.below(static_cast<int64_t>(sizes.size()) + 1); n > 0; --n) {
      indices.push_back(shapes.below(3) ? shapes.tensor(shapes.part_of(most)) : nullptr);
      if (!indices.back()) continue;
      const Ints& shape = indices.back()->shape;
      if (shape.size() > joint.size()) joint.insert(joint.begin(), shape.size() - joint.size(), 1);
      for (size_t d = 0; d < shape.size(); ++d)
        if (shape[d] != 1) joint[joint.size() - shape.size() + d] = shape[d];
    }
    std::string axes;  // "k" for one that is kept, "i" for one that is indexed
    for (size_t d = 0; d < sizes.size(); ++d) axes += d < indices.size() && indices[d] ? 'i' : 'k';
    const size_t first = axes.find('i'), last = axes.rfind('i');
    const bool together = first != std::string::npos && axes.substr(first, last - first).find('k') == std::string::npos;
    const size_t place = together ? first : 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      if (axes[d] == 'k') kept.push_back(sizes[d]);
    Ints selected = kept;
    selected.insert(selected.begin() + static_cast<ptrdiff_t>(place), joint.begin(), joint.end());

    const auto other = shapes.tensor(writes ? shapes.part_of(selected) : selected);
    const auto target = shapes.tensor(sizes);
    std::vector<bp_tensor*> list;
    for (const auto& index : indices) list.push_back(index ? &index->handle : nullptr);
    LoopStorage storage;
    build_index_loop(writes ? target->handle : other->handle, &x->handle, list, writes,
                     writes ? &other->handle : nullptr, storage);

    std::multiset<Offsets> expected;
    for_each_index(selected, [&](const Ints& at) {
      const Ints in_joint(at.begin() + static_cast<ptrdiff_t>(place),
                          at.begin() + static_cast<ptrdiff_t>(place + joint.size()));
      Ints in_x;
      for (size_t d = 0, k = 0; d < sizes.size(); ++d) {
        in_x.push_back(axes[d] == 'i' ? 0 : at[k < place ? k : k + joint.size()]);
        k += axes[d] == 'k';
      }
      const auto start = [&](const ToyTensor& t) {
        int64_t offset = 0;
        for (size_t d = 0; d < in_x.size(); ++d) offset += in_x[d] * t.strides[d] * kItemSize[t.handle.dtype];
        return offset;
      };
      Offsets offsets{writes ? start(*target) : offset_of(other.get(), at), start(*x)};
      for (const auto& index : indices)
        if (index) offsets.push_back(offset_of(index.get(), in_joint));
      if (writes) offsets.push_back(offset_of(other.get(), at));
      expected.insert(offsets);
    });
    ASSERT_EQ(walk(storage.loop), expected) << axes;
    ASSERT_EQ(storage.loop.count, static_cast<int64_t>(expected.size()));
    const ToyTensor& indexed = writes ? *target : *x;
    for (const bp_loop_index& index : storage.indices) {
      ASSERT_EQ(index.size, sizes[static_cast<size_t>(index.axis)]);
      ASSERT_EQ(index.stride, indexed.strides[static_cast<size_t>(index.axis)] * kItemSize[indexed.handle.dtype]);
    }
    const bp_loop& loop = storage.loop;
    for (int32_t d = 0; d < loop.rank && loop.count; ++d) {
      const bool is_joint = d >= loop.joint_first && d < loop.joint_first + loop.joint_rank;
      bool moves = false;
      for (const bp_loop_index& index : storage.indices) moves |= loop.strides[index.operand * loop.rank + d] != 0;
      ASSERT_TRUE(is_joint || !moves);
    }
  }
}

std::set<int64_t> bytes_of(const ToyTensor& t) {
  std::set<int64_t> bytes;
  const int64_t item = kItemSize[t.handle.dtype];
  for_each_index(t.shape, [&](const Ints& index) {
    int64_t at = static_cast<int64_t>(t.handle.dl.byte_offset);
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * t.strides[d] * item;
    for (int64_t b = 0; b < item; ++b) bytes.insert(at + b);
  });
  return bytes;
}

TEST(Overlap, NeverSaysNoOrYesWrongly) {
  Shapes shapes(3);
  int answers[3] = {};
  for (int round = 0; round < 20000; ++round) {
    const auto a = shapes.tensor(shapes.sizes(3, 4)), b = shapes.tensor(shapes.sizes(3, 4));
    for (const auto& t : {a.get(), b.get()})  // reversed dims need room below
      t->handle.dl.byte_offset = 4000 + static_cast<uint64_t>(shapes.below(40) * kItemSize[t->handle.dtype]);
    const auto in_a = bytes_of(*a), in_b = bytes_of(*b);
    const bool truth = std::any_of(in_a.begin(), in_a.end(), [&](int64_t at) { return in_b.count(at) != 0; });
    const Overlap answer = overlap(a->handle, b->handle);
    ++answers[static_cast<int>(answer)];
    if (answer != Overlap::kUnknown) {
      ASSERT_EQ(answer == Overlap::kYes, truth);
    }
    ASSERT_EQ(overlap(b->handle, a->handle), answer);
  }
  EXPECT_GT(answers[0], 1000);
  EXPECT_GT(answers[1], 1000);
  EXPECT_EQ(answers[2], 0);  // on so small tensors the search always ends
}

TEST(Overlap, SeesThroughTheUsualViews) {
  ToyTensor left({100, 50}, {100, 1}, 0), right({100, 50}, {100, 1}, 200), crossing({100, 51}, {100, 1}, 196);
  EXPECT_EQ(overlap(left.handle, right.handle), Overlap::kNo);
  EXPECT_EQ(overlap(left.handle, crossing.handle), Overlap::kYes);
  ToyTensor even({1000}, {2}, 0), odd({1000}, {2}, 4), both({1000}, {1}, 0);
  EXPECT_EQ(overlap(even.handle, odd.handle), Overlap::kNo);
  EXPECT_EQ(overlap(even.handle, both.handle), Overlap::kYes);
  ToyTensor empty({0, 5}), whole({4, 5});
  EXPECT_EQ(overlap(empty.handle, whole.handle), Overlap::kNo);
  EXPECT_EQ(overlap(whole.handle, whole.handle), Overlap::kYes);
}

TEST(SelfOverlap, NoMeansThatEachElementIsAlone) {
  Shapes shapes(4);
  for (int round = 0; round < 3000; ++round) {
    const auto t = shapes.tensor(shapes.sizes(4, 4));
    t->handle.dl.byte_offset = 100000;
    int64_t count = 1;
    for (int64_t s : t->shape) count *= s;
    const bool truth = static_cast<int64_t>(bytes_of(*t).size()) < count * kItemSize[t->handle.dtype];
    ASSERT_TRUE(self_overlaps(t->handle) || !truth);
  }
  ToyTensor plain({3, 4}), reversed({3, 4}, {-4, 1}, 100), windows({3, 3}, {1, 1}, 0), expanded({3, 4}, {0, 1}, 0);
  EXPECT_FALSE(self_overlaps(plain.handle));
  EXPECT_FALSE(self_overlaps(reversed.handle));
  EXPECT_TRUE(self_overlaps(windows.handle));
  EXPECT_TRUE(self_overlaps(expanded.handle));
}

}  // namespace
}  // namespace backplane::core
