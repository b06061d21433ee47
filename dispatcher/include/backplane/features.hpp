// Features and properties of a device, by name. Functions throw Error.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "backplane/device.hpp"

namespace backplane {

// Does the device have a feature? Of every backend: a dtype in which it computes, by name or short ("float16", "f16",
// "bf16", "f64", "c64"); "addressable", "host_memory", "synchronous", "suballocatable" and "host", from its flags; the
// extensions that it offers ("capture", "peer", "pinned", "time", …). Beside these, the words of the backend's own.
BACKPLANE_API bool has_feature(bp_device device, std::string_view name);
BACKPLANE_API std::vector<std::string> features(bp_device device);  // sorted, dtypes by their full names

using Property = std::variant<bool, int64_t, double, std::string>;
// Of every device "name", "backend", "ordinal", "plugin", "total_memory" and "alignment"; then the backend's own.
BACKPLANE_API std::vector<std::pair<std::string, Property>> properties(bp_device device);

}  // namespace backplane
