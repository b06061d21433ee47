// Replays and their records of errors; see recording.hpp.
#include "runtime/recording.hpp"

#include <algorithm>
#include <utility>

#include "runtime/stream.hpp"

namespace backplane::cuda {

constexpr size_t kBytes = kErrorsPerBlock * sizeof(DataError);

DataError* Captured::expect_error(const Driver& driver, Checked call) {
  const size_t place = calls.size() % kErrorsPerBlock;
  if (place == 0) errors.push_back(std::make_unique<DeviceBlock>(driver, kBytes));
  calls.push_back(std::move(call));
  return reinterpret_cast<DataError*>(errors.back()->device()) + place;
}

std::shared_ptr<HostBlock> Recording::take_readback() {
  const auto free =
      std::find_if(readbacks_.begin(), readbacks_.end(), [](const auto& b) { return b.use_count() == 1; });
  if (free != readbacks_.end()) return *free;
  readbacks_.push_back(std::make_shared<HostBlock>(driver_, kBytes));
  return readbacks_.back();
}

void Recording::replay(Stream& on, uint64_t ticket) {
  std::vector<std::shared_ptr<HostBlock>> readbacks;
  for (const auto& block : captured_->errors) {
    check(driver_.cuMemsetD8Async(block->device(), 0, kBytes, on.handle()), "cuMemsetD8Async");
    readbacks.push_back(take_readback());
  }
  check(driver_.cuGraphLaunch(executable_, on.handle()), "cuGraphLaunch");
  for (size_t k = 0; k < readbacks.size(); ++k) {
    check(driver_.cuMemcpyDtoHAsync_v2(readbacks[k]->data(), captured_->errors[k]->device(), kBytes, on.handle()),
          "cuMemcpyDtoHAsync");
    const size_t first = k * kErrorsPerBlock, last = std::min(first + kErrorsPerBlock, captured_->calls.size());
    on.expect_errors(ticket, readbacks[k], {captured_->calls.data() + first, last - first});
  }
}

}  // namespace backplane::cuda
