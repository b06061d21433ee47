#include "bindings/guards/recorder/recorder.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backplane/traced_tensors.hpp"
#include "bindings/guards/calls.hpp"
#include "bindings/guards/code_files.hpp"
#include "bindings/guards/collections.hpp"
#include "bindings/guards/object_contents.hpp"
#include "bindings/interpreter/collector.h"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/interpreter/python_types.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {
namespace {

thread_local constinit Recorder* current = nullptr;
// Of all threads, guarded by the interpreter lock. It outlives collections while the interpreter ends.
auto& running = *new std::vector<Recorder*>;

// Sizes, or numbers that change: what code of this package does with them is looked at too.
bool follows_numbers() { return SizeLog::current() || NumberLog::current(); }

// Is it a classmethod, a staticmethod or a property of the function?
bool is_wrapper_of(PyObject* wrapper, PyObject* function) {
  const char* parts[] = {"__func__", "fget", "fset", "fdel"};
  if (!PyObject_TypeCheck(wrapper, &PyProperty_Type) && !PyObject_TypeCheck(wrapper, &PyClassMethod_Type) &&
      !PyObject_TypeCheck(wrapper, &PyStaticMethod_Type))
    return false;
  for (const char* part : parts) {
    const PyRef found = PyRef::steal(PyObject_GetAttrString(wrapper, part));
    forget_error();
    if (found.get() == function) return true;
  }
  return false;
}

}  // namespace

// 3.12 looks only once, when a trace function is set, whether any frame has ever asked for instructions.
static void ask_for_instructions() {
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030D0000
  PyObject* frame = reinterpret_cast<PyObject*>(PyEval_GetFrame());
  for (PyObject* value : {Py_True, Py_False})
    if (frame) PyObject_SetAttrString(frame, "f_trace_opcodes", value);
  PyErr_Clear();
#endif
}

Recorder::Recorder(const char* transform, const TraceScope& scope, bool alone)
    : transform_(transform),
      scope_(scope),
      reads_([this](PyObject* object) { return is_made_now(object); }, [this] { return changed_memory(); }),
      outer_recorder_(current) {
  PyThreadState* thread = PyThreadState_Get();
  is_blind_ = thread->tracing > 0 || !alone;
  // Imported before anything is watched. A signal's handler may raise meanwhile: then nothing is kept of this trace.
  for (const char* own : {"opcode", "operator", "copy", "gc", "os"})
    if (!imported_module(own)) is_blind_ = true;
  forget_error();
  if (is_blind_) return;
  capsule_ = PyRef::steal(PyCapsule_New(this, nullptr, nullptr));
  if (!capsule_) return;
  watch_collections();
  const PyRef callbacks = collector_callbacks();
  callbacks_ = PyRef::steal(callbacks ? PyList_AsTuple(callbacks.get()) : nullptr);
  if (outer_recorder_)
    before_ = young_objects();
  else
    age_objects();
  had_collector_ = PyGC_Disable() != 0;
  running.push_back(this);
  outer_ = thread->c_tracefunc;
  outer_object_ = PyRef::borrow(thread->c_traceobj);
  current = this;
  ++g_tracks_tensors;
  is_running_ = true;
  n_modules_ = PyDict_GET_SIZE(PyImport_GetModuleDict());
  ask_for_instructions();
  PyEval_SetTrace(on_event, capsule_.get());
}

void Recorder::note_function(PyObject* function) {
  python::note_call({function, {}, nullptr, false}, reads_, {nullptr, false});
}

Recorder::~Recorder() {
  stop();
  if (had_collector_) PyGC_Enable();
}

void Recorder::stop() {
  if (!is_running_) return;
  is_running_ = false;
  std::erase(running, this);
  current = outer_recorder_;
  --g_tracks_tensors;
  if (PyThreadState_Get()->c_tracefunc == on_event)
    PyEval_SetTrace(outer_, outer_object_.get());
  else
    is_blind_ = true;
}

// The function or another thread collects garbage, which moves the young objects on.
PyObject* Recorder::before_collection(PyObject*, PyObject* args) {
  const char* phase = nullptr;
  PyObject* facts = nullptr;
  if (!PyArg_ParseTuple(args, "sO", &phase, &facts)) return nullptr;
  if (!running.empty() && std::string_view(phase) == "start") {
    const Objects young = young_objects();
    for (Recorder* recorder : running) recorder->moved_on_.insert(young.begin(), young.end());
  }
  return Py_NewRef(Py_None);
}

// Once, and for ever: gc.callbacks is a list of the program, which it may read, copy and restore.
void Recorder::watch_collections() {
  static PyMethodDef definition = {"before_collection", before_collection, METH_VARARGS, nullptr};
  static bool watches = false;
  if (std::exchange(watches, true)) return;
  const PyRef callbacks = collector_callbacks(), callback = PyRef::steal(PyCFunction_New(&definition, nullptr));
  if (callbacks && callback) PyList_Append(callbacks.get(), callback.get());
  forget_error();
}

