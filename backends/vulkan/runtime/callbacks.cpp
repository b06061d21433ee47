// The thread that runs them; see callbacks.hpp.
#include "runtime/callbacks.hpp"

namespace backplane::vulkan {

Callbacks::~Callbacks() {
  {
    std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Callbacks::add(uint64_t value, bp_completion_fn function, void* argument) {
  std::lock_guard lock(mutex_);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  jobs_.push_back({value, function, argument});
  changed_.notify_all();
}

void Callbacks::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    const uint64_t before = job.value - 1;
    VkSemaphoreWaitInfo wait{};
    wait.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO;
    wait.semaphoreCount = 1;
    wait.pSemaphores = &timeline_;
    wait.pValues = &before;
    // The results are dropped: a lost device fails here, and the function runs all the same.
    (void)vkWaitSemaphores(device_, &wait, UINT64_MAX);
    job.function(job.argument);
    VkSemaphoreSignalInfo signal{};
    signal.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO;
    signal.semaphore = timeline_;
    signal.value = job.value;
    (void)vkSignalSemaphore(device_, &signal);
    lock.lock();
  }
}

}  // namespace backplane::vulkan
