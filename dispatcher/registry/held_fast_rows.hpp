// Plans without fast rows, while somebody has to see every call: the slow path then serves them all.
#pragma once

namespace backplane::core {

// `held`: one more holds them back, else one less. Takes the registry's lock, and makes the plans anew.
void hold_fast_rows_back(bool held);
// Under the registry's lock, for who makes plans.
bool fast_rows_are_held() noexcept;

}  // namespace backplane::core
