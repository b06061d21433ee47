// Laws of redefinition: what a definition replaced ends once nothing reads it, and not before.
#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "backplane/registration.hpp"
#include "memory/process/epoch.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"
#include "registry/registry.hpp"

namespace backplane::core {
namespace {

// Defines the op of this name; what the record keeps, to see it end.
class Redefined {
 public:
  explicit Redefined(const std::string& name) : toy_(name), registration_("reclaim") { toy_.arg("x"); }
  std::weak_ptr<void> define() {
    auto kept = std::make_shared<int>(1);
    std::weak_ptr<void> seen = kept;
    handle = registration_.define(toy_.def(), {}, std::move(kept));
    return seen;
  }
  // The next definition replaces it, the one after that finds it aged, whatever ended meanwhile.
  void define_thrice() {
    for (int i = 0; i < 3; ++i) define();
  }
  OpHandle handle = BP_NO_OP;

 private:
  ToyRecord toy_;
  Registration registration_;
};

TEST(Reclaim, WhatWasReplacedEnds) {
  Redefined op("toy::replaced");
  const std::weak_ptr<void> first = op.define();
  op.define_thrice();
  EXPECT_TRUE(first.expired());
}

TEST(Reclaim, WhatIsDefinedStays) {
  Redefined op("toy::stays"), other("toy::stays_beside");
  const std::weak_ptr<void> kept = op.define();
  other.define_thrice();
  EXPECT_FALSE(kept.expired());
}

TEST(Reclaim, ARunningCallOfAnotherThreadKeepsIt) {
  Redefined op("toy::called");
  const std::weak_ptr<void> first = op.define();
  std::atomic<bool> inside{false}, leave{false};
  std::thread caller([&] {
    CallGuard guard;
    inside = true;
    while (!leave) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  op.define_thrice();
  EXPECT_FALSE(first.expired());
  leave = true;
  caller.join();
  op.define_thrice();
  EXPECT_TRUE(first.expired());
}

TEST(Reclaim, AnOwnRunningCallKeepsItAndDoesNotWaitForItself) {
  Redefined op("toy::inside");
  const std::weak_ptr<void> first = op.define();
  {
    CallGuard guard;
    op.define_thrice();
    EXPECT_FALSE(first.expired());
  }
  op.define_thrice();
  EXPECT_TRUE(first.expired());
}

TEST(Reclaim, WhoeverHoldsTheRecordKeepsIt) {
  Redefined op("toy::held");
  const std::weak_ptr<void> first = op.define();
  std::shared_ptr<const bp_op_def> held = hold_op_def(op.handle);
  op.define_thrice();
  EXPECT_STREQ(held->name, "toy::held");
  EXPECT_FALSE(first.expired());
  held.reset();
  op.define_thrice();
  EXPECT_TRUE(first.expired());
}

TEST(Reclaim, ANodeOfTheOpKeepsIt) {
  Redefined op("toy::recorded");
  const std::weak_ptr<void> first = op.define();
  PluginRecord* owner = op_entry(op.handle)->owner;
  lease(owner, LeaseKind::kNode);
  op.define_thrice();
  EXPECT_FALSE(first.expired());
  unlease(owner, LeaseKind::kNode);
  op.define_thrice();
  EXPECT_TRUE(first.expired());
}

TEST(Reclaim, CallsOfOtherThreadsGoOn) {
  testing::null_backend();
  Redefined op("toy::busy");
  op.define();
  const OpHandle handle = op.handle;
  std::atomic<bool> stop{false};
  std::thread caller([&] {
    while (!stop) {
      CallGuard guard;
      const OpEntry* entry = op_entry(handle);
      EXPECT_EQ(entry->record->name, "toy::busy");
      EXPECT_NE(entry->current_plan.load(), nullptr);
    }
  });
  for (int i = 0; i < 300; ++i) op.define();
  stop = true;
  caller.join();
}

}  // namespace
}  // namespace backplane::core
