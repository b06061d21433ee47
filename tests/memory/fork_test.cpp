// Laws of fork: whatever other threads hold or do, the child runs an op, a backward pass and a registration, starts
// workers and gives back the parent's memory.
#include "memory/fork.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>

#include "backplane/autograd.hpp"
#include "backplane/registration.hpp"
#include "backplane/threads.hpp"
#include "host_backend.hpp"
#include "loader/records.hpp"
#include "memory/devices/device.hpp"
#include "memory/process/lock.hpp"
#include "memory/process/parallel.hpp"
#include "null_backend.hpp"
#include "record/toy_record.hpp"
#include "registry/registry.hpp"

namespace backplane::core {
namespace {

using testing::item;
using testing::multiply;
using testing::sum;
using testing::tensor;
using testing::values;

// The child's exit status of `body`, which returns whether its law holds; it is killed after ten seconds.
int status_in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

Tensor variable(double x) {
  Tensor t = tensor({x}, {1});
  set_requires_grad(t, true);
  return t;
}

bp_status nothing(void*, int64_t, int64_t, int32_t) { return BP_OK; }

// The host's whole range of work, in a process that has one thread.
bool works() {
  Tensor x = variable(3);
  const uint64_t hook = add_hook(x, [](const Tensor&) { return Tensor(); });
  Tensor y = sum(multiply(x, x));
  backward({&y, 1}, {}, {});
  remove_hook(x, hook);
  if (item(grad_of(x)) != 6) return false;
  set_grad_of(x, {});
  ToyRecord toy("toy::in_a_child");
  toy.arg("x");
  Registration registration("child");
  registration.define(toy.def(), {});
  set_num_threads(get_num_threads());
  loader::add_record("in_a_child");
  std::lock_guard guard(loader::lifecycle_lock());
  return parallel_for(0, 1000, 1, nothing, nullptr) == BP_OK;
}

// Every lock there is, while another thread holds it. Those that are made anew in the child are held throughout.
TEST(Fork, TheChildWorksWhicheverLockIsHeld) {
  ASSERT_TRUE(works());
  int locks = 0;
  for (size_t rank = 0; rank < static_cast<size_t>(LockRank::kCount); ++rank)
    for (Lock* lock = first_lock(static_cast<LockRank>(rank)); lock; lock = lock->next(), ++locks) {
      std::atomic<bool> held{false}, forked{false};
      std::thread holder([&] {
        std::lock_guard guard(*lock);
        held = true;
        if (static_cast<LockRank>(rank) == LockRank::kAnew)
          while (!forked) std::this_thread::yield();
        else
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
      });
      while (!held) std::this_thread::yield();
      EXPECT_EQ(status_in_child(works), 0) << "rank " << rank;
      forked = true;
      holder.join();
    }
  EXPECT_GE(locks, 16 + 9);
}

// What others do while the process forks again and again.
void expect_children_work_beside(const std::function<void()>& work) {
  EXPECT_TRUE(works());  // what this file makes at first use is made
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) work();
  });
  int status = 0;
  for (int i = 0; i < 40 && status == 0; ++i) status = status_in_child(works);
  stop = true;
  other.join();
  EXPECT_EQ(status, 0);
}

// Another thread that allocates: where an allocator's locks are not held at a fork, a child may find them held.
class ForkBesideAllocations : public ::testing::Test {
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__)
    GTEST_SKIP() << "the sanitizer of gcc 12 and 13 does not hold its allocator's locks at a fork";
#endif
  }
};

TEST_F(ForkBesideAllocations, TheChildWorksBesideBackwardPasses) {
  Tensor shared = variable(2);
  expect_children_work_beside([&] {
    Tensor y = sum(multiply(shared, shared));
    backward({&y, 1}, {}, {});
  });
}

TEST_F(ForkBesideAllocations, TheChildWorksBesideNewLeaves) {
  expect_children_work_beside([] {
    Tensor x = variable(2);
    Tensor y = sum(x);
    backward({&y, 1}, {}, {});
  });
}

TEST_F(ForkBesideAllocations, TheChildWorksBesideRegistrations) {
  expect_children_work_beside([] {
    ToyRecord toy("toy::beside");
    toy.arg("x");
    Registration registration("beside");
    registration.define(toy.def(), {});
  });
}

TEST(Fork, TheChildWorksBesideDevicesThatAreAskedFor) {
  expect_children_work_beside([] { device_at(testing::null_backend()); });
}

// ---- a backend with a lock of its own --------------------------------------------------------------------------

struct Vault {
  std::mutex lock;
  int restarts = 0;
} vault;

bp_status allocate_block(void*, int32_t, uint64_t size, void** data) {
  std::lock_guard guard(vault.lock);
  *data = std::malloc(size);
  return BP_OK;
}
bp_status deallocate_block(void*, int32_t, void* data, uint64_t) {
  std::lock_guard guard(vault.lock);
  std::free(data);
  return BP_OK;
}
bp_status after_fork(void*) {
  new (&vault.lock) std::mutex;
  ++vault.restarts;
  return BP_OK;
}

// Tensors of 4 KiB on both devices of the backend.
std::pair<Tensor, Tensor> in_the_vault() {
  static const bp_device device = [] {
    bp_backend_def def = testing::host_backend("vault");
    def.allocate = allocate_block;
    def.deallocate = deallocate_block;
    def.after_fork = after_fork;
    auto* record = new bp_plugin_record;
    record->name = "vault";
    record->index = 2;
    return bp_device{register_backend(record, def), 0};
  }();
  const int64_t size = 512;
  return {empty(Shape(&size, 1), BP_FLOAT64, device), empty(Shape(&size, 1), BP_FLOAT64, {device.backend, 1})};
}

// A tensor of before the fork may be the first that the child gives back.
TEST(Fork, ABackendIsMadeUsableOnceBeforeAnythingElseIsAskedOfIt) {
  auto [first, second] = in_the_vault();
  std::atomic<bool> held{false}, forked{false};
  std::thread holder([&] {
    std::lock_guard guard(vault.lock);
    held = true;
    while (!forked) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  EXPECT_EQ(status_in_child([&] {
              first = Tensor();
              second = Tensor();
              in_the_vault();
              return vault.restarts == 1;
            }),
            0);
  forked = true;
  holder.join();
}

}  // namespace
}  // namespace backplane::core
