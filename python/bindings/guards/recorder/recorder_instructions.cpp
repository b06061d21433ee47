// What each instruction reads, stores or does, as its operands say.
#include <algorithm>
#include <string_view>
#include <utility>

#include "bindings/guards/calls.hpp"
#include "bindings/guards/code_files.hpp"
#include "bindings/guards/hidden_state.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/guards/recorder/call_operands.hpp"
#include "bindings/guards/recorder/recorder.hpp"
#include "bindings/guards/texts.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

constexpr const char* kTakesElements = "takes elements of an iterator from outside";

PyObject* at(const FrameStack& stack, int from_top) { return from_top <= stack.count ? stack.end[-from_top] : nullptr; }

bool is_mutable_operand(PyObject* object) {
  return PyList_Check(object) || PyDict_Check(object) || PySet_Check(object) || PyByteArray_Check(object) ||
         is_named(object, "collections.deque") || is_numpy_array(object) || is_named(object, "array.array");
}

// An object that code of this package calls, as a custom_function, by rules that the object holds.
bool is_called_by_package(PyObject* object) {
  if (!has_python_method(Py_TYPE(object), "__call__")) return false;
  const PyRef method = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__call__"));
  forget_error();
  if (!method || !PyFunction_Check(method.get())) return false;
  auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(method.get()));
  const std::string file = text_of_object(code->co_filename);
  return is_package_file(file) && !is_stateful_file(file);
}

PyRef attribute_of(PyFrameObject* frame, const char* name) {
  PyRef found = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), name));
  forget_error();
  return found;
}

}  // namespace

// How many values from the top are ones whose classes say what the instruction does.
static int count_operands(const Instruction& instruction) {
  switch (instruction.action) {
    case Action::kLoadAttribute:
    case Action::kDeleteAttribute:
    case Action::kIterate:
    case Action::kAdvance:
    case Action::kTruth:
    case Action::kSpecial:
      return 1;
    case Action::kLoadItem:
    case Action::kStoreAttribute:
    case Action::kDeleteItem:
    case Action::kContains:
    case Action::kInPlace:
      return 2;
    case Action::kStoreItem:
    case Action::kClassPattern:
      return 3;
    case Action::kStoreSlice:
      return 4;
    case Action::kOperands:
    case Action::kText:
      return instruction.argument;
    default:
      return 0;
  }
}

void Recorder::note_special_methods(const Instruction& instruction, const FrameStack& stack) {
  for (int i = 1; i <= count_operands(instruction); ++i)
    if (PyObject* operand = at(stack, i)) reads_.special_methods(operand);
}

void Recorder::note(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack) {
  note_special_methods(instruction, stack);
  if (!note_read(frame, code, instruction, stack) && !note_store(frame, code, instruction, stack))
    note_operation(frame, code, instruction, stack);
}

bool Recorder::note_read(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack) {
  PyObject *top = at(stack, 1), *second = at(stack, 2);
  const Reads::Storing where{frame, code.is_library};
  switch (instruction.action) {
    case Action::kLoadGlobal:
    case Action::kLoadName:
      reads_.variable(attribute_of(frame, "f_globals").get(), attribute_of(frame, "f_builtins").get(),
                      instruction.name);
      break;
    case Action::kLoadCell:
      if (PyObject* cell = stack.cells[instruction.argument]; cell && PyCell_Check(cell))
        reads_.cell(cell, PyRef::steal(cell_name(code.object.get(), instruction.argument)).get());
      break;
    case Action::kLoadAttribute:
      if (is_tensor(top)) note_tensor_attribute(top, instruction.name, where);
      if (PyFrame_Check(top) && !code.is_library && PyUnicode_CompareWithASCIIString(instruction.name, "f_back") == 0)
        reads_.refuse("inspects the frames of callers", where);
      reads_.attribute(top, instruction.name);
      break;
    case Action::kLoadSuper:
      if (PyObject* callable = at(stack, 3)) note_super(callable, second, top, instruction.name, where);
      break;
    case Action::kLoadItem:
      if (PyDict_Check(second) && stand_in_of(top)) reads_.refuse("looks up a tensor among the keys of a dict", where);
      if (is_tensor(second)) note_array_item(second, top, where);
      reads_.subscript(second, top);
      reads_.content(top);
      break;
    case Action::kClassPattern:
      note_class_pattern(stack, instruction.argument);
      break;
    case Action::kImport:
      if (PyObject* modules = PyImport_GetModuleDict(); PyDict_Contains(modules, instruction.name) == 1)
        reads_.entry(modules, instruction.name);
      break;
    default:
      return false;
  }
  return true;
}

