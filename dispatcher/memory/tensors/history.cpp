#include "memory/tensors/history.hpp"

namespace backplane::core {
constinit HistoryOwner history_owner{};
std::atomic<uint64_t> inplace_changes{1};
}  // namespace backplane::core
