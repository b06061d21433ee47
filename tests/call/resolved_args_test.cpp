// Arguments as kernels receive them: axes from the front, slices as start, count and step, whatever the caller wrote.
#include "record/resolved_args.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backplane/op.hpp"
#include "record/toy_record.hpp"
#include "registry/registry.hpp"

namespace backplane::core {
namespace {

using ::testing::ElementsAre;

const OpRecord& record_of(const char* name) { return *op_entry(find_op(name))->record; }

std::vector<int64_t> ints_of(const bp_value& list) {
  EXPECT_EQ(list.tag, BP_TAG_INT_LIST);
  return {list.u.ints, list.u.ints + list.count};
}

TEST(ResolvedArgs, AnAxisCountsFromTheFront) {
  ToyTensor x({2, 3, 4}), line({});
  ResolvedLists lists;
  bp_value sort[] = {x.value(), int_value(-1), bool_value(false), bool_value(true)};
  resolve_args(record_of("bp::sort"), sort, lists);
  EXPECT_EQ(sort[1].u.i, 2);
  bp_value of_number[] = {line.value(), int_value(-1), bool_value(false), bool_value(true)};
  resolve_args(record_of("bp::sort"), of_number, lists);
  EXPECT_EQ(of_number[1].u.i, 0) << "a tensor without dims is a line of one element";
  const Ints axes{-1, 0};
  bp_value softmax[] = {x.value(), ints_value(axes)};
  resolve_args(record_of("bp::softmax"), softmax, lists);
  EXPECT_THAT(ints_of(softmax[1]), ElementsAre(2, 0));
}

TEST(ResolvedArgs, AnAxisThatAFormulaNormalisesIsOfTheRankThere) {
  ToyTensor x({2, 3, 4}), labels({2, 4});
  ResolvedLists lists;
  bp_value entropy[] = {x.value(), labels.value(), int_value(-2)};
  resolve_args(record_of("bp::cross_entropy"), entropy, lists);
  EXPECT_EQ(entropy[2].u.i, 1);
  bp_value add[] = {x.value(), int_value(-1), int_value(6), int_value(1), int_value(1)};
  resolve_args(record_of("bp::overlap_add"), add, lists);
  EXPECT_EQ(add[1].u.i, 1) << "of the result, which has a dim less";
}

TEST(ResolvedArgs, AbsentAxesOfAReductionAreAllAndOthersStayAbsent) {
  ToyTensor x({2, 3, 4});
  ResolvedLists lists;
  bp_value sum[] = {x.value(), {}, {}, bool_value(false)};
  resolve_args(record_of("bp::sum"), sum, lists);
  EXPECT_THAT(ints_of(sum[1]), ElementsAre(0, 1, 2));
  bp_value argmax[] = {x.value(), {}, bool_value(false)};
  resolve_args(record_of("bp::argmax"), argmax, lists);
  EXPECT_EQ(argmax[1].tag, BP_TAG_ABSENT) << "it means the flattened tensor";
}

TEST(ResolvedArgs, ASliceIsStartCountAndStep) {
  ToyTensor x({5, 6}), value({});
  ResolvedLists lists;
  const Ints axes{-1, 0}, steps{-2, 1};
  const std::vector<bp_value> none{{}, int_value(-3)}, stops{{}, int_value(100)};
  bp_value put[] = {x.value(),          value.value(),       ints_value(axes),
                    values_value(none), values_value(stops), ints_value(steps)};
  resolve_args(record_of("bp::slice_put"), put, lists);
  EXPECT_THAT(ints_of(put[2]), ElementsAre(1, 0));
  EXPECT_THAT(ints_of(put[3]), ElementsAre(5, 2));
  EXPECT_THAT(ints_of(put[4]), ElementsAre(3, 3));
  EXPECT_THAT(ints_of(put[5]), ElementsAre(-2, 1));
}

// Of the registry, what a kernel would have to normalise itself: no primitive.
TEST(ResolvedArgs, EveryAxisOfAPrimitiveIsResolved) {
  for (const OpHandle op : all_ops()) {
    const OpRecord& record = *op_entry(op)->record;
    if (!(record.def.flags & BP_OP_PRIMITIVE) || (record.def.flags & (BP_OP_VIEW | BP_OP_MAYBE_VIEW))) continue;
    uint64_t resolved = 0;
    for (const ResolvedArg& each : record.resolved) resolved |= uint64_t{1} << each.arg;
    EXPECT_EQ(record.axis_args, resolved) << record.name;
  }
}

}  // namespace
}  // namespace backplane::core
