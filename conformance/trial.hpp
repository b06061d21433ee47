// Shared by the modes: the dtypes in which a sample is called, the reference, and the judgement of an outcome.
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "call.hpp"
#include "subject.hpp"

namespace backplane::conformance {

// One per class of dtypes that the dtypes hold, the usual one first.
std::vector<bp_dtype> representatives(const std::vector<bp_dtype>& dtypes);
size_t elements_of(const Inputs& inputs);
// The sizes of the axes of its tensors.
std::set<int64_t> sizes_of(const Sample& sample);

// Is the same call in the widest dtype what this one rounds?
bool widens(const Entry& entry, bp_dtype dtype);
// The inputs that the sample is called with on the device.
Inputs inputs_of(const Subject& subject, const Entry& entry, size_t sample, bp_dtype dtype);
// On the CPU, in the widest dtype; where the CPU is under test, by the entry's decomposition, if it has one.
CallResult reference_call(const Subject& subject, const Entry& entry, const Inputs& inputs, bp_dtype dtype);

// Has a plugin's entry a decomposition, which its kernel is held against?
bool has_kernel_to_compare(const Entry& entry);

// What the entry's `except:` says of these laws, which are then not tried.
void note_exceptions(const Entry& entry, std::initializer_list<const char*> laws, std::vector<Outcome>& outcomes);

Route route_of(const Entry& entry, const CallCounts& counts);
// The outcome of a call that failed: unsupported where the device lacks the dtype, else a failure.
bool is_lacking(const std::string& message);
void judge_failure(const Options& options, bp_status status, const std::string& message, Outcome& outcome);
// Of a sample that fails on the device and the reference, and is not one that is to fail.
std::string nowhere_text(const std::string& message);
// The outcome of a call that the reference answers with `expected`.
void judge(const Entry& entry, const Options& options, const CallResult& found, const CallResult& expected,
           Outcome& outcome);

}  // namespace backplane::conformance
