// What an entry states of its results: the values that a sample expects, the zeros of padded results, and that the op
// moves elements alone.
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
// The first element of a padded result that should be padding and is not, or a wrong count; "" if all is correct.
std::string wrong_padding(const Entry& entry, const std::vector<Array>& results);

// For `moves: true`: the first element of the results that is not an element of an argument, a given number or
// 0; empty if there is none. For results of a dtype that no argument has, and for calls that compute by an argument's
// word, nothing is said.
std::string element_from_nowhere(const Entry& entry, const Inputs& inputs, const std::vector<Array>& results);

}  // namespace backplane::conformance
