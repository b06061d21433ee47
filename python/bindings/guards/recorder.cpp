#include "bindings/guards/recorder.hpp"

#include <algorithm>
#include <utility>

#include "bindings/guards/calls.hpp"
#include "bindings/guards/python_types.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/tensor/tensor_object.hpp"
#include "bindings/transforms/user_line.hpp"

namespace backplane::python {
namespace {

thread_local constinit Recorder* current = nullptr;

std::string text_of_object(PyObject* object) {
  const char* text = object && PyUnicode_Check(object) ? PyUnicode_AsUTF8(object) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "";
}

// Where the interpreter's own modules lie; those that users install lie below.
const std::string& library_folder() {
  static const auto* folder = [] {
    const PyRef module = PyRef::steal(PyImport_ImportModule("os"));
    const PyRef file = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "__file__") : nullptr);
    PyErr_Clear();
    const std::string path = text_of_object(file.get());
    return new std::string(path.substr(0, path.find_last_of("/\\") + 1));
  }();
  return *folder;
}

// What loads modules, shows errors and writes messages: what it and the code below it read is no state of the program.
bool is_opaque_code(const std::string& file, const std::string& function) {
  if (file.starts_with("<frozen importlib") || file.starts_with("<frozen zipimport")) return true;
  const std::string& folder = library_folder();
  if (folder.empty() || !file.starts_with(folder)) return false;
  const std::string_view rest = std::string_view(file).substr(folder.size());
  return rest == "traceback.py" || rest == "warnings.py" || (rest == "logging/__init__.py" && function == "_log");
}

bool is_library_file(const std::string& file) {
  const std::string& folder = library_folder();
  return file.starts_with("<frozen ") || (!folder.empty() && file.starts_with(folder) &&
                                          file.find("-packages") == std::string::npos);
}

// Objects that were made since the collector last moved the young ones on.
Reads::New young_objects() {
  Reads::New young;
  const PyRef gc = PyRef::steal(PyImport_ImportModule("gc"));
  const PyRef method = PyRef::steal(gc ? PyObject_GetAttrString(gc.get(), "get_objects") : nullptr);
  const PyRef words = PyRef::steal(Py_BuildValue("{s:i}", "generation", 0)), none = PyRef::steal(PyTuple_New(0));
  const PyRef all =
      PyRef::steal(method && words && none ? PyObject_Call(method.get(), none.get(), words.get()) : nullptr);
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i) young.insert(PyList_GET_ITEM(all.get(), i));
  PyErr_Clear();
  return young;
}

void age_objects() {
  const PyRef gc = PyRef::steal(PyImport_ImportModule("gc"));
  const PyRef done = PyRef::steal(gc ? PyObject_CallMethod(gc.get(), "collect", "i", 0) : nullptr);
  PyErr_Clear();
}

PyObject* at(const FrameStack& stack, int from_top) {
  return from_top <= stack.count ? stack.end[-from_top] : nullptr;
}

// Is it a classmethod, a staticmethod or a property of the function?
bool is_wrapper_of(PyObject* wrapper, PyObject* function) {
  const char* parts[] = {"__func__", "fget", "fset", "fdel"};
  if (!PyObject_TypeCheck(wrapper, &PyProperty_Type) && !PyObject_TypeCheck(wrapper, &PyClassMethod_Type) &&
      !PyObject_TypeCheck(wrapper, &PyStaticMethod_Type))
    return false;
  for (const char* part : parts) {
    const PyRef found = PyRef::steal(PyObject_GetAttrString(wrapper, part));
    PyErr_Clear();
    if (found.get() == function) return true;
  }
  return false;
}

