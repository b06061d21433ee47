// What a capture holds: the memory that the recorded work reads and writes, and the blocks that its kernels took.
//
// A capture has a stream of its own, whose work the backend keeps instead of running it. Nothing waits for that stream:
// each replay is one piece of work on an ordinary stream, ordered with all that the memory is used for.
#pragma once

#include <vector>

#include "memory/devices/device.hpp"
#include "memory/devices/stream.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {

class CapturePause;

class Capture {
 public:
  // Begins: `device` records what this thread gives it from now on. Throws where it cannot.
  explicit Capture(Device& device);
  // Abandons a capture that was not ended; waits for replays, and releases the memory.
  ~Capture();
  Capture(const Capture&) = delete;

  Device& device() { return device_; }
  // On the thread that began it.
  void end();
  bool ended() const { return recording_ != nullptr; }
  void replay(Stream& stream);

  // Under the device's lock: of a piece of work that is being recorded.
  void take(bp_storage* const* reads, int n_reads, bp_storage* const* writes, int n_writes);
  // Scratch of a recorded kernel, which its replays write to.
  void keep(const ScratchBlock& block) { scratch_.push_back(block); }
  // An executable whose work is recorded; the plugin whose kernel recorded it.
  void keep(std::shared_ptr<const void> executable);
  void keep_plugin(PluginRecord* plugin);

 private:
  friend CapturePause;
  void leave();
  bool stale() const;
  void check_not_stale() const;
  void hold(bp_storage* storage, std::vector<bp_storage*>& list);
  const bp_extension_capture& slots() const { return *device_.backend->extensions.capture; }

  Device& device_;
  const uint32_t generation_;
  Stream* stream_ = nullptr;
  Stream* before_ = nullptr;  // what the thread had chosen
  bool active_ = false;
  bp_recording* recording_ = nullptr;
  std::vector<bp_storage*> reads_, writes_;  // each held once
  std::vector<ScratchBlock> scratch_;
  std::vector<std::shared_ptr<const void>> executables_;
  std::vector<PluginRecord*> plugins_;  // a lease on each
  std::vector<StorageUse> replays_;     // the latest on each stream
};

// While it lives, this thread's work runs instead of being recorded: for objects that also serve calls outside of the
// capture.
class CapturePause {
 public:
  CapturePause();
  ~CapturePause();
  CapturePause(const CapturePause&) = delete;

 private:
  std::vector<Capture*> paused_;
};

}  // namespace backplane::core
