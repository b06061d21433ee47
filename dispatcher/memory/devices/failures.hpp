// Errors follow data: a piece of work that failed marks the storages that it wrote, and all that is computed from them.
//
// The host sees a failure late. For each piece of work without a known outcome, a stream therefore keeps its inputs
// as tickets. When the work has ended, its outcome follows from the backend's errors and the outcomes of its inputs.
// A storage is marked where the ticket of its last write has failed: who overwrites all of it clears the mark, who
// overwrites a part reads the rest. All is of asynchronous devices, and costs the others nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "backplane/abi/base.h"
#include "memory/devices/storage_uses.hpp"

struct bp_storage;

namespace backplane::core {

struct Device;

// The first cause, shared by all that it reaches.
struct Failure {
  bp_status code;
  std::string text;                 // with the op's name and the device's
  std::atomic<bool> raised{false};  // somebody has seen it
};

// Of a copy to memory of the host, which carries no mark. Until a wait of the thread that asked for it has raised it,
// each other thread that waits for the stream hears of it once, since any of them may read the memory.
struct SpoiledCopy {
  std::shared_ptr<Failure> failure;
  std::thread::id asked;
  std::vector<std::thread::id> heard;
};

// A piece of work on a stream whose outcome is not known yet.
struct Work {
  uint64_t ticket;
  const char* op;
  std::vector<StorageUse> read;  // writes that it depends on, as far as their outcomes were not known
  std::thread::id to_host = {};  // a copy to memory of the host, which this thread asked for
  bool only_waits = false;       // for a peer that reads this device's memory: what fails of it is the peer's
};

// Under the device's lock: what `reads` were written by joins `work`. Throws where one is known to have failed.
void depend_on(Work& work, const bp_storage& read);
void depend_on(Work& work, const StorageUse& write);
// Under the device's lock: takes the errors that the backend has of a stream's work. How many there were.
int collect(Stream& stream);
// Under the device's lock: determines the outcomes of ended work on its streams, as far as they are known.
void settle(Device& device);
// The failure of a piece of work that has ended; nullptr if it succeeded. Takes no lock that the caller holds.
std::shared_ptr<const Failure> failure_of(const StorageUse& work);
// Throws where what a storage holds, whose last write has ended, was not written as it should have been.
void check_written(const bp_storage& storage);
// Does the device have running work that reads results of `source`? Takes no lock that the caller holds.
bool reads_from(Device& device, const Device& source);
// Under the device's lock, for a stream that a reset ends: work that is not known to have succeeded has failed.
void lose_work(Stream& retired);
// Of a device whose work has ended and whose streams end: nobody asks them for outcomes any more.
void forget_work_of(const Device& closing);
// Under the device's lock: throws the stream's oldest error that nobody has seen, and what spoiled a copy to the host.
void throw_unseen(Stream& stream);
// Takes no lock of its caller's: the outcomes of a stream's copies to the host up to `ticket`, which has ended, are
// known afterwards.
void finish_copies_to_host(Stream& stream, uint64_t ticket);
// Also throws if such a copy read failed data, because a thread may now read the host's memory.
void check_copies_to_host(Stream& stream, uint64_t ticket);

}  // namespace backplane::core
