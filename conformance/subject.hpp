// The subject of the tests: a device, and the reference device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "outcome.hpp"
#include "registry.hpp"

namespace backplane::conformance {

struct Subject {
  bp_device device;     // under test
  bp_device reference;  // the CPU
  bp_dtype_mask computes = BP_MASK_ANY;
  std::string plugin;  // that brought the device
  bool is_reference() const { return device.backend == reference.backend; }
};

// Called before each entry or law: how many are done, of how many, and its name.
using Progress = std::function<void(size_t, size_t, const std::string&)>;

// A mode: calls every sample of the entries in its way, and appends the outcomes.
using Mode = void(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
                  const Progress& progress, std::vector<Outcome>& outcomes);
Mode run_tests;      // results
Mode run_gradients;  // derivatives: against the CPU's in float64, and those against finite differences
Mode run_support;    // how each op reaches the device, in every dtype
Mode run_stress;     // many threads at once, and no memory
Mode run_async;      // what runs late, fails late or is lost
Mode run_timing;     // against the CPU's time

// The laws of the device's table. They stand in reports, and in --op, under this name.
inline constexpr const char* kDeviceLaws = "(device)";
inline constexpr const char* kFirstWork = "first work";
// Are laws of the table asked for: all of them, or the rows that a pattern such as "(device) s*" matches?
bool wants_device_laws(const Options& options);
// Does recorded work end? Else an outcome says that it does not, and whatever waits for the device would wait for ever.
bool work_ends(const Subject& subject, std::vector<Outcome>& outcomes);
void run_device_laws(const Subject& subject, const Options& options, const Progress& progress,
                     std::vector<Outcome>& outcomes);

}  // namespace backplane::conformance