// Arithmetic of decimals hangs on a context that is no operand.
void note_decimal_context(Reads& reads) {
  const PyRef module = PyRef::steal(PyImport_ImportModule("decimal"));
  const PyRef getter = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "getcontext") : nullptr);
  const PyRef builtins = PyRef::steal(PyImport_ImportModule("builtins"));
  const PyRef repr = PyRef::steal(builtins ? PyObject_GetAttrString(builtins.get(), "repr") : nullptr);
  const PyRef none = PyRef::steal(PyTuple_New(0));
  const PyRef context = PyRef::steal(getter && none ? PyObject_CallObject(getter.get(), none.get()) : nullptr);
  const PyRef arguments = PyRef::steal(context ? PyTuple_Pack(1, context.get()) : nullptr);
  if (repr && arguments) {
    reads.result(getter.get(), none.get());
    reads.result(repr.get(), arguments.get());
  }
  PyErr_Clear();
}

bool is_mutable_operand(PyObject* object) {
  return PyList_Check(object) || PyDict_Check(object) || PySet_Check(object) || PyByteArray_Check(object) ||
         is_named(object, "collections.deque") || is_numpy_array(object) || is_named(object, "array.array");
}

}  // namespace

Recorder::Recorder(const char* transform)
    : transform_(transform),
      reads_([this](PyObject* object) { return is_made_now(object); }),
      outer_recorder_(current) {
  PyThreadState* thread = PyThreadState_Get();
  is_blind_ = !frame_stack_is_known() || thread->tracing > 0;
  if (is_blind_) return;
  capsule_ = PyRef::steal(PyCapsule_New(this, nullptr, nullptr));
  if (!capsule_) return;
  if (outer_recorder_)
    before_ = young_objects();
  else
    age_objects();
  had_collector_ = PyGC_Disable() != 0;
  outer_ = thread->c_tracefunc;
  outer_object_ = PyRef::borrow(thread->c_traceobj);
  current = this;
  is_running_ = true;
  for (const char* own : {"opcode", "operator", "copy", "gc", "os"}) PyRef::steal(PyImport_ImportModule(own));
  PyErr_Clear();
  n_modules_ = PyDict_GET_SIZE(PyImport_GetModuleDict());
  PyEval_SetTrace(on_event, capsule_.get());
}

void Recorder::note_function(PyObject* function) { python::note_call({function, {}, nullptr, false}, reads_, {nullptr, false}); }

Recorder::~Recorder() {
  stop();
  if (had_collector_) PyGC_Enable();
}

void Recorder::stop() {
  if (!is_running_) return;
  is_running_ = false;
  current = outer_recorder_;
  if (PyThreadState_Get()->c_tracefunc == on_event)
    PyEval_SetTrace(outer_, outer_object_.get());
  else
    is_blind_ = true;
}

bool Recorder::is_made_now(PyObject* object) {
  return before_.count(object) == 0 && young_objects().count(object) > 0;
}

void Recorder::stands_for(PyObject* traced, size_t leaf, PyObject* original) {
  stand_ins_.push_back({PyRef::borrow(traced), PyRef::borrow(original), leaf});
}

// ---- events ----------------------------------------------------------------------------------------------------

int Recorder::forward(PyFrameObject* frame, int what, PyObject* argument) const {
  return outer_ ? outer_(outer_object_.get(), frame, what, argument) : 0;
}

int Recorder::on_event(PyObject* self, PyFrameObject* frame, int what, PyObject* argument) {
  auto* recorder = static_cast<Recorder*>(PyCapsule_GetPointer(self, nullptr));
  if (what == PyTrace_CALL || what == PyTrace_RETURN) recorder->enter_or_leave(frame, what == PyTrace_CALL);
  if (what == PyTrace_OPCODE && recorder->opaque_ == 0) {
    const bool was_refused = !recorder->reads_.refusal().empty();
    recorder->note(frame);
    if (!was_refused && !recorder->reads_.refusal().empty()) {  // before it does it
      raise_refusal(recorder->transform_, recorder->reads_.refusal());
      return -1;
    }
  }
  // A tool that did not ask for instructions is not told of them.
  const bool is_ours = what == PyTrace_OPCODE && recorder->outer_ != on_event;
  return is_ours ? 0 : recorder->forward(frame, what, argument);
}

