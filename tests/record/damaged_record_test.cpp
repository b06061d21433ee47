// Records of untrusted bytes: refused or copied, for any bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "record/multiply_record.hpp"
#include "record/op_record.hpp"

namespace backplane::core {
namespace {

// Every byte that is not in a pointer, set to several values: an Error or a record, never a crash. Arrays are backed by
// as much memory as the largest count that is not refused at once, so that a count is a claim and not a lie.
class Damage : public testing::Test {
 protected:
  template <class T>
  static std::vector<char> roomy(const std::vector<T>& items, size_t limit) {
    std::vector<char> bytes(limit * std::max<size_t>(sizeof(T), 1) + BP_MAX_STRUCT_SIZE, 0);
    std::memcpy(bytes.data(), items.data(), items.size() * sizeof(T));
    return bytes;
  }
  // `bytes` at `memory` are scalars of the record.
  void damage(void* memory, size_t begin, size_t end) {
    auto* bytes = static_cast<unsigned char*>(memory);
    for (size_t i = begin; i < end; ++i) {
      const unsigned char old = bytes[i];
      for (int flip : {0x01, 0x02, 0x10, 0x40, 0x80, 0xff}) {
        bytes[i] = static_cast<unsigned char>(old ^ flip);
        error_of([&] { copy_record(def_); }) == "" ? ++accepted_ : ++refused_;
      }
      bytes[i] = old;
    }
  }
  bp_op_def def_{};
  int accepted_ = 0, refused_ = 0;
};

TEST_F(Damage, NeverCrashes) {
  ToyRecord toy = multiply();
  def_ = toy.def();
  bp_program program = toy.program();
  auto nodes = roomy(toy.nodes, 4096);
  auto inputs = roomy(toy.inputs, 4 * 4096);
  auto consts = roomy(toy.consts, 4096);
  auto names = roomy(toy.names, 4096);
  auto args = roomy(toy.args, 64 * 128);
  auto results = roomy(toy.results, 64 * 256);
  auto formulas = roomy(toy.formulas, 256 * 86);
  auto shapes = roomy(toy.shapes, 64 * 128);
  auto dtypes = roomy(toy.dtypes, 64 * 256);
  auto accepts = roomy(toy.accepts, 64);
  program.nodes = reinterpret_cast<bp_node*>(nodes.data());
  program.inputs = reinterpret_cast<uint32_t*>(inputs.data());
  program.consts = reinterpret_cast<bp_value*>(consts.data());
  program.names = reinterpret_cast<const char**>(names.data());
  def_.program = &program;
  def_.args.data = args.data();
  def_.results.data = results.data();
  def_.formulas.data = formulas.data();
  def_.shapes.data = shapes.data();
  def_.dtypes.data = dtypes.data();
  def_.accepts = reinterpret_cast<bp_dtype_mask*>(accepts.data());

  damage(&def_, 0, sizeof def_.header);
  damage(&def_, offsetof(bp_op_def, line), offsetof(bp_op_def, args));
  for (bp_array* array : {&def_.args, &def_.results, &def_.formulas, &def_.shapes, &def_.dtypes})
    damage(&array->count, 0, 8);
  damage(&def_, offsetof(bp_op_def, promote), offsetof(bp_op_def, program));
  damage(&program, offsetof(bp_program, n_nodes), sizeof program);
  damage(nodes.data(), 0, toy.nodes.size() * sizeof(bp_node));
  damage(inputs.data(), 0, toy.inputs.size() * sizeof(uint32_t));
  for (size_t i = 0; i < toy.args.size(); ++i) damage(args.data() + i * sizeof(bp_arg_def), 8, 20);
  for (size_t i = 0; i < toy.formulas.size(); ++i) damage(formulas.data() + i * sizeof(bp_formula), 0, 4);
  damage(results.data(), 8, 16);
  damage(dtypes.data(), 0, sizeof(bp_result_dtype));
  damage(accepts.data(), 0, 16);
  EXPECT_GT(accepted_, 0);
  EXPECT_GT(refused_, 0);
}

TEST_F(Damage, NullPointersAreRefusedOrMeanNothing) {
  ToyRecord toy = multiply();
  const bp_op_def whole = toy.def();
  const bp_program program = toy.program();
  for (size_t at = 0; at + 8 <= sizeof(bp_op_def); at += 8) {
    def_ = whole;
    std::memset(reinterpret_cast<char*>(&def_) + at, 0, 8);
    error_of([&] { copy_record(def_); });
  }
  for (size_t at = 0; at + 8 <= offsetof(bp_program, n_nodes); at += 8) {
    bp_program holed = program;
    std::memset(reinterpret_cast<char*>(&holed) + at, 0, 8);
    def_ = whole;
    def_.program = &holed;
    EXPECT_NE(error_of([&] { copy_record(def_); }), "") << at;
  }
}

}  // namespace
}  // namespace backplane::core