bool Recorder::note_store(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack) {
  PyObject *top = at(stack, 1), *second = at(stack, 2), *third = at(stack, 3);
  const Reads::Storing where{frame, code.is_library};
  switch (instruction.action) {
    case Action::kStoreGlobal:
      reads_.stores_variable(attribute_of(frame, "f_globals").get(), instruction.name, top, where);
      break;
    case Action::kDeleteGlobal:
      reads_.stores_variable(attribute_of(frame, "f_globals").get(), instruction.name, nullptr, where);
      break;
    case Action::kStoreCell:
      if (PyObject* cell = stack.cells[instruction.argument]; cell && PyCell_Check(cell))
        reads_.stores_cell(cell, PyRef::steal(cell_name(code.object.get(), instruction.argument)).get(), top, where);
      break;
    case Action::kStoreAttribute:
      reads_.stores_attribute(top, instruction.name, second, where);
      break;
    case Action::kDeleteAttribute:
      reads_.stores_attribute(top, instruction.name, nullptr, where);
      break;
    case Action::kStoreItem:
      reads_.stores_entry(second, top, third, where);
      break;
    case Action::kStoreSlice:
      if (const PyRef slice = PyRef::steal(PySlice_New(second, top, nullptr)))
        reads_.stores_entry(third, slice.get(), at(stack, 4), where);
      break;
    case Action::kDeleteItem:
      reads_.stores_entry(second, top, nullptr, where);
      break;
    case Action::kInPlace:
      reads_.content(top);
      if (is_mutable_operand(second)) {
        const PyRef module = imported_module("operator");
        const PyRef function = PyRef::steal(module ? PyObject_GetAttr(module.get(), instruction.name) : nullptr);
        if (function) reads_.changes(second, function.get(), PyRef::steal(PyTuple_Pack(2, second, top)), {}, where);
      }
      break;
    default:
      return false;
  }
  return true;
}

void Recorder::note_operation(PyFrameObject* frame, Code& code, const Instruction& instruction,
                              const FrameStack& stack) {
  PyObject *top = at(stack, 1), *second = at(stack, 2);
  const Reads::Storing where{frame, code.is_library};
  switch (instruction.action) {
    case Action::kCall:
    case Action::kCallUnpacked:
      note_call(frame, stack, instruction);
      break;
    case Action::kKeywordNames:
      keywords_ = PyRef::borrow(instruction.name);
      break;
    case Action::kIterate:
      reads_.content(top);
      if (!PyIter_Check(top)) makes_iterator_ = frame;
      break;
    case Action::kAdvance:
      if (std::exchange(makes_iterator_, nullptr) == frame) reads_.makes_iterator(top);
      reads_.uses_up(top, kTakesElements, where);
      break;
    case Action::kCompareIdentity:
      note_identity(top, second, where);
      break;
    case Action::kContains:
      if (stand_in_of(second) && has_content(top))
        reads_.refuse("looks for a tensor in a container, by identity,", where);
      if (PyIter_Check(top)) reads_.uses_up(top, kTakesElements, where);
      if (PyDict_Check(top)) {
        reads_.subscript(top, second);
        reads_.loads_nothing();
      } else {
        reads_.content(top);
      }
      break;
    case Action::kTruth:
      note_truth(top);
      break;
    case Action::kText:
      if (PyObject* value = at(stack, instruction.argument)) {
        reads_.content(value);
        note_text(value, where);
      }
      break;
    case Action::kOperands:
      if (instruction.argument == 2 && second && PyUnicode_Check(second)) note_text(top, where);  // "%s" % x
      for (int i = 1; i <= instruction.argument && at(stack, i); ++i) {
        PyObject* operand = at(stack, i);
        reads_.content(operand);
        if (PyIter_Check(operand) && !is_tensor(operand)) reads_.uses_up(operand, kTakesElements, where);
        if (is_named(operand, "decimal.Decimal")) note_decimal_context(reads_);
        if (is_numpy_array(operand) || is_numpy_scalar(operand)) note_numpy_errors(reads_);
      }
      break;
    default:
      break;
  }
}

