// What is tried: a device, and the device that answers what is right.
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
  bool is_reference() const { return device.backend == reference.backend; }
};

// Told after each entry: how many are done, of how many, and the next one's name.
using Progress = std::function<void(size_t, size_t, const std::string&)>;

// Each calls every sample of the entries in its way, and appends what it found.
void run_tests(const Subject& subject, const std::vector<Entry>& entries, const Options& options,
               const Progress& progress, std::vector<Outcome>& outcomes);

// The outcome of a call that failed where the reference does not: unsupported where the device says so, else a failure.
void judge_failure(const Subject& subject, const Options& options, bp_status status, const std::string& message,
                   Outcome& outcome);

}  // namespace backplane::conformance
