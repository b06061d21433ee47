// A program of the stream fuzzer: a list of steps, made from a seed. Any part of the list is a program as well, since a
// step whose operands are not there does nothing; that is how a failing one is made short.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

inline constexpr int kRegisters = 6;  // of tensors, a lane's own
inline constexpr int kStreams = 3;    // per device and lane; 0 is the default one
inline constexpr int kDevices = 2;
inline constexpr int kEvents = 3;
inline constexpr int kRecordings = 2;

enum class Op : uint8_t {
  kMake,       // register r on device d, from the host
  kFull,       // likewise, by a kernel
  kAdd,        // r = a + b
  kScale,      // r = a * number
  kInto,       // a + b written into what r holds
  kInplace,    // r += a
  kCopy,       // r = a on device d
  kDrop,       // r
  kRead,       // r, and compares it
  kRecord,     // event e on a stream
  kWaitEvent,  // a stream for e
  kSyncEvent,
  kQueryEvent,
  kWaitStream,  // a stream for a stream of another or the same device
  kSync,        // the host for a stream
  kNewStream,
  kEmptyCache,
  kCallback,    // that lets go of r
  kPinned,      // r on device d from pinned memory, without waiting
  kPinnedBack,  // r to pinned memory without waiting, then compares it
  kCapture,     // recording e: r += a; r = r * 3
  kReplay,      // e
  kCompiled,    // r = (a + b) * a + b as a graph
  kCount
};

struct Step {
  Op op;
  uint8_t lane;
  uint8_t r, a, b, device, stream, other_device, other_stream, slot;
  int32_t number;
  std::string text() const;
};

struct Program {
  uint64_t seed = 0;
  int lanes = 1;     // threads
  int64_t size = 1;  // elements of every tensor
  std::string backend;
  std::string plan;  // of the unkind devices
  std::vector<Step> steps;

  bool plans(const char* fault) const { return plan.find(fault) != std::string::npos; }
  bool loses() const { return plans("lose") || plans("hang"); }  // devices
};

Program make_program(uint64_t seed);

// Runs it and compares with what its steps give one after another. "": it held; else what did not.
std::string run_program(const Program& program);

}  // namespace fuzz
