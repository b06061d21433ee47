// Results that an entry states: the values that a sample expects, and the zeros of padded results.
#pragma once

#include <string>
#include <vector>

#include "call.hpp"

namespace backplane::conformance {

// Does the sample state results, and hold the arguments in this dtype the values that it states? Complex numbers are
// drawn with imaginary parts, which no sample states.
bool states_results(const Entry& entry, size_t sample, const Inputs& inputs);
// How the results differ from the stated ones; "" where they do not.
std::string unlike_stated(const Entry& entry, size_t sample, const std::vector<Array>& results);
// What of a padded result is not padding though it should be, or a count that is none; "" where all is as it should be.
std::string wrong_padding(const Entry& entry, const std::vector<Array>& results);

}  // namespace backplane::conformance
