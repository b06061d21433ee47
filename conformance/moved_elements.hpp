// The law of ops that say `moves: true`.
#pragma once

#include <string>

#include "call.hpp"

namespace backplane::conformance {

// Which element of the results is none of the arguments' elements, nor a number that was given, nor 0; empty: each is
// one. Of results of a dtype that no argument has, and of calls that compute by an argument's word, nothing is said.
std::string element_from_nowhere(const Entry& entry, const Inputs& inputs, const std::vector<Array>& results);

}  // namespace backplane::conformance
