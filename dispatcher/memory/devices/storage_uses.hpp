// Where the work that touches a storage stands, on each stream of an asynchronous device. Guarded by the device's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace backplane::core {

struct Stream;  // memory/devices/stream.hpp

struct StorageUse {
  Stream* stream;
  uint64_t ticket;
};

// A stream is in order: its latest use stands for all.
inline void note_latest(std::vector<StorageUse>& uses, StorageUse use) {
  for (StorageUse& known : uses)
    if (known.stream == use.stream) {
      if (known.ticket < use.ticket) known.ticket = use.ticket;
      return;
    }
  uses.push_back(use);
}

// Reads of several streams run side by side; a write comes after all that was there. So only reads may be many.
class StorageUses {
 public:
  // Calls f(StorageUse) for what work that writes has to come after; some may be complete.
  template <class F>
  void each(F f) const {
    if (write_.stream) f(write_);
    if (read_.stream) f(read_);
    if (more_)
      for (const StorageUse& use : *more_) f(use);
  }
  const StorageUse& write() const { return write_; }
  void note_read(StorageUse use) {
    if (!read_.stream || read_.stream == use.stream)
      read_ = use;
    else
      note_other(use);
  }
  void note_write(StorageUse use) {
    write_ = use;
    read_ = {};
    more_.reset();
  }

 private:
  void note_other(StorageUse use) {
    if (!more_) more_ = std::make_unique<std::vector<StorageUse>>();
    note_latest(*more_, use);
  }

  StorageUse write_{}, read_{};
  std::unique_ptr<std::vector<StorageUse>> more_;
};

}  // namespace backplane::core
