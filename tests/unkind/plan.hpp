// What a run of the unkind devices does and where it fails, as text: "seed=7,pace=eager,lose=30".
//
// The environment variable BACKPLANE_UNKIND gives the plan that the devices begin with; the extension "unkind" changes
// it. The same plan and the same calls of one host thread give the same schedule, but for work that nobody waits for.
#pragma once

#include <cstdint>
#include <string>

namespace unkind {

struct Plan {
  uint64_t seed = 0;
  bool eager = false;  // queues run at once and side by side, with random pauses; else as late as the host allows
  // Counted from the plan's start, over all devices; negative: never.
  int64_t lose = -1;  // this piece of work loses its device
  // This one does not end until its device is lost or reset. On a device without `abort` the next, if it is a copy that
  // the host waits in, which nothing would end.
  int64_t hang = -1;
  int64_t fail = -1;      // this one fails with a data error, and writes nothing
  int64_t oom = -1;       // this allocation finds no memory
  int64_t oom_every = 0;  // each allocation whose number it divides finds none; 0: off

  static Plan parse(const std::string& text);  // throws Error(BP_ERROR_VALUE)
  static Plan of_environment();
};

}  // namespace unkind
