// Arrays of the host: what samples are drawn into, what devices are given, and what results are compared in.
//
// Numbers are pairs of long double, which hold every element of every dtype exactly.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "backplane/device.hpp"
#include "registry.hpp"

namespace backplane::conformance {

struct Number {
  long double re = 0, im = 0;
};

struct Array {
  Array() = default;
  Array(bp_dtype dtype, std::vector<int64_t> shape);

  size_t count() const;
  Number at(size_t i) const;
  void set(size_t i, Number value);  // rounds; an integer keeps its low bits
  bool operator==(const Array& other) const = default;

  bp_dtype dtype = BP_FLOAT64;
  std::vector<int64_t> shape;
  std::vector<unsigned char> bytes;  // row-major
};

size_t count_of(const std::vector<int64_t>& shape);
Array as_dtype(const Array& array, bp_dtype dtype);
bool is_inexact(bp_dtype dtype);
double epsilon(bp_dtype dtype);  // of the real type; of exact dtypes float32's, as float32 is what they become

// The element at an index of `shape`, taken along other axes: positions of the result's elements in the source.
std::vector<size_t> permuted(const std::vector<int64_t>& shape, const std::vector<size_t>& order);
std::string shape_text(const std::vector<int64_t>& shape);

// The elements of one tensor of a sample, the same for one seed everywhere. `dtype`: of specs that state none.
Array draw(const TensorSpec& spec, bp_dtype dtype, uint64_t seed);
uint64_t seed_of(const std::string& text);

Array from_tensor(const Tensor& tensor);  // waits
Tensor to_tensor(const Array& array, bp_device device);

}  // namespace backplane::conformance
