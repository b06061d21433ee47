#include "call/call_errors.hpp"

#include <cctype>
#include <sstream>
#include <string>

#include "memory/devices/device.hpp"
#include "record/builtin_numbers.hpp"
#include "record/shape_words.hpp"

namespace backplane::core {

namespace {

// The builtins' mark of what a formula made of its arguments, which means nothing to who gave them.
constexpr std::string_view kInFormula = " in its formula ";

std::string given_text(const bp_value& value) {
  if (value.tag == BP_TAG_TENSOR) {
    const DLTensor& x = value.u.t->dl;
    return " of shape " + shape_text({x.shape, static_cast<size_t>(x.ndim)});
  }
  if (value.tag == BP_TAG_INT_LIST) return "=" + shape_text({value.u.ints, value.count});
  if (value.tag == BP_TAG_INT) return "=" + std::to_string(value.u.i);
  if (value.tag != BP_TAG_FLOAT) return "";
  std::ostringstream text;
  text << '=' << value.u.f;
  return text.str();
}

// All that was given and can be said in a word.
std::string given_arguments(const OpRecord& op, const bp_value* args, int32_t n_args) {
  std::string text;
  const size_t n = std::min(static_cast<size_t>(n_args), op.args.size());
  for (size_t i = 0; i < n; ++i)
    if (const std::string given = given_text(args[i]); !given.empty())
      text += (text.empty() ? ": found " : ", ") + std::string(op.args[i].name) + given;
  return std::string(op.name) + text;
}

}  // namespace

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

std::string in_terms_of_call(std::string_view message, const OpEntry& op, const bp_value* args, int32_t n_args) {
  if (message.find(kInFormula) == std::string_view::npos) return {};
  return given_arguments(*op.record, args, n_args) +
         ", which have no result in its formula; its documentation describes the arguments";
}

void fail_rule(const Error& error, const OpEntry& op, uint16_t rule, const bp_value* args) {
  if (error.code() == BP_ERROR_PYTHON) throw;
  const std::string_view message = error.what();
  const char* of = rule == BP_RULE_BATCH ? "batch rule" : rule == BP_RULE_PUT ? "inverse" : "derivative";
  if (message.find(kInFormula) != std::string_view::npos)
    throw Error(error.code(), given_arguments(*op.record, args, args ? op.n_args : 0) + ", for which its " + of +
                                  " has no result; its documentation describes the arguments");
  if (names_op(message, op)) throw;
  throw Error(error.code(), std::string(op.record->name) + ": its " + of + ": " + std::string(message));
}

bp_status fail_stored(const bp_value& slot, int32_t index) {
  const char* found = slot.tag == BP_TAG_ABSENT ? "nothing" : slot.u.p ? tag_name(slot.tag) : "a null pointer";
  keep_error("its kernel left " + std::string(found) + " as result " + std::to_string(index) +
             "; expected the tensor that was there, or a new one");
  return BP_ERROR_TYPE;
}

bp_status status_of_kernel(Device& device, const PluginRecord* owner, bp_status status) {
  if (status != BP_ERROR_DEVICE_LOST) return status;
  if (owner != device.backend->owner) return BP_ERROR_DEVICE;
  mark_lost(device, cold().error);
  return status;
}

void throw_status(bp_status status, const OpEntry& op, const char* who) {
  std::string message = take_cause();
  if (!names_op(message, op))
    message = std::string(op.record->name) + ": " + (who && *who ? std::string(who) + ": " : "") + message;
  throw Error(status, message);
}

// At the outermost edge the failure in flight ends. An op on its way may be what failed: the one that was called is
// named too.
bp_status fail_call(const CallGuard& guard, const OpEntry* op, const bp_value* args, int32_t n_args) noexcept {
  const bp_status status = status_of_exception();
  if (!guard.outermost()) return status;
  ThreadCold& block = cold();
  block.error_is_new = false;
  if (!op || status == BP_ERROR_PYTHON) return status;
  if (std::string said = in_terms_of_call(block.error, *op, args, n_args); !said.empty())
    block.error = std::move(said);
  else if (!names_op(block.error, *op))
    block.error.insert(0, found_arguments(*op->record, args, n_args) + ": ");
  return status;
}

}  // namespace backplane::core
