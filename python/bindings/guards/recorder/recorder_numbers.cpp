// Instructions that load, compute with, or hand on traced numbers.
#include <algorithm>
#include <string_view>

#include "bindings/guards/code_files.hpp"
#include "bindings/guards/recorder/call_operands.hpp"
#include "bindings/guards/recorder/number_calls.hpp"
#include "bindings/guards/recorder/recorder.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/sizes/number_log.hpp"

namespace backplane::python {
namespace {

// A call is noted before the instruction that makes it, or, in Python 3.11, before one that comes before that.
constexpr int kStepsOfCall = PY_VERSION_HEX < 0x030C0000 ? 1 : 0;

bool is_call(Action action) { return action == Action::kCall || action == Action::kCallUnpacked; }

// Methods whose results the interpreter reads itself.
constexpr std::string_view kReadByInterpreter[] = {"__hash__",        "__index__",   "__int__",   "__float__",
                                                   "__len__",         "__bool__",    "__round__", "__trunc__",
                                                   "__length_hint__", "__complex__", "__format__"};

}  // namespace

// Before the instruction behind a load: a root takes the place of the number on top of the stack.
void Recorder::put_root(PyFrameObject* frame, Code& code, int offset) {
  if (frame == expected_.frame && expected_.waits > 0) {
    --expected_.waits;
    return;
  }
  const auto expected = std::exchange(expected_, {});
  NumberLog* log = NumberLog::current();
  if (!log) return;
  const FrameStack stack = frame == expected.frame ? frame_stack(frame, depth_of(code, offset)) : FrameStack{};
  if (stack.end && stack.count > 0 && stack.end[-1] == expected.loaded.value.get())
    Py_SETREF(stack.end[-1], Py_NewRef(expected.loaded.root.get()));
  else
    log->look_at(expected.loaded.root.get());
}

void Recorder::expect_root(PyFrameObject* frame, Action action) {
  Reads::Loaded loaded = reads_.take_loaded();
  if (!loaded.root) return;
  if ((action >= Action::kLoadGlobal && action <= Action::kLoadItem) || (is_call(action) && loaded.is_result))
    expected_ = {frame, std::move(loaded), action == Action::kCall ? kStepsOfCall : 0};
  else
    NumberLog::current()->look_at(loaded.root.get());
}

bool Recorder::returns_to_code_of_c(PyFrameObject* frame, const Code& code) {
  const std::string name = text_of_object(reinterpret_cast<PyCodeObject*>(code.object.get())->co_name);
  if (std::find(std::begin(kReadByInterpreter), std::end(kReadByInterpreter), name) != std::end(kReadByInterpreter))
    return true;
  PyFrameObject* const caller = PyFrame_GetBack(frame);
  const PyRef owned = PyRef::steal(reinterpret_cast<PyObject*>(caller));
  const auto calls = calls_c_.find(caller);
  return calls != calls_c_.end() && calls->second;
}

void Recorder::note_numbers(PyFrameObject* frame, const Code& code, const Instruction& instruction,
                            const FrameStack& stack) {
  PyObject **const top = stack.count > 0 ? stack.end - 1 : nullptr,
                   **const second = stack.count > 1 ? top - 1 : nullptr,
                   **const third = stack.count > 2 ? top - 2 : nullptr;
  if (!is_call(instruction.action)) calls_c_.erase(frame);
  switch (instruction.action) {
    case Action::kOperands:
    case Action::kInPlace:
      if (instruction.argument == 2 && second)
        note_number_operands(second, top);
      else if (instruction.argument == 3 && third)
        note_number_key(*third, second), note_number_key(*third, top);
      else if (instruction.argument == 1 && top)
        note_number_operands(nullptr, top);
      break;
    case Action::kLoadItem:
    case Action::kDeleteItem:
      if (second) note_number_key(*second, top);
      break;
    case Action::kStoreItem:
      if (third) note_number_key(*second, top), note_number_item(*second, third);
      break;
    case Action::kStoreSlice:
      if (stack.count > 3)
        note_number_key(*third, second), note_number_key(*third, top), note_number_item(*third, third - 1);
      break;
    case Action::kStoreAttribute:
      if (second) note_number_attribute(*top, instruction.name, second);
      break;
    case Action::kContains:
      if (second) note_number_search(second, top);
      break;
    case Action::kLoadAttribute:
      if (top) settle_number(top);
      break;
    case Action::kReturn:
      if (top && is_traced_number(*top) && returns_to_code_of_c(frame, code)) settle_number(top);
      break;
    case Action::kCall:
    case Action::kCallUnpacked:
      note_number_calls(frame, instruction, stack);
      break;
    default:
      break;
  }
}

void Recorder::note_number_calls(PyFrameObject* frame, const Instruction& instruction, const FrameStack& stack) {
  const CallOperands call = call_operands(instruction, stack);
  if (!call.callable) return;
  const bool is_plain = instruction.action != Action::kCallUnpacked && !instruction.has_names && !keywords_;
  calls_c_[frame] = !note_number_call(call.callable, call.arguments, is_plain);
}

}  // namespace backplane::python
