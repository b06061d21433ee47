#include "bindings/transforms/names_of_run.hpp"

#include <algorithm>
#include <string_view>

#include "bindings/interpreter/errors.hpp"
#include "bindings/transforms/python_function.hpp"

namespace backplane::python {
namespace {

// Nobody changes a number of this package.
bool is_of_this_package(PyObject* globals) {
  PyObject* name = PyDict_GetItemString(globals, "__name__");
  const char* text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  forget_error();
  constexpr std::string_view kPackage = "backplane";
  const std::string_view module = text ? text : "";
  return module.starts_with(kPackage) && (module.size() == kPackage.size() || module[kPackage.size()] == '.');
}

// Not what programs leave as it is.
bool may_change(PyObject* value) { return !PyModule_Check(value) && !PyType_Check(value) && !PyCFunction_Check(value); }

PyRef names_of(PyObject* code, const char* list) {
  PyRef names = PyRef::steal(PyObject_GetAttrString(code, list));
  forget_error();
  return names && PyTuple_Check(names.get()) ? names : PyRef{};
}

// The names of globals that the code reads. Those of attributes stand in the same list of it, so its instructions are
// asked.
std::vector<PyRef> globals_read_by(PyObject* code) {
  std::vector<PyRef> names;
  PyRef dis = PyRef::steal(PyImport_ImportModule("dis"));
  PyRef instructions = PyRef::steal(dis ? PyObject_CallMethod(dis.get(), "get_instructions", "O", code) : nullptr);
  while (PyRef one = PyRef::steal(instructions ? PyIter_Next(instructions.get()) : nullptr)) {
    PyRef op = PyRef::steal(PyObject_GetAttrString(one.get(), "opname"));
    PyRef name = PyRef::steal(PyObject_GetAttrString(one.get(), "argval"));
    if (op && name && PyUnicode_Check(name.get()) && PyUnicode_CompareWithASCIIString(op.get(), "LOAD_GLOBAL") == 0)
      names.push_back(std::move(name));
  }
  forget_error();
  return names;
}

}  // namespace

PyObject* Variable::found() const {
  if (is_cell()) return PyCell_GET(holder.get());
  PyObject* value = PyDict_GetItemWithError(holder.get(), name.get());
  if (!value) forget_error();
  return value;
}

void Variable::put_back() const {
  if (is_cell())
    PyCell_Set(holder.get(), value.get());
  else
    PyDict_SetItem(holder.get(), name.get(), value.get());
}

NamesOfRun::NamesOfRun(StateBefore& state) : state_(state), is_blind_(PyThreadState_Get()->c_profilefunc != nullptr) {
  PyRef self = is_blind_ ? PyRef{} : PyRef::steal(PyCapsule_New(this, nullptr, nullptr));
  if (self) PyEval_SetProfile(on_event, self.get());
  all_ = is_blind_ = !self;
  forget_error();
}

NamesOfRun::~NamesOfRun() { stop(); }

void NamesOfRun::stop() {
  if (!is_blind_ && PyThreadState_Get()->c_profilefunc == on_event) PyEval_SetProfile(nullptr, nullptr);
}

int NamesOfRun::on_event(PyObject* self, PyFrameObject* frame, int what, PyObject*) {
  if (what != PyTrace_CALL) return 0;
  auto* run = static_cast<NamesOfRun*>(PyCapsule_GetPointer(self, nullptr));
  PyRef code = PyRef::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  if (run->codes_.count(code.get()) > 0) return 0;
  PyRef globals = PyRef::steal(PyObject_GetAttrString(reinterpret_cast<PyObject*>(frame), "f_globals"));
  forget_error();
  run->add(code.get(), globals.get());
  return 0;
}

void NamesOfRun::add(PyObject* code, PyObject* globals) {
  if (!codes_.insert(code).second) return;
  kept_.push_back(PyRef::borrow(code));
  for (const char* list : {"co_names", "co_consts"}) {
    PyRef words = names_of(code, list);
    for (Py_ssize_t i = 0; words && i < PyTuple_GET_SIZE(words.get()); ++i) {
      PyObject* word = PyTuple_GET_ITEM(words.get(), i);
      const char* text = PyUnicode_Check(word) ? PyUnicode_AsUTF8(word) : nullptr;
      if (text) names_.insert(text);
    }
  }
  forget_error();
  for (const char* word : {"getattr", "attrgetter", "__dict__", "vars"}) all_ = all_ || names_.count(word) > 0;
  if (globals) add_globals(code, globals);
}

void NamesOfRun::add_globals(PyObject* code, PyObject* globals) {
  const PyRef names = PyDict_Check(globals) && !is_of_this_package(globals) ? names_of(code, "co_names") : PyRef{};
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names.get()); ++i) {
    PyObject* name = PyTuple_GET_ITEM(names.get(), i);
    PyObject* value = PyDict_GetItem(globals, name);
    if (!value || !may_change(value)) continue;
    const auto [place, is_new] = variables_.try_emplace({globals, name});
    if (is_new) {
      place->second = {PyRef::borrow(globals), PyRef::borrow(name), PyRef::borrow(value), snapshot_of(value), {}};
      note(name, value, "global ");
    }
    place->second.codes.push_back(PyRef::borrow(code));
  }
}

