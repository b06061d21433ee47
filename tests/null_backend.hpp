// A backend for tests of the core: host memory, no device, and plain loops for a handful of ops in float64 and float32.
//
// `null_backend()` registers it once per process, as a plugin would through the host table, and returns its device.
#pragma once

#include <vector>

#include "backplane/device.hpp"
#include "backplane/op.hpp"

namespace backplane::testing {

bp_device null_backend();

Tensor tensor(const std::vector<double>& values, std::initializer_list<int64_t> shape);
inline Tensor scalar(double x) { return tensor({x}, {}); }
std::vector<double> values(const Tensor& t);
double item(const Tensor& t);

// bp::NAME with positional tensors.
Tensor op(std::string_view name, std::initializer_list<bp_value> args);
inline Tensor add(const Tensor& a, const Tensor& b) { return op("add", {value(a), value(b)}); }
inline Tensor multiply(const Tensor& a, const Tensor& b) { return op("multiply", {value(a), value(b)}); }
inline Tensor negative(const Tensor& a) { return op("negative", {value(a)}); }
inline Tensor exp(const Tensor& a) { return op("exp", {value(a)}); }
inline Tensor sum(const Tensor& a) { return op("sum", {value(a)}); }
Tensor select(const Tensor& a, int64_t axis, int64_t index);

// How many live allocations the backend has.
int64_t live_blocks();

}  // namespace backplane::testing
