// An outcome as a row of JSON: of the report, and of what a stopped run leaves.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "outcome.hpp"

namespace backplane::conformance {

nlohmann::json json_of(const Outcome& outcome);
Outcome outcome_of(const nlohmann::json& row);

}  // namespace backplane::conformance
