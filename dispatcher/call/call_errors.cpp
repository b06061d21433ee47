#include "call/call_errors.hpp"

#include <cctype>
#include <string>

#include "record/shape_words.hpp"

namespace backplane::core {

bool names_op(std::string_view message, const OpEntry& op) {
  const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string_view name = op.record->name;
  name.remove_prefix(name.rfind(':') + 1);
  for (size_t at = message.find(name); at != std::string_view::npos; at = message.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !in_word(message[at - 1])) && (end == message.size() || !in_word(message[end]))) return true;
  }
  return false;
}

void throw_status(bp_status status, const OpEntry& op, const char* who) {
  std::string message = take_error();
  if (message.empty()) message = "failed without a message";
  if (!names_op(message, op))
    message = std::string(op.record->name) + ": " + (who && *who ? std::string(who) + ": " : "") + message;
  throw Error(status, message);
}

// At the outermost edge the failure in flight ends. An op on its way may be what failed: the one that was called is
// named too.
bp_status fail_call(uint32_t op, const bp_value* args, int32_t n_args) noexcept {
  const bp_status status = status_of_exception();
  if (thread_state.inside()) return status;
  ThreadCold& block = cold();
  block.error_is_new = false;
  const OpEntry* entry = op_entry(op);
  if (entry && status != BP_ERROR_PYTHON && !names_op(block.error, *entry))
    block.error.insert(0, found_arguments(*entry->record, args, n_args) + ": ");
  return status;
}

}  // namespace backplane::core