// One instruction for super(...).name, from 3.12 on.
void Recorder::note_super(PyObject* callable, PyObject* type, PyObject* object, PyObject* name,
                          const Reads::Storing& at) {
  if (callable != reinterpret_cast<PyObject*>(&PySuper_Type))
    return note_call_of(callable, {type, object}, nullptr, at);
  const PyRef super = PyRef::steal(PyObject_CallFunctionObjArgs(callable, type, object, nullptr));
  if (super) reads_.attribute(super.get(), name);
  forget_error();
}

// In a trace the text of a tensor does not show its values.
void Recorder::note_text(PyObject* object, const Reads::Storing& at) {
  if (is_named(object, "backplane.Generator")) reads_.keep_none("it makes text of a generator of random numbers");
  if (shows_tensor(object)) reads_.refuse("makes text of a tensor, whose values are not known,", at);
}

void Recorder::note_truth(PyObject* object) {
  if (PyBool_Check(object) || is_tensor(object)) return;
  reads_.content(object);
}

// ---- calls -----------------------------------------------------------------------------------------------------

void Recorder::note_call(PyFrameObject* frame, const FrameStack& stack, const Instruction& instruction) {
  const Reads::Storing where{frame, code_of(frame).is_library};
  PyRef keywords = std::exchange(keywords_, PyRef{});
  const CallOperands call = call_operands(instruction, stack);
  if (!call.callable) return;
  std::vector<PyObject*> arguments;
  if (instruction.action == Action::kCallUnpacked) {
    PyObject *given = call.arguments[0], *words = call.arguments.size() > 1 ? call.arguments[1] : nullptr;
    reads_.content(given);
    if (PyTuple_Check(given) || PyList_Check(given))
      arguments.assign(PySequence_Fast_ITEMS(given), PySequence_Fast_ITEMS(given) + PySequence_Fast_GET_SIZE(given));
    if (words && PyDict_Check(words)) {
      keywords = PyRef::steal(PyDict_Keys(words));
      keywords = PyRef::steal(keywords ? PyList_AsTuple(keywords.get()) : nullptr);
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t i = 0; PyDict_Next(words, &i, &key, &value);) arguments.push_back(value);
    }
    return note_call_of(*call.callable, std::move(arguments), keywords.get(), where);
  }
  if (call.names) keywords = PyRef::borrow(call.names);
  arguments.assign(call.arguments.begin(), call.arguments.end());
  note_array_call(*call.callable, arguments, call.has_self, where);
  note_call_of(*call.callable, std::move(arguments), keywords.get(), where);
}

void Recorder::note_call_of(PyObject* callable, std::vector<PyObject*> arguments, PyObject* keywords,
                            const Reads::Storing& at) {
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  reads_.special_methods(callable);
  for (PyObject* argument : arguments) reads_.special_methods(argument);
  bool by_package = false;
  if (PyFunction_Check(function)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(function));
    const std::string file = text_of_object(code->co_filename);
    by_package = is_package_file(file) && !is_stateful_file(file);
  } else if (is_called_by_package(function)) {
    reads_.instance_attributes(function);
  }
  const bool is_id = name_of_c_function(function) == "id";
  if (is_id && arguments.size() == 1 && !at.by_library && stand_in_of(arguments[0]))  // copy.deepcopy asks for itself
    return reads_.refuse("asks for the id of a tensor", at);
  if (is_id && arguments.size() == 1 && !at.by_library && is_made_now(arguments[0]))
    reads_.keep_none("it asks for the id of an object that it made");
  if (may_make_text(function, arguments))
    for (PyObject* argument : arguments) note_text(argument, at);
  python::note_call({callable, std::move(arguments), keywords, by_package}, reads_, at);
}

