// An empty Tensor, as a default-made one is, counts as nothing: every member, every function and every op that is given
// one says so, and only an argument that the signature calls optional may be left out by one.
#include <gtest/gtest.h>

#include "backplane/autograd.hpp"
#include "backplane/registration.hpp"
#include "backplane/transforms.hpp"
#include "call/dispatch.hpp"
#include "host_backend.hpp"
#include "include/backplane/ops.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {
namespace {

using testing::tensor;
using testing::values;

template <class F>
std::string refusal(F&& f) {
  bp_status code = BP_OK;
  const std::string text = error_of(f, &code);
  EXPECT_TRUE(code == BP_ERROR_VALUE || code == BP_ERROR_TYPE) << code << " " << text;
  return text;
}

#define EXPECT_REFUSED(expression) EXPECT_NE(refusal([&] { (void)(expression); }).find("empty"), std::string::npos)

TEST(EmptyTensor, IsRefusedByEveryMember) {
  const Tensor none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.get(), nullptr);
  EXPECT_REFUSED(none.ndim());
  EXPECT_REFUSED(none.shape());
  EXPECT_REFUSED(none.strides());
  EXPECT_REFUSED(none.dtype());
  EXPECT_REFUSED(none.device());
  EXPECT_REFUSED(none.is_contiguous());
  EXPECT_REFUSED(none.held());
}

TEST(EmptyTensor, IsRefusedByEveryFunction) {
  const Tensor none, x = tensor({1, 2}, {2});
  char buffer[16];
  EXPECT_REFUSED(requires_grad(none));
  EXPECT_REFUSED(set_requires_grad(none, true));
  EXPECT_REFUSED(is_leaf(none));
  EXPECT_REFUSED(grad_of(none));
  EXPECT_REFUSED(set_grad_of(none, x));
  EXPECT_REFUSED(detach(none));
  EXPECT_REFUSED(version_of(none));
  EXPECT_REFUSED(node_name(none));
  EXPECT_REFUSED(add_hook(none, [](const Tensor& g) { return g; }));
  EXPECT_REFUSED(remove_hook(none, 0));
  EXPECT_REFUSED(backward({&none, 1}, {}, {}));
  EXPECT_REFUSED(gradients({&none, 1}, {}, {&x, 1}, {}));
  EXPECT_REFUSED(to_host(none, buffer));
  EXPECT_REFUSED(to_device(none, testing::null_backend()));
  EXPECT_REFUSED(to_dlpack(none));
  EXPECT_REFUSED(innermost_value(none));
  EXPECT_REFUSED(plain_value(none, "test"));
  EXPECT_REFUSED(transforms_of(none));
  EXPECT_REFUSED(is_transformed(none));
}

TEST(EmptyTensor, IsRefusedByEveryTransform) {
  const Tensor none, x = tensor({1, 2}, {2});
  const Function same = [](std::span<const Tensor> in) { return std::vector<Tensor>(in.begin(), in.end()); };
  const Function nothing = [](std::span<const Tensor>) { return std::vector<Tensor>(1); };
  for (const Tensor* input : {&none, &x}) {
    const Function& function = *input ? nothing : same;
    EXPECT_REFUSED(vjp(function, {input, 1}));
    EXPECT_REFUSED(value_and_grad(function, {input, 1}));
    EXPECT_REFUSED(jvp(function, {input, 1}, {&x, 1}));
    EXPECT_REFUSED(vmap(function, {input, 1}));
  }
}

// Any value that fits an argument's type: the law is that the missing tensor is seen before it matters.
bp_value some_value(const bp_arg_def& arg, const Tensor& x) {
  static const bp_generator_state generator{1, 0};
  static const int64_t ints[] = {0};
  if (arg.flags & (BP_ARG_HAS_DEFAULT | BP_ARG_OPTIONAL))
    return arg.flags & BP_ARG_HAS_DEFAULT ? arg.default_value : bp_value{};
  switch (arg.type) {
    case BP_TYPE_TENSOR: {
      bp_value v = value(x);
      static bp_tensor* list[1];
      list[0] = x.get();
      if (arg.flags & BP_ARG_LIST) v = bp_value{BP_TAG_TENSOR_LIST, 0, 1, {.tensors = list}};
      return v;
    }
    case BP_TYPE_AXES:
    case BP_TYPE_SHAPE:
      return value(Shape(ints, 1));
    case BP_TYPE_DTYPE:
      return dtype_value(BP_FLOAT64);
    case BP_TYPE_BOOL:
      return value(false);
    case BP_TYPE_STR:
      return string_value("x");
    case BP_TYPE_DEVICE:
      return value(testing::null_backend());
    case BP_TYPE_GENERATOR: {
      bp_value v{};
      v.tag = BP_TAG_GENERATOR;
      v.u.g = &generator;
      return v;
    }
    default:
      return arg.flags & BP_ARG_LIST ? value(Shape(ints, 1)) : value(int64_t{0});
  }
}

