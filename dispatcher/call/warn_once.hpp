// A warning that an op gives once in a process, however often it has reason to.
#pragma once

#include <atomic>
#include <string>

#include "record/host_table.hpp"
#include "record/op_record.hpp"

namespace backplane::core {

// `text` makes the words, the first time alone.
template <class Text>
void warn_once(std::atomic<bool>& said, Text text) {
  if (!said.exchange(true, std::memory_order_relaxed)) host_table.log(BP_LOG_WARNING, std::string(text()).c_str());
}

}  // namespace backplane::core
