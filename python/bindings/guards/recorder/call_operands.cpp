#include "bindings/guards/recorder/call_operands.hpp"

namespace backplane::python {
namespace {

#if PY_VERSION_HEX >= 0x030D0000
constexpr bool kCallableFirst = true;  // callable, self or NULL; before, what is NULL comes in front of the callable
#else
constexpr bool kCallableFirst = false;
#endif

}  // namespace

CallOperands call_operands(const Instruction& instruction, const FrameStack& stack) {
  CallOperands found;
  PyObject** end = stack.end;
  if (instruction.action == Action::kCallUnpacked) {
    const int given = 1 + (instruction.argument & 1), in_front = kCallableFirst ? 2 : 1;
    if (stack.count < given + in_front) return found;
    found.callable = end - given - in_front;
    found.arguments = {end - given, end};
    return found;
  }
  int count = instruction.argument;
  if (stack.count < count + 2) return found;
  if (instruction.has_names && count > 0) {
    found.names = *--end;
    --count;
  }
  PyObject** const first = end - count;
  found.has_self = (kCallableFirst ? first[-1] : first[-2]) != nullptr;
  found.callable = kCallableFirst || found.has_self ? first - 2 : first - 1;
  found.arguments = {found.has_self ? first - 1 : first, end};
  return found;
}

}  // namespace backplane::python
