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
// What of a padded result is not padding though it should be, or a count that is none; "" where all is as it should be.
std::string wrong_padding(const Entry& entry, const std::vector<Array>& results);

// Of `moves: true`: which element of the results is none of the arguments' elements, nor a number that was given, nor
// 0; empty: each is one. Of results of a dtype that no argument has, and of calls that compute by an argument's word,
// nothing is said.
std::string element_from_nowhere(const Entry& entry, const Inputs& inputs, const std::vector<Array>& results);

}  // namespace backplane::conformance