Recorder::Code& Recorder::code_of(PyFrameObject* frame) {
  const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  const auto [at, is_new] = codes_.try_emplace(code.get());
  if (is_new) {
    const std::string file = text_of_object(reinterpret_cast<PyCodeObject*>(code.get())->co_filename);
    at->second.object = code;
    at->second.is_library = is_library_file(file);
    at->second.is_opaque =
        is_opaque_code(file, text_of_object(reinterpret_cast<PyCodeObject*>(code.get())->co_name));
    at->second.is_watched = !is_package_file(file) && !at->second.is_opaque;
  }
  return at->second;
}

void Recorder::enter_or_leave(PyFrameObject* frame, bool enters) {
  if (code_of(frame).is_opaque) opaque_ += enters ? 1 : -1;
  if (enters && opaque_ == 0) enter(frame);
}

// The method of a class by which a call came here, whatever looked it up.
void Recorder::enter(PyFrameObject* frame) {
  Code& code = code_of(frame);
  if (!code.is_watched) return;
  const PyRef opcodes = PyRef::steal(PyBool_FromLong(1));
  PyObject_SetAttrString(reinterpret_cast<PyObject*>(frame), "f_trace_opcodes", opcodes.get());
  PyErr_Clear();
  const FrameStack stack = frame_stack(frame);
  if (!stack.function || !PyFunction_Check(stack.function)) return;
  reads_.function(stack.function);
  auto* own = reinterpret_cast<PyCodeObject*>(code.object.get());
  PyObject* self = own->co_argcount > 0 ? stack.locals[0] : nullptr;
  if (self && PyCell_Check(self)) self = PyCell_GET(self);
  if (!self || is_tensor(self)) return;
  PyTypeObject* type = PyType_Check(self) ? reinterpret_cast<PyTypeObject*>(self) : Py_TYPE(self);
  if (!entered_.insert({stack.function, type}).second) return;
  const PyRef mro = PyRef::borrow(type->tp_mro);
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro.get()); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro.get(), i));
    if (!PyType_HasFeature(base, Py_TPFLAGS_HEAPTYPE) || !base->tp_dict) continue;
    PyObject *name = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(base->tp_dict, &at, &name, &value);)
      if (value == stack.function || is_wrapper_of(value, stack.function))
        reads_.of_class(_PyType_Lookup(type, name) == value ? type : base, name);
  }
}

const Recorder::StandIn* Recorder::stand_in_of(PyObject* traced) const {
  const auto is_it = [&](const StandIn& one) { return one.traced.get() == traced; };
  const auto found = std::find_if(stand_ins_.begin(), stand_ins_.end(), is_it);
  return found == stand_ins_.end() ? nullptr : &*found;
}

void Recorder::note(PyFrameObject* frame) {
  Code& code = code_of(frame);
  if (!code.is_watched) return;
#if PY_VERSION_HEX >= 0x030B0000
  const int offset = PyFrame_GetLasti(frame);
#else
  const int offset = frame->f_lasti * 2;
#endif
  const auto [at, is_new] = code.instructions.try_emplace(offset);
  if (is_new) at->second = instruction_at(code.object.get(), offset);
  if (at->second.action == Action::kNone) return;
  const FrameStack stack = frame_stack(frame);
  if (stack.end) note(frame, code, at->second, stack);
  PyErr_Clear();
}