// match value: case Class(a=…): attributes by the class's __match_args__, then by name.
void Recorder::note_class_pattern(const FrameStack& stack, int count) {
  PyObject *names = at(stack, 1), *type = at(stack, 2), *subject = at(stack, 3);
  if (!subject || !PyType_Check(type) || !PyTuple_Check(names)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) reads_.attribute(subject, PyTuple_GET_ITEM(names, i));
  const PyRef word = PyRef::steal(PyUnicode_InternFromString("__match_args__"));
  if (!word || count == 0) return;
  reads_.attribute(type, word.get());
  const PyRef by_position = PyRef::steal(PyObject_GetAttr(type, word.get()));
  for (Py_ssize_t i = 0;
       by_position && PyTuple_Check(by_position.get()) && i < count && i < PyTuple_GET_SIZE(by_position.get()); ++i)
    reads_.attribute(subject, PyTuple_GET_ITEM(by_position.get(), i));
  forget_error();
}

// Of a tensor that stands for an argument, these are its own and not the argument's.
void Recorder::note_tensor_attribute(PyObject* tensor, PyObject* name, const Reads::Storing& at) {
  for (const char* word : {"__repr__", "__str__", "__format__"})
    if (PyUnicode_CompareWithASCIIString(name, word) == 0) return note_text(tensor, at);
  const StandIn* one = stand_in_of(tensor);
  const char* text = PyUnicode_AsUTF8(name);
  const std::string_view word = text ? text : "";
  const bool is_of_memory = word == "stride" || word == "is_contiguous" || word == "data_ptr";
  if (is_of_memory && word != "is_contiguous" && one)
    return reads_.refuse("asks for " + std::string(word) + " of an argument, which a traced tensor does not have", at);
  if (is_of_memory) reads_.needs_same(tensor);
  if (!one || !is_tensor(one->original.get()) ||
      (word != "requires_grad" && word != "is_leaf" && word != "is_contiguous"))
    return;
  const PyRef own = PyRef::steal(PyObject_GetAttr(tensor, name)),
              original = PyRef::steal(PyObject_GetAttr(one->original.get(), name));
  forget_error();
  if (!own || !original) return;
  if (!same_value(own.get(), original.get()))
    return reads_.refuse("asks for " + std::string(word) + " of an argument, which a traced tensor does not have", at);
  leaf_attributes_.push_back({one->leaf, PyRef::borrow(name), original});
}

// Traced tensors are others than those that the function would be called with.
void Recorder::note_identity(PyObject* a, PyObject* b, const Reads::Storing& at) {
  const auto is_value = [](PyObject* object) {
    return is_plain_value(object) && object != Py_None && !PyBool_Check(object) && object != Py_Ellipsis;
  };
  const bool are_alike =
      Py_TYPE(a) == Py_TYPE(b) || (PyLong_Check(a) && PyLong_Check(b)) || (PyFloat_Check(a) && PyFloat_Check(b));
  if (!at.by_others() && is_value(a) && is_value(b) && are_alike)
    return reads_.refuse("compares two numbers or strings by identity", at);
  if (a != b && (reads_.is_copy(a) || reads_.is_copy(b)))
    return reads_.refuse("compares a container in its arguments by identity, but a trace works on a copy of it,", at);
  if (a == b || !is_tensor(a) || !is_tensor(b)) return;
  const StandIn *of_a = stand_in_of(a), *of_b = stand_in_of(b);
  if (!of_a && !of_b) return;
  if (!of_a) std::swap(of_a, of_b), std::swap(a, b);
  PyObject* other = of_b ? of_b->original.get() : b;
  if (of_a->original.get() == other)
    return reads_.refuse("asks whether two tensors are the same object, which they are,", at);
  distinct_.push_back({of_a->leaf, of_b ? std::optional(of_b->leaf) : std::nullopt, PyRef::borrow(of_b ? nullptr : b)});
}

}  // namespace backplane::python
