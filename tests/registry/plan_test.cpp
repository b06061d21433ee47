// Plans: the slot of an op that a functionality key finds, and the slots after its owner has left.
#include "registry/plan.hpp"

#include <gtest/gtest.h>

#include "backplane/abi/extensions.h"
#include "backplane/registration.hpp"
#include "call/dispatch.hpp"
#include "memory/process/epoch.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"
#include "registry/registry.hpp"
#include "registry/withdrawal.hpp"

namespace backplane::core {
namespace {

using testing::item;
using testing::op;
using testing::scalar;

int calls_of_fallback = 0, calls_of_row = 0;

bp_status call_below(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return frame->host->call_op(frame, frame->op->op, args, n_args, outs, n_outs);
}
bp_status fallback(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  ++calls_of_fallback;
  return call_below(frame, args, n_args, outs, n_outs);
}
bp_status row_of_exp(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  ++calls_of_row;
  return call_below(frame, args, n_args, outs, n_outs);
}

// A plugin with a key, and a row of the key for bp::exp.
class Keyed {
 public:
  Keyed(const char* name, bp_kernel_fn every) {
    owner_.name = name;
    owner_.index = kCountedPlugins;
    owner_.state = PluginRecord::State::kLoaded;
    bp_key_def key{};
    key.header = BP_HEADER(bp_key_def);
    key.name = name;
    key.fallback = every;
    bit_ = register_key(&owner_, key);
    bp_kernel_def row{};
    row.header = BP_HEADER(bp_kernel_def);
    row.op = "bp::exp";
    const std::string backend = std::string("key:") + name;
    row.backend = backend.c_str();
    row.revision = op_entry(find_op("bp::exp"))->record->def.revision;
    row.fn = row_of_exp;
    register_kernel(&owner_, row);
  }
  ~Keyed() { end(); }
  void end() {
    if (!ended_) withdraw(&owner_);
    ended_ = true;
  }
  uint32_t bit() const { return bit_; }
  Tensor tensor(double x) const {
    Tensor t = scalar(x);
    impl(t)->keys |= uint64_t{1} << bit_;
    return t;
  }

 private:
  PluginRecord& owner_ = *new PluginRecord;  // the registry points to it for good
  uint32_t bit_ = 0;
  bool ended_ = false;
};

const KeySlot& slot(const char* name, uint32_t bit) { return op_entry(find_op(name))->plan().slot(bit); }

TEST(Plan, AKeyHasTheRowOfTheOpOrItsFallback) {
  Keyed keyed("rows", fallback);
  const Tensor x = keyed.tensor(2);
  calls_of_fallback = calls_of_row = 0;
  EXPECT_EQ(item(op("negative", {value(x)})), -2);
  EXPECT_EQ(calls_of_fallback, 1);
  EXPECT_EQ(calls_of_row, 0);
  op("exp", {value(x)});
  EXPECT_EQ(calls_of_row, 1);
  EXPECT_NE(slot("bp::exp", keyed.bit()).row, nullptr);
  EXPECT_EQ(slot("bp::negative", keyed.bit()).row, nullptr);
}

TEST(Plan, AKeyWithoutAFallbackSeesTheOpsThatADecompositionMakes) {
  Keyed keyed("parts", nullptr);
  const Tensor x = keyed.tensor(2);
  calls_of_row = 0;
  EXPECT_EQ(item(op("negative", {value(x)})), -2);
  EXPECT_EQ(calls_of_row, 0);
  EXPECT_FALSE(op_entry(find_op("bp::negative"))->plan().answers >> keyed.bit() & 1);
}

TEST(Plan, AKeyWhoseOwnerIsGoneIsNotAsked) {
  Keyed keyed("gone", fallback);
  const Tensor x = keyed.tensor(2);
  const KeySlot before = slot("bp::negative", keyed.bit());
  keyed.end();
  calls_of_fallback = calls_of_row = 0;
  EXPECT_EQ(item(op("negative", {value(x)})), -2);
  op("exp", {value(x)});
  EXPECT_EQ(calls_of_fallback + calls_of_row, 0);
  // A plan that was replaced may still name it.
  bp_value arg = value(x), out{};
  CallGuard guard;
  before.handle({*op_entry(find_op("bp::negative")), &arg, 1, &out, 1, ~uint64_t{0}}, &before);
  EXPECT_EQ(item(Tensor::adopt(out.u.t)), -2);
  EXPECT_EQ(calls_of_fallback, 0);
}

TEST(Plan, LayersAreSlotsAsKeysOfPluginsAre) {
  const Plan& plan = op_entry(find_op("bp::add"))->plan();
  EXPECT_STREQ(plan.slot_of(kTapeKey).key->name.c_str(), "autograd");
  EXPECT_NE(plan.slot_of(kTapeKey).fast, nullptr);
  EXPECT_STREQ(plan.slot_of(kLevelKey).key->name.c_str(), "levels");
  EXPECT_EQ(plan.slot_of(kCreationKey).handle, nullptr);  // it makes nothing out of nothing
  EXPECT_NE(op_entry(find_op("bp::full"))->plan().slot_of(kCreationKey).handle, nullptr);
}

TEST(Plan, ALevelComesBeforeTheCreationInItAndBothBeforeTheTape) {
  EXPECT_EQ(highest_key(kLevelKey | kCreationKey), kLevelKey);
  EXPECT_EQ(highest_key(kCreationKey | kTapeKey), kCreationKey);
  EXPECT_EQ(highest_key(kTapeKey), kTapeKey);
}

TEST(Plan, AKeyOfALayerHasItsName) {
  PluginRecord owner;
  bp_key_def key{};
  key.header = BP_HEADER(bp_key_def);
  for (const char* name : {"autograd", "levels", "creation"}) {
    key.name = name;
    EXPECT_THROW(register_key(&owner, key), Error) << name;
  }
}

// A plugin switches a key on for the calling thread, by name.
TEST(Keys, AThreadCarriesWhatAPluginIncludes) {
  Keyed key("switched", fallback);
  const auto* keys = static_cast<const bp_extension_keys*>(host_table.extension(BP_EXTENSION_KEYS, 1));
  ASSERT_NE(keys, nullptr);
  EXPECT_EQ(host_table.extension(BP_EXTENSION_KEYS, 99), nullptr);
  EXPECT_EQ(host_table.extension("unheard of", 1), nullptr);
  EXPECT_EQ(keys->find("unheard of"), 0u);
  EXPECT_EQ(keys->find("tape"), 0u) << "a layer of the core is nobody's to switch";
  const uint64_t bit = keys->find("switched");
  ASSERT_EQ(bit, uint64_t{1} << key.bit());
  calls_of_fallback = 0;
  EXPECT_EQ(keys->include(bit, 1), 0u);
  EXPECT_EQ(item(op("negative", {value(scalar(2))})), -2);
  EXPECT_EQ(keys->include(bit, 0), bit);
  EXPECT_EQ(calls_of_fallback, 1);
  op("negative", {value(scalar(2))});
  EXPECT_EQ(calls_of_fallback, 1);
}

}  // namespace
}  // namespace backplane::core