std::string Reads::Storing::line() const {
  PyRef up = PyRef::borrow(reinterpret_cast<PyObject*>(frame));
  std::string line;
  while (up.get()) {
    auto* const at = reinterpret_cast<PyFrameObject*>(up.get());
    const PyRef own = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    const std::string file = text_of_object(reinterpret_cast<PyCodeObject*>(own.get())->co_filename);
    const bool is_users = !is_library_file(file) && !is_package_file(file);
    if (line.empty() || is_users) line = file + ":" + std::to_string(PyFrame_GetLineNumber(at));
    if (is_users && file.find("-packages") == std::string::npos) break;
    up = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  return line;
}

void Recorder::note(PyFrameObject* frame, Code& code, const Instruction& instruction, const FrameStack& stack) {
  PyObject *top = at(stack, 1), *second = at(stack, 2), *third = at(stack, 3);
  const auto globals = [&] { return PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals")); };
  const auto name_of_cell = [&] { return PyRef::steal(cell_name(code.object.get(), instruction.argument)); };
  PyObject* cell = nullptr;
  switch (instruction.action) {
    case Action::kLoadGlobal:
    case Action::kLoadName: {
      const PyRef builtins = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_builtins"));
      reads_.variable(globals().get(), builtins.get(), instruction.name);
      break;
    }
    case Action::kStoreGlobal:
      reads_.stores_variable(globals().get(), instruction.name, top, {frame, code.is_library});
      break;
    case Action::kDeleteGlobal:
      reads_.stores_variable(globals().get(), instruction.name, nullptr, {frame, code.is_library});
      break;
    case Action::kLoadCell:
    case Action::kStoreCell:
      cell = stack.cells[instruction.argument];
      if (!cell || !PyCell_Check(cell)) break;
      if (instruction.action == Action::kLoadCell)
        reads_.cell(cell, name_of_cell().get());
      else
        reads_.stores_cell(cell, name_of_cell().get(), top, {frame, code.is_library});
      break;
    case Action::kLoadAttribute:
      if (is_tensor(top))
        note_tensor_attribute(top, instruction.name, {frame, code.is_library});
      else
        reads_.attribute(top, instruction.name);
      break;
    case Action::kStoreAttribute:
      reads_.stores_attribute(top, instruction.name, second, {frame, code.is_library});
      break;
    case Action::kDeleteAttribute:
      reads_.stores_attribute(top, instruction.name, nullptr, {frame, code.is_library});
      break;
    case Action::kLoadItem:
      if (PyDict_Check(second) && stand_in_of(top))
        reads_.refuse("looks up a tensor among the keys of a dict", {frame, code.is_library});
      reads_.subscript(second, top);
      reads_.content(top);
      break;
    case Action::kStoreItem:
      reads_.stores_entry(second, top, third, {frame, code.is_library});
      break;
    case Action::kDeleteItem:
      reads_.stores_entry(second, top, nullptr, {frame, code.is_library});
      break;
    case Action::kCall:
    case Action::kCallPlain:
    case Action::kCallUnpacked:
      note_call(frame, stack, instruction);
      break;
    case Action::kIterate:
      reads_.content(top);
      if (!PyIter_Check(top)) makes_iterator_ = frame;
      break;
    case Action::kAdvance:
      if (std::exchange(makes_iterator_, nullptr) == frame) reads_.makes_iterator(top);
      reads_.uses_up(top, "takes elements of an iterator from outside", {frame, code.is_library});
      break;
    case Action::kCompareIdentity:
      note_identity(top, second, {frame, code.is_library});
      break;
    case Action::kContains:
      if (stand_in_of(second) && has_content(top))
        reads_.refuse("looks for a tensor in a container, by identity,", {frame, code.is_library});
      if (PyIter_Check(top)) reads_.uses_up(top, "takes elements of an iterator from outside", {frame, code.is_library});
      if (PyDict_Check(top))
        reads_.subscript(top, second);
      else
        reads_.content(top);
      break;
    case Action::kTruth:
      note_truth(top);
      break;
    case Action::kOperands:
      for (int i = 1; i <= instruction.argument && at(stack, i); ++i) {
        PyObject* operand = at(stack, i);
        reads_.content(operand);
        if (PyIter_Check(operand) && !is_tensor(operand))
          reads_.uses_up(operand, "takes elements of an iterator from outside", {frame, code.is_library});
        if (is_named(operand, "decimal.Decimal")) note_decimal_context(reads_);
      }
      break;
    case Action::kClassPattern:
      note_class_pattern(stack, instruction.argument);
      break;
    case Action::kImport:
      if (PyObject* modules = PyImport_GetModuleDict(); PyDict_Contains(modules, instruction.name) == 1)
        reads_.entry(modules, instruction.name);
      break;
    case Action::kKeywordNames:
      keywords_ = PyRef::borrow(instruction.name);
      break;
    case Action::kInPlace:
      reads_.content(top);
      if (is_mutable_operand(second)) {
        const PyRef module = PyRef::steal(PyImport_ImportModule("operator"));
        const PyRef function = PyRef::steal(module ? PyObject_GetAttr(module.get(), instruction.name) : nullptr);
        if (function)
          reads_.changes(second, function.get(), PyRef::steal(PyTuple_Pack(2, second, top)), {}, {frame, code.is_library});
      }
      break;
    case Action::kNone:
      break;
  }
}

void Recorder::note_truth(PyObject* object) {
  if (PyBool_Check(object) || is_tensor(object)) return;
  reads_.content(object);
  for (const char* method : {"__bool__", "__len__"}) {
    const PyRef name = PyRef::steal(PyUnicode_InternFromString(method));
    if (name && PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE)) reads_.of_class(Py_TYPE(object), name.get());
  }
}

// ---- calls -----------------------------------------------------------------------------------------------------

void Recorder::note_call(PyFrameObject* frame, const FrameStack& stack, const Instruction& instruction) {
  const Reads::Storing where{frame, code_of(frame).is_library};
  PyRef keywords = std::exchange(keywords_, PyRef{});
  if (instruction.action == Action::kCallUnpacked) {
    const int words = instruction.argument & 1;
    PyObject *callable = at(stack, 2 + words), *given = at(stack, 1 + words);
    if (!callable || !given) return;
    reads_.content(given);
    std::vector<PyObject*> arguments;
    if (PyTuple_Check(given) || PyList_Check(given))
      arguments.assign(PySequence_Fast_ITEMS(given), PySequence_Fast_ITEMS(given) + PySequence_Fast_GET_SIZE(given));
    if (words && PyDict_Check(at(stack, 1))) {
      keywords = PyRef::steal(PyDict_Keys(at(stack, 1)));
      keywords = PyRef::steal(keywords ? PyList_AsTuple(keywords.get()) : nullptr);
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t i = 0; PyDict_Next(at(stack, 1), &i, &key, &value);) arguments.push_back(value);
    }
    return note_call_of(callable, std::move(arguments), keywords.get(), where);
  }
  int count = instruction.argument;
  PyObject* const* end = stack.end;
  if (instruction.has_names && count > 0) {  // on top of the arguments
    keywords = PyRef::borrow(*--end);
    --count;
  }
  const int in_front = instruction.action == Action::kCallPlain ? 1 : 2;
  if (end - stack.end + stack.count < count + in_front) return;
  PyObject* const* first = end - count;
  PyObject *callable = first[-1], *self = nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  if (in_front == 2) callable = first[-2], self = first[-1];
#else
  if (in_front == 2 && first[-2]) callable = first[-2], self = first[-1];
#endif
  std::vector<PyObject*> arguments;
  if (self) arguments.push_back(self);
  arguments.insert(arguments.end(), first, first + count);
  note_call_of(callable, std::move(arguments), keywords.get(), where);
}

