// Instructions that read sizes of traced tensors.
#include "bindings/guards/recorder/call_operands.hpp"
#include "bindings/guards/recorder/recorder.hpp"
#include "bindings/sizes/size_calls.hpp"

namespace backplane::python {

// An argument by keyword is one as any other: functions of one argument take none by keyword.
void Recorder::note_sizes(const Instruction& instruction, const FrameStack& stack) const {
  PyObject *top = stack.count > 0 ? stack.end[-1] : nullptr, *second = stack.count > 1 ? stack.end[-2] : nullptr;
  switch (instruction.action) {
    case Action::kOperands:
    case Action::kInPlace:
      if (instruction.argument == 2 && second) note_size_operands(stack.end - 2, stack.end - 1);
      break;
    case Action::kLoadItem:
    case Action::kDeleteItem:
    case Action::kStoreItem:
      if (second) note_size_subscript(second, top);
      break;
    case Action::kContains:
      if (second) note_size_search(second, top);
      break;
    case Action::kLoadAttribute:
      if (top) note_size_attribute(top, instruction.name);
      break;
    case Action::kCall:
    case Action::kCallUnpacked:
      if (const CallOperands call = call_operands(instruction, stack); call.callable)
        note_size_call(call.callable, call.arguments, instruction.action != Action::kCallUnpacked);
      break;
    default:
      break;
  }
}

}  // namespace backplane::python