void NamesOfRun::note(PyObject* name, PyObject* value, const char* kind) {
  const char* text = PyUnicode_AsUTF8(name);
  forget_error();
  if (!PyFunction_Check(value)) state_.note(value, std::string(kind) + (text ? text : "?"));
}

void NamesOfRun::add_cells(PyObject* callable) {
  const PyRef function = python_function(callable);
  if (!function || !PyFunction_Check(function.get()) || !functions_.insert(function.get()).second) return;
  kept_.push_back(function);
  PyObject *code = PyFunction_GetCode(function.get()), *globals = PyFunction_GetGlobals(function.get());
  if (is_of_this_package(globals)) return;
  if (is_blind_) add_globals(code, globals);
  std::vector<PyRef> inner;
  PyObject* cells = PyFunction_GetClosure(function.get());
  const PyRef names = names_of(code, "co_freevars");
  for (Py_ssize_t i = 0; cells && names && i < PyTuple_GET_SIZE(cells); ++i) {
    PyObject *cell = PyTuple_GET_ITEM(cells, i), *name = PyTuple_GET_ITEM(names.get(), i);
    PyObject* value = PyCell_GET(cell);
    if (!value || !may_change(value)) continue;
    const auto [place, is_new] = variables_.try_emplace({cell, name});
    if (is_new) {
      place->second = {PyRef::borrow(cell), PyRef::borrow(name), PyRef::borrow(value), snapshot_of(value), {}};
      note(name, value, "variable ");
    }
    place->second.codes.push_back(PyRef::borrow(code));
    if (PyCallable_Check(value)) inner.push_back(PyRef::borrow(value));
  }
  const PyRef words = names_of(code, "co_names");
  for (Py_ssize_t i = 0; words && i < PyTuple_GET_SIZE(words.get()); ++i) {
    PyObject* value = PyDict_GetItem(globals, PyTuple_GET_ITEM(words.get(), i));
    if (value && may_change(value) && PyCallable_Check(value)) inner.push_back(PyRef::borrow(value));
  }
  for (const PyRef& value : inner) add_cells(value.get());
}

bool NamesOfRun::has(PyObject* name) const {
  const char* text = PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : nullptr;
  forget_error();
  return text && (all_ || names_.count(text) > 0);
}

std::vector<const Variable*> NamesOfRun::variables() const {
  std::vector<const Variable*> all;
  for (const auto& [place, variable] : variables_) all.push_back(&variable);
  return all;
}

std::vector<const Variable*> NamesOfRun::variables_read() const {
  std::map<PyObject*, std::vector<PyRef>> globals;  // per code
  const auto reads = [&](PyObject* code, const Variable& variable) {
    if (!is_blind_ && codes_.count(code) == 0) return false;
    if (variable.is_cell()) return true;
    const auto [place, is_new] = globals.try_emplace(code);
    if (is_new) place->second = globals_read_by(code);
    return std::any_of(place->second.begin(), place->second.end(), [&](const PyRef& name) {
      return name.get() == variable.name.get() || PyUnicode_Compare(name.get(), variable.name.get()) == 0;
    });
  };
  std::vector<const Variable*> read;
  for (const auto& [place, variable] : variables_)
    if (std::any_of(variable.codes.begin(), variable.codes.end(),
                    [&, &v = variable](const PyRef& code) { return reads(code.get(), v); }))
      read.push_back(&variable);
  return read;
}

}  // namespace backplane::python
