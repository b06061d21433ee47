// Properties of a device by name, for bp_extension_features: a table of members of the struct that holds a backend's
// facts.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "backplane/abi/value.h"

namespace backplane::plugin {

// One row: {"subgroup_size", property<&Facts::subgroup_size>}. The member is an integer, a bool or a std::string, whose
// text the value shows: the facts outlive it.
template <class Facts>
struct DeviceProperty {
  const char* name;
  void (*get)(const Facts& facts, bp_value& value);
};

template <auto Member, class Facts>
void property(const Facts& facts, bp_value& value) {
  const auto& fact = facts.*Member;
  using T = std::remove_cvref_t<decltype(fact)>;
  if constexpr (std::is_same_v<T, std::string>) {
    value.tag = BP_TAG_STRING, value.u.s = fact.c_str(), value.count = static_cast<uint32_t>(fact.size());
  } else {
    value.tag = std::is_same_v<T, bool> ? BP_TAG_BOOL : BP_TAG_INT, value.u.i = fact;
  }
}

}  // namespace backplane::plugin
