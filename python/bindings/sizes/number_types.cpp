// The types of traced numbers (number_log.hpp): subclasses of float and int whose slots note each use.
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"
#include "bindings/sizes/number_log.hpp"
#include "bindings/sizes/number_operands.hpp"

namespace backplane::python {
namespace {

void look_at_number(PyObject* number) noexcept {
  if (NumberLog* log = NumberLog::current()) log->look_at(number);
}

// A function of the module `operator`. It lives as long as the process.
PyObject* operator_named(const char* name) {
  const PyRef module = imported_module("operator");
  PyObject* function = module ? PyObject_GetAttrString(module.get(), name) : nullptr;
  if (!function) forget_error();
  return function;
}

template <const char* kName>
PyObject* the_operator() {
  static PyObject* const function = operator_named(kName);
  return function;
}

bool is_number_of_python(PyObject* object) { return PyFloat_Check(object) || PyLong_Check(object); }

// Other operands answer themselves, or are found to be none.
template <const char* kName>
PyObject* binary_number(PyObject* a, PyObject* b) {
  if (!is_number_of_python(a) || !is_number_of_python(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* const operands[] = {a, b};
  return compute(the_operator<kName>(), operands, 2);
}

template <const char* kName>
PyObject* unary_number(PyObject* a) {
  return compute(the_operator<kName>(), &a, 1);
}

constexpr char kAdd[] = "add", kSubtract[] = "sub", kMultiply[] = "mul", kDivide[] = "truediv", kFloor[] = "floordiv",
               kRest[] = "mod", kPower[] = "pow", kAnd[] = "and_", kOr[] = "or_", kXor[] = "xor", kLeft[] = "lshift",
               kRight[] = "rshift", kNegative[] = "neg", kPositive[] = "pos", kAbsolute[] = "abs", kInvert[] = "invert",
               kTruth[] = "truth", kLess[] = "lt", kLessEqual[] = "le", kEqual[] = "eq", kNotEqual[] = "ne",
               kGreater[] = "gt", kGreaterEqual[] = "ge";

PyObject* power_of_number(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus == Py_None) return binary_number<kPower>(a, b);
  for (PyObject* operand : {a, b, modulus}) look_at_number(operand);
  const PyRef x = untraced(a), y = untraced(b), z = untraced(modulus);
  return x && y && z ? PyNumber_Power(x.get(), y.get(), z.get()) : nullptr;
}

PyObject* quotient_and_rest(PyObject* a, PyObject* b) {
  if (!is_number_of_python(a) || !is_number_of_python(b)) Py_RETURN_NOTIMPLEMENTED;
  const PyRef quotient = PyRef::steal(binary_number<kFloor>(a, b));
  const PyRef rest = PyRef::steal(quotient ? binary_number<kRest>(a, b) : nullptr);
  return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
}

// ---- Comparisons

// The outcome, as a guard where an operand is followed now.
PyObject* decide(PyObject* function, PyObject* const* operands, size_t count) {
  PyRef plain[2];
  PyObject* given[2];
  bool is_followed = false;
  NumberLog* log = NumberLog::current();
  for (size_t i = 0; i < count; ++i) {
    plain[i] = untraced(operands[i]);
    if (!plain[i]) return nullptr;
    given[i] = plain[i].get();
    is_followed |= log && log->step_of(operands[i]) != NumberProgram::Operand::kConstant;
  }
  PyObject* outcome = PyObject_Vectorcall(function, given, count, nullptr);
  if (outcome && is_followed) log->decide(function, operands, count, outcome);
  return outcome;
}

PyObject* compare_numbers(PyObject* a, PyObject* b, int relation) {
  if (!is_number_of_python(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* (*const operators[])() = {the_operator<kLess>,     the_operator<kLessEqual>, the_operator<kEqual>,
                                      the_operator<kNotEqual>, the_operator<kGreater>,   the_operator<kGreaterEqual>};
  PyObject* const operands[] = {a, b};
  return decide(operators[relation](), operands, 2);
}

int truth_of_number(PyObject* self) {
  const PyRef outcome = PyRef::steal(decide(the_operator<kTruth>(), &self, 1));
  return outcome ? outcome.get() == Py_True : -1;
}

// ---- What looks at the value

template <PyTypeObject* kType>
PyObject* number_text(PyObject* self) {
  look_at_number(self);
  return kType->tp_repr(self);
}
template <PyTypeObject* kType>
Py_hash_t hash_of(PyObject* self) {
  look_at_number(self);
  return kType->tp_hash(self);
}
template <PyTypeObject* kType, unaryfunc PyNumberMethods::*kSlot>
PyObject* converted_number(PyObject* self) {
  look_at_number(self);
  return (kType->tp_as_number->*kSlot)(self);
}

PyObject* method_of_plain(PyObject* self, const char* method, PyObject* arguments) {
  look_at_number(self);
  const PyRef plain = untraced(self);
  const PyRef function = PyRef::steal(plain ? PyObject_GetAttrString(plain.get(), method) : nullptr);
  return function ? PyObject_CallObject(function.get(), arguments) : nullptr;
}
PyObject* format_number(PyObject* self, PyObject* arguments) { return method_of_plain(self, "__format__", arguments); }
PyObject* round_number(PyObject* self, PyObject* arguments) { return method_of_plain(self, "__round__", arguments); }
PyObject* ceil_number(PyObject* self, PyObject*) { return method_of_plain(self, "__ceil__", nullptr); }
PyObject* floor_number(PyObject* self, PyObject*) { return method_of_plain(self, "__floor__", nullptr); }
PyObject* trunc_number(PyObject* self, PyObject*) { return method_of_plain(self, "__trunc__", nullptr); }
PyObject* reduce_number(PyObject* self, PyObject*) {
  look_at_number(self);
  const PyRef plain = untraced(self);
  return plain ? Py_BuildValue("O(O)", Py_TYPE(plain.get()), plain.get()) : nullptr;
}
PyObject* class_of_number(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(self)->tp_base));
}

PyMethodDef number_methods[] = {
    {"__format__", format_number, METH_VARARGS, nullptr}, {"__round__", round_number, METH_VARARGS, nullptr},
    {"__ceil__", ceil_number, METH_NOARGS, nullptr},      {"__floor__", floor_number, METH_NOARGS, nullptr},
    {"__trunc__", trunc_number, METH_NOARGS, nullptr},    {"__reduce__", reduce_number, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce_number, METH_O, nullptr},    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef number_class[] = {{"__class__", class_of_number, nullptr, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class Function>
void* number_slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

#define BP_NUMBER_SLOTS(type)                                                                                         \
  {Py_nb_add, number_slot(binary_number<kAdd>)}, {Py_nb_subtract, number_slot(binary_number<kSubtract>)},             \
      {Py_nb_multiply, number_slot(binary_number<kMultiply>)},                                                        \
      {Py_nb_true_divide, number_slot(binary_number<kDivide>)},                                                       \
      {Py_nb_floor_divide, number_slot(binary_number<kFloor>)}, {Py_nb_remainder, number_slot(binary_number<kRest>)}, \
      {Py_nb_divmod, number_slot(quotient_and_rest)}, {Py_nb_power, number_slot(power_of_number)},                    \
      {Py_nb_negative, number_slot(unary_number<kNegative>)}, {Py_nb_positive, number_slot(unary_number<kPositive>)}, \
      {Py_nb_absolute, number_slot(unary_number<kAbsolute>)}, {Py_nb_bool, number_slot(truth_of_number)},             \
      {Py_nb_int, number_slot(converted_number<type, &PyNumberMethods::nb_int>)},                                     \
      {Py_nb_float, number_slot(converted_number<type, &PyNumberMethods::nb_float>)},                                 \
      {Py_tp_richcompare, number_slot(compare_numbers)}, {Py_tp_repr, number_slot(number_text<type>)},                \
      {Py_tp_hash, number_slot(hash_of<type>)}, {Py_tp_methods, number_methods}, {                                    \
    Py_tp_getset, number_class                                                                                        \
  }

PyType_Slot traced_float_slots[] = {
    BP_NUMBER_SLOTS(&PyFloat_Type),
    {Py_tp_doc, const_cast<char*>("A float of a traced function, as a trace follows it.")},
    {0, nullptr}};
PyType_Slot traced_int_slots[] = {
    BP_NUMBER_SLOTS(&PyLong_Type),
    {Py_nb_and, number_slot(binary_number<kAnd>)},
    {Py_nb_or, number_slot(binary_number<kOr>)},
    {Py_nb_xor, number_slot(binary_number<kXor>)},
    {Py_nb_lshift, number_slot(binary_number<kLeft>)},
    {Py_nb_rshift, number_slot(binary_number<kRight>)},
    {Py_nb_invert, number_slot(unary_number<kInvert>)},
    {Py_nb_index, number_slot(converted_number<&PyLong_Type, &PyNumberMethods::nb_index>)},
    {Py_tp_doc, const_cast<char*>("An int of a traced function, as a trace follows it.")},
    {0, nullptr}};
#undef BP_NUMBER_SLOTS
PyType_Spec traced_float_spec = {"backplane.TracedFloat", 0, 0, Py_TPFLAGS_DEFAULT, traced_float_slots};
PyType_Spec traced_int_spec = {"backplane.TracedInt", 0, 0, Py_TPFLAGS_DEFAULT, traced_int_slots};

PyTypeObject* type_over(PyType_Spec* spec, PyTypeObject* base) {
  const PyRef bases = PyRef::steal(PyTuple_Pack(1, base));
  return bases ? reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(spec, bases.get())) : nullptr;
}

}  // namespace

bool add_number_types() {
  g_number_hook = {type_over(&traced_float_spec, &PyFloat_Type), type_over(&traced_int_spec, &PyLong_Type),
                   look_at_number, follow_operands};
  return g_number_hook.float_type && g_number_hook.int_type;
}

}  // namespace backplane::python