void Recorder::note_call_of(PyObject* callable, std::vector<PyObject*> arguments, PyObject* keywords,
                            const Reads::Storing& at) {
  PyObject* function = PyMethod_Check(callable) ? PyMethod_GET_FUNCTION(callable) : callable;
  bool by_package = false;
  if (PyFunction_Check(function)) {
    auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GetCode(function));
    by_package = is_package_file(text_of_object(code->co_filename));
  }
  const bool is_id = PyCFunction_Check(function) && std::string_view(PyCFunction_GET_FUNCTION(function)
                                                                         ? reinterpret_cast<PyCFunctionObject*>(function)->m_ml->ml_name
                                                                         : "") == "id";
  if (is_id && arguments.size() == 1 && stand_in_of(arguments[0]))
    return reads_.refuse("asks for the id of a tensor", at);
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
  for (Py_ssize_t i = 0; by_position && PyTuple_Check(by_position.get()) && i < count &&
                         i < PyTuple_GET_SIZE(by_position.get());
       ++i)
    reads_.attribute(subject, PyTuple_GET_ITEM(by_position.get(), i));
  PyErr_Clear();
}

// Of a tensor that stands for an argument, these are its own and not the argument's.
void Recorder::note_tensor_attribute(PyObject* tensor, PyObject* name, const Reads::Storing& at) {
  const StandIn* one = stand_in_of(tensor);
  const char* text = one ? PyUnicode_AsUTF8(name) : nullptr;
  if (!text || !is_tensor(one->original.get())) return;
  const std::string_view word = text;
  if (word != "requires_grad" && word != "is_leaf") return;
  const PyRef own = PyRef::steal(PyObject_GetAttr(tensor, name)),
              original = PyRef::steal(PyObject_GetAttr(one->original.get(), name));
  PyErr_Clear();
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
  if (!at.by_library && is_value(a) && is_value(b) && Py_TYPE(a) == Py_TYPE(b))
    return reads_.refuse("compares two numbers or strings by identity", at);
  if (a != b && (reads_.is_copy(a) || reads_.is_copy(b)))
    return reads_.refuse("compares a container among its arguments by identity, of which it was given a copy,", at);
  if (a == b || !is_tensor(a) || !is_tensor(b)) return;
  const StandIn *of_a = stand_in_of(a), *of_b = stand_in_of(b);
  if (!of_a && !of_b) return;
  if (!of_a) std::swap(of_a, of_b), std::swap(a, b);
  PyObject* other = of_b ? of_b->original.get() : b;
  if (of_a->original.get() == other)
    return reads_.refuse("asks whether two tensors are the same object, which they are,", at);
  distinct_.push_back({of_a->leaf, of_b ? std::optional(of_b->leaf) : std::nullopt, PyRef::borrow(of_b ? nullptr : b)});
}

