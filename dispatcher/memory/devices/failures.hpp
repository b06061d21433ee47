// Errors follow data: a piece of work that failed marks what it wrote, and what is computed from that.
//
// The host hears of a failure late. So a stream keeps, for each piece of work whose outcome is not known, what it read
// as tickets; when work has ended, its outcome follows from the backend's errors and from the outcomes of what it read.
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
// Under the device's lock: the outcomes of what has ended on its streams, as far as they can be known.
void settle(Device& device);
// Takes no lock of its caller's: of a piece of work that has ended. nullptr: it has not failed.
std::shared_ptr<const Failure> failure_of(const StorageUse& work);
// Throws where what a storage holds, whose last write has ended, was not written as it should have been.
void check_written(const bp_storage& storage);
// Takes no lock of its caller's: does the device have work that reads what `source` wrote, and has not ended?
bool reads_from(Device& device, const Device& source);
// Under the device's lock, of a stream that a reset ends: what has not been seen to succeed has failed.
void lose_work(Stream& retired);
// Of a device whose work has ended and whose streams end: nobody asks them for outcomes any more.
void forget_work_of(const Device& closing);
// Under the device's lock: throws the stream's oldest error that nobody has seen, and what spoiled a copy to the host.
void throw_unseen(Stream& stream);
// Takes no lock of its caller's: the outcomes of a stream's copies to the host up to `ticket`, which has ended, are
// known afterwards.
void finish_copies_to_host(Stream& stream, uint64_t ticket);
// Likewise, and throws where such a copy was spoiled: by then somebody may read the host's memory.
void check_copies_to_host(Stream& stream, uint64_t ticket);

}  // namespace backplane::core