bool Recorder::is_made_now(PyObject* object) {
  return before_.count(object) == 0 && (moved_on_.count(object) > 0 || young_objects().count(object) > 0);
}

Objects Recorder::made_objects() const {
  Objects made = young_objects();
  const PyRef all = moved_on_.empty() ? PyRef{} : collected_objects({});  // those that still live
  for (Py_ssize_t i = 0; all && i < PyList_GET_SIZE(all.get()); ++i)
    if (PyObject* object = PyList_GET_ITEM(all.get(), i); moved_on_.count(object) > 0) made.insert(object);
  for (PyObject* object : before_) made.erase(object);
  return made;
}

void Recorder::note_made_tensors() {
  std::unordered_set<const bp_tensor*> made;
  for (const Tensor& tensor : noted_tensors()) {
    if (is_over_lent_memory(*tensor.get()) && reads_.was_there(memory_of(tensor)))
      note_lent_tensor(tensor);
    else
      made.insert(tensor.get());
  }
  for (const Tensor& tensor : scope_.changed()) {
    if (made.count(tensor.get()) == 0) continue;
    changed_.insert(tensor.get());
    if (is_over_lent_memory(*tensor.get()))
      reads_.refuse(
          "changes a tensor that shares the memory of an array that it made (asarray(array, copy=True) does not)");
  }
  reads_.set_made_tensors(std::move(made));
}

void Recorder::stands_for(PyObject* traced, size_t leaf, PyObject* original) {
  PyRef held = PyRef::borrow(traced);
  const Py_ssize_t count = Py_REFCNT(traced);
  stand_ins_.push_back({std::move(held), PyRef::borrow(original), leaf, count});
}

void Recorder::hands_over(PyObject* argument, const std::string& path) {
  reads_.name_copy(argument, path);
  add_contents(argument, &handed_);
}

std::vector<MemorySpan> Recorder::changed_memory() const {
  std::vector<MemorySpan> changed;
  for (const Tensor& tensor : scope_.changed()) changed.push_back(memory_of(tensor));
  for (const StandIn& one : stand_ins_)
    if (scope_.has_changed(tensor_of(one.traced.get())))
      changed.push_back(is_tensor(one.original.get()) ? memory_of(tensor_of(one.original.get()))
                                                      : memory_of(one.original.get()));
  return changed;
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
  // A tool that did not ask for instructions gets none.
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
    at->second.is_opaque = is_opaque_code(file, text_of_object(reinterpret_cast<PyCodeObject*>(code.get())->co_name));
    at->second.is_package = is_package_file(file) && !is_stateful_file(file);
    at->second.is_watched = !at->second.is_package && !at->second.is_opaque;
    if (!at->second.is_opaque && frame_stack_wants_depth()) {
      const PyRef module = imported_module("backplane._graphs._stack_depths");
      at->second.depths =
          PyRef::steal(module ? PyObject_CallMethod(module.get(), "stack_depths", "O", code.get()) : nullptr);
      forget_error();
      if (!at->second.depths) reads_.keep_none("the bytecode of a function that it calls cannot be read");
    }
  }
  return at->second;
}

int Recorder::depth_of(const Code& code, int offset) {
  if (!code.depths) return -1;
  const PyRef key = PyRef::steal(PyLong_FromLong(offset));
  PyObject* depth = key ? PyDict_GetItemWithError(code.depths.get(), key.get()) : nullptr;
  return depth ? static_cast<int>(PyLong_AsLong(depth)) : -1;
}

void Recorder::enter_or_leave(PyFrameObject* frame, bool enters) {
  if (enters && !callback_ && callbacks_ && collects_garbage() &&
      is_callback(callbacks_.get(), frame_stack(frame, -1).function)) {
    callback_ = frame;
    ++opaque_;
  } else if (!enters && callback_ == frame) {
    callback_ = nullptr;
    --opaque_;
  }
  if (code_of(frame).is_opaque) opaque_ += enters ? 1 : -1;
  if (enters && opaque_ == 0) enter(frame);
}

#if PY_VERSION_HEX >= 0x030D0000
static PyObject* no_trace_function() {
  static PyMethodDef definition = {
      "no_trace_function", [](PyObject*, PyObject*) -> PyObject* { return Py_NewRef(Py_None); }, METH_VARARGS, nullptr};
  static PyObject* function = PyCFunction_New(&definition, nullptr);
  return function ? function : Py_None;
}
#endif

