// Numbers that change from call to call: which ones a trace follows, and their values in a replay.
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/static_values.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/traced_call.hpp"

namespace backplane::python {

void TracedCall::find_changed_numbers(const CallInputs& inputs, std::set<std::string>* places) const {
  const bool are_alike =
      inputs.trees.leaves.size() == statics_.size() && inputs.trees.entries.size() == arguments_.size();
  for (size_t i = 0; are_alike && i < statics_.size(); ++i) {
    PyObject *own = statics_[i].get(), *found = inputs.trees.leaves[i].get();
    if (own && may_be_traced(own) && may_be_traced(found) && same_static(own, found) != 1)
      places->insert("static argument " + leaf_name(i));
  }
  guards_.find_changed_numbers(places);
  forget_error();
}

// The function gets a traced number in place of each leaf that is one of those that change.
void TracedCall::enter_numbers(NumberLog& log, InlineVector<PyObject*, 8>& leaves) {
  static_steps_.assign(statics_.size(), std::nullopt);
  for (size_t i = 0; i < statics_.size(); ++i) {
    if (!statics_[i]) continue;
    const PyRef number = log.root(statics_[i].get(), "static argument " + leaf_name(i));
    if (!number) continue;
    static_steps_[i] = log.step_of(number.get());
    leaves[i] = number.get();  // which the log holds
  }
}

// After the trace: objects that it stored into hold plain numbers, and each replay stores its own.
bool TracedCall::find_numbers(NumberLog& log) {
  std::vector<PyObject*> stored;
  if (!effects_.find_numbers(&stored)) hides_numbers_ = true;
  for (PyObject* number : stored)
    if (const uint32_t step = log.step_of(number); step != NumberProgram::Operand::kConstant)
      stored_numbers_[number] = step;
  program_ = log.take();
  if (hides_numbers_) return effects_.take_back(), true;
  if (effects_.settle_numbers() || !unkept_.empty()) return true;
  effects_.take_back();
  return effects_.replay(untraced, nullptr);
}

bool TracedCall::repeat_effects(const CallInputs& inputs) const {
  const auto number = [&](PyObject* size) {
    if (is_traced_number(size)) return inputs.numbers[stored_numbers_.at(size)];
    const auto stored = stored_sizes_.find(size);
    return stored == stored_sizes_.end() ? plain_number(size) : number_of(stored->second, inputs);
  };
  return make_anew(inputs) && effects_.replay(number, inputs.anew.get());
}

bool TracedCall::same_numbers(const CallInputs& inputs, std::string* why) const {
  inputs.number_tensors.clear();
  if (!program_.run(inputs.numbers, why)) return false;
  if (program_.make_tensors(inputs.numbers, &inputs.number_tensors)) return true;
  if (why) *why = "a number is out of the range of the tensors' dtype";
  return false;
}

}  // namespace backplane::python