TEST(EmptyTensor, IsRefusedByEveryOpForEveryTensorThatItNeeds) {
  const Tensor x = tensor({1, 2}, {2});
  int tried = 0;
  for (const OpHandle op : all_ops()) {
    const bp_op_def& def = op_def(op);
    if (def.flags & BP_OP_HIGHER_ORDER) continue;  // its tensors are the function's
    std::vector<bp_value> args;
    for (uint32_t i = 0; i < def.args.count; ++i)
      args.push_back(some_value(static_cast<const bp_arg_def*>(def.args.data)[i], x));
    for (uint32_t i = 0; i < def.args.count; ++i) {
      const bp_arg_def& arg = static_cast<const bp_arg_def*>(def.args.data)[i];
      if (arg.type != BP_TYPE_TENSOR || (arg.flags & BP_ARG_OPTIONAL)) continue;
      std::vector<bp_value> missing = args;
      missing[i] = absent();
      for (const bool in_list : {false, true}) {
        bp_tensor* hole[] = {x.get(), nullptr};
        if (in_list && (!(arg.flags & BP_ARG_LIST) || (arg.flags & BP_ARG_OPTIONAL_ELEMENTS))) continue;
        if (in_list) missing[i] = bp_value{BP_TAG_TENSOR_LIST, 0, 2, {.tensors = hole}};
        bp_value outs[kMaxResults] = {};
        ++tried;
        ASSERT_EQ(call_packed(op, missing.data(), static_cast<int32_t>(missing.size()), outs,
                              static_cast<int32_t>(def.results.count)),
                  BP_ERROR_TYPE)
            << def.name << ", " << arg.name;
        const std::string text = last_error();
        EXPECT_NE(text.find(std::string("\"") + arg.name + "\""), std::string::npos) << def.name << ": " << text;
        EXPECT_NE(text.find("empty tensor"), std::string::npos) << def.name << ": " << text;
      }
    }
  }
  EXPECT_GT(tried, 400);
}

TEST(EmptyTensor, IsRefusedAsAnOutput) {
  const Tensor x = tensor({1, 2}, {2}), none;
  EXPECT_REFUSED(backplane::add_out(none, x, x));
  EXPECT_REFUSED(backplane::add_(none, x));
}

TEST(EmptyTensor, IsRefusedByTheGeneratedFunctions) {
  const Tensor x = tensor({1, 2}, {2}), none;
  EXPECT_REFUSED(backplane::add(none, x));
  EXPECT_REFUSED(backplane::add(x, none));
  EXPECT_REFUSED(backplane::add(none, 2));
  EXPECT_REFUSED(backplane::add(none, none));
  EXPECT_REFUSED(backplane::where(none, x, x));
  EXPECT_REFUSED(backplane::concat({x, none}));
  EXPECT_REFUSED(backplane::concat({none}));
  EXPECT_REFUSED(backplane::sum(none));
  EXPECT_REFUSED(backplane::reshape(none, {2}));
  EXPECT_REFUSED(backplane::square(none));
  EXPECT_REFUSED(backplane::take_along_axis(x, none, 0));
}

// An argument of a type with a question mark.
TEST(EmptyTensor, LeavesOutAnOptionalArgument) {
  ToyRecord toy("toy::optional");
  toy.arg("x");
  toy.arg("weight", BP_TYPE_TENSOR, BP_ARG_OPTIONAL);
  Registration registration("test");
  const auto kernel = [](const bp_frame*, const bp_value* args, int32_t, bp_value* outs, int32_t) -> bp_status {
    *static_cast<double*>(outs[0].u.t->dl.data) = args[1].tag == BP_TAG_ABSENT ? 7 : 8;
    return BP_OK;
  };
  const bp_kernel_def row = testing::kernel_row("toy::optional", "null", kernel);
  const OpHandle op = registration.define(toy.def(), {&row, 1});
  const Tensor x = tensor({1}, {1}), none;
  EXPECT_EQ(values(backplane::call(op, {value(x), value(none)})), (std::vector<double>{7}));
  EXPECT_EQ(values(backplane::call(op, {value(x), value(x)})), (std::vector<double>{8}));
}

// ---- random numbers, which a call takes from a generator by moving it on ------------------------------------------

bp_status bits(const bp_frame*, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  for (int32_t i = 0; i < 5; ++i)
    if (args[i].tag == BP_TAG_GENERATOR)
      for (uint64_t k = 0; k < outs[0].u.t->nbytes / 4; ++k)
        static_cast<uint32_t*>(outs[0].u.t->dl.data)[k] = static_cast<uint32_t>(100 * args[i].u.g->counter + k);
  return BP_OK;
}

TEST(Generator, MovesOnWithEveryCallOfAGeneratedFunction) {
  testing::null_backend();
  bp_kernel_def row = testing::kernel_row("bp::random_bits", "null", bits);
  row.dtypes = BP_DTYPE_BIT(BP_UINT32);
  bp_plugin_record& record = *new bp_plugin_record;  // as long as the process, like every plugin's
  record.name = "bits";
  record.index = 2;
  ASSERT_EQ(host_table.register_kernel(&record, &row), BP_OK) << last_error();
  bp_generator_state generator{7, 3};
  uint32_t first[6], second[6];
  const bp_device device = testing::null_backend();
  to_host(backplane::random_bits({2, 3}, generator, BP_UINT32, device), first);
  EXPECT_EQ(generator.key, 7u);
  EXPECT_EQ(generator.counter, 3u + 1 + 4 * 6) << "as many as Python takes for a call of this size";
  to_host(backplane::random_bits({2, 3}, generator, BP_UINT32, device), second);
  EXPECT_EQ(first[0], 300u);
  EXPECT_EQ(second[0], 2800u);
  EXPECT_EQ(generator.counter, 3u + 2 * (1 + 4 * 6));
}

}  // namespace
}  // namespace backplane::core
