#include "memory/history.hpp"

namespace backplane::core {
constinit HistoryOwner history_owner{};
}  // namespace backplane::core