PyObject* unguarded(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count == 0) return raise(BP_ERROR_TYPE, "unguarded: found no function, expected one and its arguments");
  const Recorder::Pause pause;
  return PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(count - 1), keywords);
}

Recorder::Pause::Pause() : outermost_(current) {
  while (outermost_ && outermost_->outer_recorder_) outermost_ = outermost_->outer_recorder_;
  if (!outermost_) return;
  PyThreadState* thread = PyThreadState_Get();
  function_ = thread->c_tracefunc;
  object_ = PyRef::borrow(thread->c_traceobj);
  PyEval_SetTrace(outermost_->outer_, outermost_->outer_object_.get());
}

Recorder::Pause::~Pause() {
  if (outermost_) PyEval_SetTrace(function_, object_.get());
}

// ---- the end ---------------------------------------------------------------------------------------------------

// A module that is not this package's own.
bool Recorder::has_imported() const {
  PyObject *name = nullptr, *module = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(PyImport_GetModuleDict(), &at, &name, &module);)
    if (made_.count(module) > 0 && !text_of_object(name).starts_with("backplane")) return true;
  return false;
}

bool Recorder::close(std::span<const Tensor> used, std::span<const TensorRead> reads, bool guards_variables,
                     Guards* guards, std::string* unkept) {
  stop();
  made_ = young_objects();
  for (PyObject* object : before_) made_.erase(object);
  if (had_collector_) PyGC_Enable();
  had_collector_ = false;
  if (!reads_.refusal().empty()) {
    raise_refusal(transform_, reads_.refusal());
    return false;
  }
  if (!reads_.close({made_, used, reads, transform_, guards_variables}, guards, unkept)) return false;
  if (is_blind_) *unkept = "its code could not be watched while it ran";
  if (PyDict_GET_SIZE(PyImport_GetModuleDict()) != n_modules_ && has_imported()) *unkept = "it imported a module while it ran";
  for (Guards::Distinct& distinct : distinct_) guards->add(std::move(distinct));
  for (Guards::LeafAttribute& attribute : leaf_attributes_) guards->add(std::move(attribute));
  return true;
}

}  // namespace backplane::python
