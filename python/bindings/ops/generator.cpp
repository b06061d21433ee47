// The Generator type and the process's default one.
#include "bindings/ops/generator.hpp"

#include <random>

#include "backplane/graph_function.hpp"
#include "bindings/interpreter/declared.hpp"
#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

struct GeneratorObject {
  PyObject_HEAD bp_generator_state state;
};

PyTypeObject* g_generator_type = nullptr;
PyObject* g_default = nullptr;

bp_generator_state& state_of(PyObject* self) { return reinterpret_cast<GeneratorObject*>(self)->state; }

bool read_word(PyObject* object, const char* argument, uint64_t* word) {
  PyRef integer = PyRef::steal(PyIndex_Check(object) ? PyNumber_Index(object) : nullptr);
  if (!integer && PyErr_Occurred()) return false;  // of its __index__
  if (integer) *word = PyLong_AsUnsignedLongLong(integer.get());
  if (!integer || PyErr_Occurred()) {
    forget_error();
    raise(BP_ERROR_VALUE, "Generator: argument %s: found %R, expected an int from 0 to 2**64 - 1", argument, object);
    return false;
  }
  return true;
}

uint64_t fresh_seed() {
  std::random_device source;
  return (static_cast<uint64_t>(source()) << 32) | source();
}

PyObject* make_generator(PyTypeObject* type, bp_generator_state state) {
  auto* self = PyObject_New(GeneratorObject, type);
  if (self) self->state = state;
  return reinterpret_cast<PyObject*>(self);
}

PyObject* generator_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* keywords[] = {"seed", nullptr};
  PyObject* seed = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Generator", const_cast<char**>(keywords), &seed)) return nullptr;
  return guarded([&]() -> PyObject* {
    uint64_t key = 0;
    if (seed == Py_None) {
      key = fresh_seed();
    } else if (!read_word(seed, "seed", &key)) {
      return nullptr;
    }
    return make_generator(type, {key, 0});
  });
}

PyObject* generator_manual_seed(PyObject* self, PyObject* seed) {
  uint64_t key = 0;
  if (!read_word(seed, "seed", &key)) return nullptr;
  state_of(self) = {key, 0};
  return Py_NewRef(self);
}

PyObject* generator_get_state(PyObject* self, void*) {
  const bp_generator_state state = state_of(self);
  return Py_BuildValue("(KK)", static_cast<unsigned long long>(state.key),
                       static_cast<unsigned long long>(state.counter));
}

int generator_set_state(PyObject* self, PyObject* value, void*) {
  bp_generator_state state{};
  if (!value || !PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) {
    raise(BP_ERROR_TYPE, "Generator: argument state: found %R, expected the pair (key, counter)",
          value ? value : Py_None);
    return -1;
  }
  if (!read_word(PyTuple_GET_ITEM(value, 0), "state", &state.key)) return -1;
  if (!read_word(PyTuple_GET_ITEM(value, 1), "state", &state.counter)) return -1;
  state_of(self) = state;
  return 0;
}

PyObject* generator_setstate(PyObject* self, PyObject* value) {
  if (generator_set_state(self, value, nullptr) < 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* generator_reduce(PyObject* self, PyObject*) {
  PyRef state = PyRef::steal(generator_get_state(self, nullptr));
  return state ? Py_BuildValue("O(i)O", Py_TYPE(self), 0, state.get()) : nullptr;
}

PyObject* generator_repr(PyObject* self) {
  const bp_generator_state state = state_of(self);
  return PyUnicode_FromFormat("Generator(key=%llu, counter=%llu)", static_cast<unsigned long long>(state.key),
                              static_cast<unsigned long long>(state.counter));
}

PyGetSetDef generator_getset[] = {{"state", generator_get_state, generator_set_state,
                                   "tuple[int, int]: The pair (key, counter); set it to go back.", nullptr},
                                  {nullptr, nullptr, nullptr, nullptr, nullptr}};
constexpr Declared kGeneratorDoc = R"(Generator(seed: int | None = None)
--

A sequence of random bits. Without a seed, the sequence is new.)";

constexpr Declared kManualSeedDoc = R"(Generator.manual_seed(self, seed: int, /) -> Generator
--

Restarts the generator with the sequence of `seed`.)";

PyMethodDef generator_methods[] = {{"manual_seed", generator_manual_seed, METH_O, kManualSeedDoc.text},
                                   {"__reduce__", generator_reduce, METH_NOARGS, nullptr},
                                   {"__setstate__", generator_setstate, METH_O, nullptr},
                                   {nullptr, nullptr, 0, nullptr}};
PyType_Slot generator_slots[] = {{Py_tp_new, reinterpret_cast<void*>(generator_new)},
                                 {Py_tp_repr, reinterpret_cast<void*>(generator_repr)},
                                 {Py_tp_getset, generator_getset},
                                 {Py_tp_methods, generator_methods},
                                 {Py_tp_doc, const_cast<char*>(kGeneratorDoc.text)},
                                 {0, nullptr}};
PyType_Spec generator_spec = {"backplane.Generator", sizeof(GeneratorObject), 0, Py_TPFLAGS_DEFAULT, generator_slots};

}  // namespace

// Python: default_generator: Generator
bool add_generator(PyObject* module) {
  g_generator_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&generator_spec));
  if (!g_generator_type) return false;
  g_default = guarded([] { return make_generator(g_generator_type, {fresh_seed(), 0}); });
  return g_default && PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(g_generator_type)) == 0 &&
         PyModule_AddObjectRef(module, "default_generator", g_default) == 0;
}

bool is_generator(PyObject* object) noexcept { return Py_TYPE(object) == g_generator_type; }

PyObject* wrap_generator(bp_generator_state state) noexcept { return make_generator(g_generator_type, state); }

namespace {
thread_local constinit GeneratorNotes* notes = nullptr;
}

PyObject* default_generator() noexcept { return g_default; }

bp_generator_state& generator_state(PyObject* generator) noexcept { return state_of(generator); }

GeneratorNotes::GeneratorNotes() noexcept : outer_(notes) { notes = this; }
GeneratorNotes::~GeneratorNotes() { notes = outer_; }

PyRef GeneratorNotes::take(const bp_generator_state* state) noexcept {
  for (PyRef& noted : noted_)
    if (noted && &state_of(noted.get()) == state) return std::exchange(noted, PyRef{});
  return {};
}

bool GeneratorNotes::is_noting() noexcept { return notes != nullptr; }

bool GeneratorNotes::is_sole_owner(const bp_generator_state* state) noexcept {
  if (!notes) return false;
  for (const PyRef& noted : notes->noted_)
    if (noted && &state_of(noted.get()) == state) return Py_REFCNT(noted.get()) == 1;
  return false;
}

void GeneratorNotes::note(PyObject* generator) {
  for (const PyRef& noted : noted_)
    if (noted.get() == generator) return;
  noted_.push_back(PyRef::borrow(generator));
}

bool reserve_positions(PyObject* generator, OpHandle op, std::span<const bp_value> args,
                       bp_generator_state* reserved) noexcept {
  return guarded([&] {
           if (notes) notes->note(generator ? generator : g_default);
           *reserved = reserve_random(state_of(generator ? generator : g_default), op, args);
           return 0;
         }) == 0;
}

}  // namespace backplane::python
