// Instructions that read sizes of traced tensors.
#include "bindings/guards/recorder.hpp"
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
    case Action::kCallUnpacked: {
      const int words = instruction.argument & 1;
      if (stack.count < 2 + words) break;
      PyObject** const callable = stack.end - 2 - words;
      std::vector<PyObject*> arguments(callable + 1, stack.end);
      note_size_call(callable, arguments, false);
      break;
    }
    case Action::kCall:
    case Action::kCallPlain: {
      const int in_front = instruction.action == Action::kCallPlain ? 1 : 2;
      if (stack.count < instruction.argument + in_front) break;
      PyObject** const first = stack.end - instruction.argument;
      const bool is_method = in_front == 2 && first[-2];
      note_size_call(is_method ? first - 2 : first - 1, {is_method ? first - 1 : first, stack.end}, true);
      break;
    }
    default:
      break;
  }
}

}  // namespace backplane::python
