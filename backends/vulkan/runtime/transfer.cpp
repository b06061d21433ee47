// Copies between the host and the device; see stream.hpp.
//
// Memory that the host reaches is used as it is, if no work on it is pending. Else bytes pass through the arena,
// piece by piece, with at most kStagedAtOnce in transit.
#include <algorithm>
#include <cstring>

#include "runtime/stream.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint64_t kStagedAtOnce = 64ull << 20;

Place part(const Place& whole, uint64_t offset) {
  return {whole.buffer, whole.offset + offset, whole.address + offset, whole.mapped ? whole.mapped + offset : nullptr};
}

}  // namespace

void Stream::upload(const Place& target, const char* source, uint64_t size) {
  if (target.mapped && idle()) {
    std::memcpy(target.mapped, source, size);
    return;
  }
  for (uint64_t at = 0; at < size; at += Arena::kLargest) {
    const uint64_t piece = std::min(size - at, Arena::kLargest);
    recycle();
    while (staged_bytes_ + piece > kStagedAtOnce && !submitted_.empty()) {
      wait_batch(submitted_.front().number);
      recycle();
    }
    const Place staged = stage(piece);
    std::memcpy(staged.mapped, source + at, piece);
    copy(part(target, at), staged, piece);
  }
}

void Stream::download(char* target, const Place& source, uint64_t size) {
  if (source.mapped) {
    if (!idle()) {
      submit();
      wait_batch(batch_);
    }
    std::memcpy(target, source.mapped, size);
    return;
  }
  for (uint64_t at = 0; at < size; at += Arena::kLargest) {
    const uint64_t piece = std::min(size - at, Arena::kLargest);
    const Place staged = stage(piece);
    const Range write{staged.address, staged.address + piece};
    const Range read{source.address + at, source.address + at + piece};
    const VkBufferCopy region{source.offset + at, staged.offset, piece};
    vkCmdCopyBuffer(behind_hazards({&write, 1}, {&read, 1}), source.buffer, staged.buffer, 1, &region);
    submit();
    wait_batch(batch_);  // the next piece needs another batch, so the staged memory still stands
    std::memcpy(target + at, staged.mapped, piece);
  }
}

void Stream::upload_pinned(const Place& target, const char* source, uint64_t size, std::span<char> pages) {
  if (const auto place = device_.imported(pages))
    return copy(target, part(*place, static_cast<uint64_t>(source - pages.data())), size);
  end_all();  // what is put here or awaited may write the source
  upload(target, source, size);
}

void Stream::download_pinned(char* target, const Place& source, uint64_t size, std::span<char> pages) {
  if (const auto place = device_.imported(pages))
    return copy(part(*place, static_cast<uint64_t>(target - pages.data())), source, size);
  end_all();  // what is put here or awaited may read the target
  download(target, source, size);
}

void Stream::end_all() {
  if (open_.commands || !waits_.empty()) submit();
  wait_batch(batch_);
}

}  // namespace backplane::vulkan