// The method of a class through which a call came here, for any kind of lookup.
void Recorder::enter(PyFrameObject* frame) {
  Code& code = code_of(frame);
  if (!code.is_watched && !(code.is_package && follows_numbers())) return;
  has_entered_ = true;
  PyObject_SetAttrString(reinterpret_cast<PyObject*>(frame), "f_trace_opcodes", Py_True);
#if PY_VERSION_HEX >= 0x030D0000
  // 3.13 looks at it where a frame has a trace function of its own. An observer that was there before, which called us,
  // calls that function where it gave none itself.
  const PyRef trace = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_trace"));
  if (trace && trace.get() == Py_None)
    PyObject_SetAttrString(reinterpret_cast<PyObject*>(frame), "f_trace", no_trace_function());
#endif
  forget_error();
  if (!code.is_watched) return;
  const SizeLog::Use no_log(nullptr);
  const NumberLog::Use no_numbers(nullptr);
  const FrameStack stack = frame_stack(frame, -1);
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
  has_seen_ = true;
  Code& code = code_of(frame);
  if (!code.is_watched && !(code.is_package && follows_numbers())) return;
  const int offset = PyFrame_GetLasti(frame);
  const auto [at, is_new] = code.instructions.try_emplace(offset);
  if (is_new) at->second = instruction_at(code.object.get(), offset);
  if (expected_.frame) put_root(frame, code, offset);
  if (at->second.action == Action::kNone) return;
  const FrameStack stack = frame_stack(frame, depth_of(code, offset));
  if (stack.end && NumberLog::current()) note_numbers(frame, code, at->second, stack);
  if (stack.end && code.is_watched) {
    const SizeLog::Use no_log(nullptr);
    const NumberLog::Use no_numbers(nullptr);
    const Reads::Storing place{frame, code.is_library};
    reads_.look_from(&place);
    note(frame, code, at->second, stack);
    reads_.look_from(nullptr);
  }
  if (NumberLog::current()) expect_root(frame, at->second.action);
  if (stack.end && SizeLog::current()) note_sizes(at->second, stack);
  forget_error();
}

PyObject* unguarded(PyObject*, PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  if (count == 0) return raise(BP_ERROR_TYPE, "unguarded: found no function, expected a function and its arguments");
  const Recorder::Pause pause;
  return PyObject_Vectorcall(args[0], args + 1, static_cast<size_t>(count - 1), keywords);
}

PyObject* forbid_keeping(PyObject*, PyObject* tensors) {
  if (!PyList_Check(tensors)) return raise(BP_ERROR_TYPE, "forbid_keeping: expected a list of tensors");
  for (Py_ssize_t i = 0; current && i < PyList_GET_SIZE(tensors); ++i)
    current->reads().forbid_keeping(PyList_GET_ITEM(tensors, i));
  return Py_NewRef(Py_None);
}

Recorder::Pause::Pause() : outermost_(current) {
  for (Recorder* each = current; each; each = each->outer_recorder_) {
    each->has_paused_ = true;
    outermost_ = each;
  }
  if (!outermost_) return;
  PyThreadState* thread = PyThreadState_Get();
  function_ = thread->c_tracefunc;
  object_ = PyRef::borrow(thread->c_traceobj);
  PyEval_SetTrace(outermost_->outer_, outermost_->outer_object_.get());
}

Recorder::Pause::~Pause() {
  if (outermost_) PyEval_SetTrace(function_, object_.get());
}

bool Reads::Storing::by_others() const {
  if (by_library) return true;
  const PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  return text_of_object(reinterpret_cast<PyCodeObject*>(code.get())->co_filename).find("-packages") !=
         std::string::npos;
}
std::string Reads::Storing::line() const { return user_line_of(reinterpret_cast<PyObject*>(frame)); }

// ---- the end ---------------------------------------------------------------------------------------------------

// A module that is not this package's own.
bool Recorder::has_imported() const {
  PyObject *name = nullptr, *module = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(PyImport_GetModuleDict(), &at, &name, &module);)
    if (made_.count(module) > 0 && !text_of_object(name).starts_with("backplane")) return true;
  return false;
}

bool Recorder::close(std::span<const Tensor> used, std::span<const Tensor> inputs, bool guards_variables,
                     Guards* guards, std::string* unkept) {
  stop();
  made_ = made_objects();
  if (had_collector_) PyGC_Enable();
  had_collector_ = false;
  if (!reads_.refusal().empty()) {
    raise_refusal(transform_, reads_.refusal());
    return false;
  }
  const std::vector<TensorRead> reads = scope_.reads();
  Objects entered;
  for (const StandIn& one : stand_ins_)
    if (Py_REFCNT(one.traced.get()) > one.count_before) entered.insert(one.traced.get());
  // What follows lets go of objects, and looks at what the others hold.
  std::vector<PyRef> held;
  for (PyObject* object : made_) held.push_back(PyRef::borrow(object));
  const Reads::Closing closing{made_, entered, handed_,    changed_,         used,
                               reads, inputs,  transform_, guards_variables, has_paused_};
  if (!reads_.close(closing, guards, unkept)) return false;
  if (has_entered_ && !has_seen_) is_blind_ = true;  // an interpreter that shows no instructions
  if (is_blind_) *unkept = "its code could not be watched while it ran";
  if (PyDict_GET_SIZE(PyImport_GetModuleDict()) != n_modules_ && has_imported())
    *unkept = "it imported a module while it ran";
  for (Guards::Distinct& distinct : distinct_) guards->add(std::move(distinct));
  for (Guards::LeafAttribute& attribute : leaf_attributes_) guards->add(std::move(attribute));
  return true;
}

}  // namespace backplane::python
