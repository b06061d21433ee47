// A sample differentiated backwards, with random cotangents of its results, and its inputs as flat lists.
#pragma once

#include <cstdint>

#include "call.hpp"
#include "trial.hpp"

namespace backplane::conformance {

struct Differentiated {
  bp_status status = BP_OK;
  std::string message;
  std::vector<Array> results;  // those with a derivative
  std::vector<Array> gradients;
  std::vector<size_t> of;  // per gradient: its place among the tensors of the call
};

inline constexpr size_t kAllResults = SIZE_MAX;

// In the dtypes of the inputs. `again`: the gradients of the sum of <gradient, its random direction>, over the
// inputs that move it: second derivatives. `only`: of the result at that place among `results`, and of no other.
Differentiated differentiated(const Entry& entry, const Inputs& inputs, bp_device device, bool again = false,
                              size_t only = kAllResults);

// The same for the same seed: cotangents and directions.
Array random_like(const Array& array, uint64_t seed);
long double inner(const Array& a, const Array& b);
// The arrays of the inputs in the order in which a call holds its tensors.
std::vector<Array*> arrays_of(Inputs& inputs);
// The inputs with one tensor moved along the direction.
Inputs moved(Inputs inputs, size_t tensor, const Array& direction, double step);

inline constexpr uint64_t kCotangentSeed = 11, kDirectionSeed = 5, kAgainSeed = 23;

}  // namespace backplane::conformance
