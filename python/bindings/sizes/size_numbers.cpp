// The types of the numbers of size_log.hpp: int and float with slots that record operations.
#include <cmath>
#include <functional>

#include "backplane/transforms.hpp"
#include "bindings/sizes/size_log.hpp"
#include "bindings/sizes/size_ratios.hpp"
#include "bindings/tensor/size_hook.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

PyTypeObject *g_size_type = nullptr, *g_size_float_type = nullptr;

namespace {

using Kind = SizeUse::Kind;
using Operand = SizeUse::Operand;

constexpr long long kMostPower = 4;  // that is written as products

bool follows(PyObject* object) {
  const SizeLog* log = SizeLog::current();
  return log && is_of_size(object) && log->use_of(object) != Operand::kNone;
}
// Notes a use that nobody can follow, of the one or of both.
void lose(const char* what, PyObject* a, PyObject* b = nullptr) {
  if (b && !follows(a)) std::swap(a, b);
  if (follows(a)) SizeLog::current()->lose(std::string(what) + " of a size", a, b);
}

PyNumberMethods* ints() { return PyLong_Type.tp_as_number; }
PyNumberMethods* floats() { return PyFloat_Type.tp_as_number; }

// ---- Arithmetic

// What of two operands gives a floating number. An int among them that is divided by was found to be not 0.
PyObject* in_floats(binaryfunc function, PyObject* a, PyObject* b) {
  const PyRef result = PyRef::steal(function(a, b));
  if (!result || !PyFloat_CheckExact(result.get())) return Py_XNewRef(result.get());
  SizeLog* log = SizeLog::current();
  PyObject* of = follows(a) ? a : b;
  if (follows(a) && follows(b) && !is_size_float(of)) of = is_size_float(b) ? b : a;
  return log->floating(log->operand(of), Py_NewRef(result.get()));
}

bool is_whole(PyObject* object) { return PyLong_Check(object); }

// Of operands that are both numbers, one of them a size; what else there is has no slots that know sizes.
template <class Function>
PyObject* arithmetic(const char* what, PyObject* a, PyObject* b, binaryfunc of_ints, binaryfunc of_floats,
                     Function noted) {
  const bool followed = follows(a) || follows(b);
  if (is_whole(a) && is_whole(b)) return followed ? noted(a, b) : of_ints(a, b);
  if ((is_whole(a) || PyFloat_Check(a)) && (is_whole(b) || PyFloat_Check(b)) && of_floats)
    return followed ? in_floats(of_floats, a, b) : of_floats(a, b);
  if (!is_tensor(a) && !is_tensor(b)) lose(what, a, b);
  return of_ints(a, b);
}

PyObject* numbered(Kind kind, PyObject* a, PyObject* b, binaryfunc function) {
  SizeLog* log = SizeLog::current();
  return log->number(kind, log->operand(a), log->operand(b), function(a, b));
}

PyObject* add(PyObject* a, PyObject* b) {
  return arithmetic("adds", a, b, ints()->nb_add, floats()->nb_add,
                    [](PyObject* x, PyObject* y) { return numbered(Kind::kAdd, x, y, ints()->nb_add); });
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return arithmetic("subtracts", a, b, ints()->nb_subtract, floats()->nb_subtract,
                    [](PyObject* x, PyObject* y) { return numbered(Kind::kSubtract, x, y, ints()->nb_subtract); });
}
PyObject* multiply(PyObject* a, PyObject* b) {
  PyObject* product =
      arithmetic("multiplies something", a, b, ints()->nb_multiply, floats()->nb_multiply,
                 [](PyObject* x, PyObject* y) { return numbered(Kind::kMultiply, x, y, ints()->nb_multiply); });
  note_product(product, a, b);
  return product;
}

// Without a size behind it, as 1 / n has, a floating divisor may be 0 at one.
void note_divisor(PyObject* divisor) {
  if (!follows(divisor)) return;
  SizeLog* log = SizeLog::current();
  Operand of = log->operand(divisor);
  if (is_size_float(divisor)) {
    const SizeUse& use = log->use(of.use);
    if (use.left.use == Operand::kNone || use.what != "float") return log->lose("divides by a number", divisor);
    of = use.left;
  }
  log->compare(Kind::kEqual, of, {}, PyObject_Not(plain_number(divisor).get()) == 1);
}

PyObject* true_divide(PyObject* a, PyObject* b) {
  note_divisor(b);
  PyObject* quotient = arithmetic("divides", a, b, ints()->nb_true_divide, floats()->nb_true_divide,
                                  [](PyObject* x, PyObject* y) { return in_floats(ints()->nb_true_divide, x, y); });
  note_quotient(quotient, a, b);
  return quotient;
}

// Of floating numbers these have steps, which lie at unknown sizes.
template <Kind kKind>
PyObject* divide_whole(PyObject* a, PyObject* b) {
  const binaryfunc of_ints = kKind == Kind::kQuotient ? ints()->nb_floor_divide : ints()->nb_remainder;
  if (!is_whole(a) || !is_whole(b)) {
    if (!is_tensor(a) && !is_tensor(b)) lose("divides, and rounds,", a, b);
    const binaryfunc of_floats = kKind == Kind::kQuotient ? floats()->nb_floor_divide : floats()->nb_remainder;
    const bool any = PyFloat_Check(a) || PyFloat_Check(b);
    return any && (is_whole(a) || PyFloat_Check(a)) && (is_whole(b) || PyFloat_Check(b)) ? of_floats(a, b)
                                                                                         : of_ints(a, b);
  }
  return follows(a) || follows(b) ? numbered(kKind, a, b, of_ints) : of_ints(a, b);
}

PyObject* divide_both(PyObject* a, PyObject* b) {
  if (is_whole(a) && is_whole(b)) {
    const PyRef quotient = PyRef::steal(divide_whole<Kind::kQuotient>(a, b));
    const PyRef rest = PyRef::steal(quotient ? divide_whole<Kind::kRemainder>(a, b) : nullptr);
    return rest ? PyTuple_Pack(2, quotient.get(), rest.get()) : nullptr;
  }
  lose("divmod()", a, b);
  return PyFloat_Check(a) || PyFloat_Check(b) ? floats()->nb_divmod(a, b) : ints()->nb_divmod(a, b);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  const bool any_float = PyFloat_Check(a) || PyFloat_Check(b);
  const bool numbers = (is_whole(a) || PyFloat_Check(a)) && (is_whole(b) || PyFloat_Check(b));
  if (modulus == Py_None && numbers && (follows(a) || follows(b))) {
    const long long exponent = is_whole(b) && !is_of_size(b) ? PyLong_AsLongLong(b) : -1;
    forget_error();
    if (is_whole(a) && exponent >= 1 && exponent <= kMostPower) {
      PyRef result = PyRef::borrow(a);
      for (long long i = 1; result && i < exponent; ++i) result = PyRef::steal(multiply(result.get(), a));
      return result.release();
    }
    PyRef result = PyRef::steal(any_float ? floats()->nb_power(a, b, modulus) : ints()->nb_power(a, b, modulus));
    if (!result) return nullptr;
    // A power of 0 may be an error, and a power of a negative number is complex.
    if (!PyFloat_CheckExact(result.get()) || !is_size(a) || follows(b)) return lose("a power", a, b), result.release();
    SizeLog* log = SizeLog::current();
    log->compare(Kind::kLess, {}, log->operand(a), _PyLong_Sign(a) > 0);
    return log->converted(log->operand(a), PyFloat_AS_DOUBLE(result.get()));
  }
  if (!is_tensor(a) && !is_tensor(b)) lose("a power", a, b);
  return any_float ? floats()->nb_power(a, b, modulus) : ints()->nb_power(a, b, modulus);
}

template <binaryfunc PyNumberMethods::*kSlot>
PyObject* bits(PyObject* a, PyObject* b) {
  if (!is_tensor(a) && !is_tensor(b)) lose("takes bits", a, b);
  return (ints()->*kSlot)(a, b);
}

PyObject* itself(PyObject* self) { return Py_NewRef(self); }

PyObject* negative(PyObject* self) {
  if (!follows(self)) return ints()->nb_negative(self);
  SizeLog* log = SizeLog::current();
  return log->number(Kind::kSubtract, {}, log->operand(self), ints()->nb_negative(self));
}
PyObject* invert(PyObject* self) {
  if (!follows(self)) return ints()->nb_invert(self);
  SizeLog* log = SizeLog::current();
  return log->number(Kind::kSubtract, {Operand::kNone, -1}, log->operand(self), ints()->nb_invert(self));
}
PyObject* absolute(PyObject* self) {
  if (!follows(self)) return ints()->nb_absolute(self);
  SizeLog* log = SizeLog::current();
  const bool is_negative = _PyLong_Sign(self) < 0;
  log->compare(Kind::kLess, log->operand(self), {}, is_negative);
  return is_negative ? negative(self) : Py_NewRef(self);
}
int truth(PyObject* self) {
  const int is_true = ints()->nb_bool(self);
  if (follows(self)) {
    SizeLog* log = SizeLog::current();
    log->compare(Kind::kEqual, log->operand(self), {}, is_true == 0);
  }
  return is_true;
}

PyObject* float_negative(PyObject* self) {
  SizeLog* log = SizeLog::current();
  PyObject* result = floats()->nb_negative(self);
  return follows(self) ? log->floating(log->operand(self), result) : result;
}

// ---- Comparisons

PyObject* compare_sizes(PyObject* a, PyObject* b, int relation) {
  PyObject* result = PyLong_Type.tp_richcompare(a, b, relation);
  if (!is_whole(b)) {
    // Of anything but a number the value is not asked for.
    if (!PyUnicode_Check(b) && b != Py_None && !PyTuple_Check(b) && !PyList_Check(b) && !PyType_Check(b))
      lose("compares", a, b);
    return result;
  }
  if (!follows(a) && !follows(b)) return result;
  SizeLog* log = SizeLog::current();
  const Operand left = log->operand(a), right = log->operand(b);
  const bool outcome = result == Py_True;
  switch (relation) {
    case Py_EQ:
      log->compare(Kind::kEqual, left, right, outcome);
      break;
    case Py_NE:
      log->compare(Kind::kEqual, left, right, !outcome);
      break;
    case Py_LT:
      log->compare(Kind::kLess, left, right, outcome);
      break;
    case Py_LE:
      log->compare(Kind::kLessEqual, left, right, outcome);
      break;
    case Py_GT:
      log->compare(Kind::kLess, right, left, outcome);
      break;
    default:
      log->compare(Kind::kLessEqual, right, left, outcome);
  }
  return result;
}

PyObject* compare_floats(PyObject* a, PyObject* b, int relation) {
  lose("compares a number", a, b);
  return PyFloat_Type.tp_richcompare(a, b, relation);
}

// ---- What looks at the value

template <const char* kWhat, PyTypeObject* kType, unaryfunc PyNumberMethods::*kSlot>
PyObject* converted(PyObject* self) {
  lose(kWhat, self);
  return (kType->tp_as_number->*kSlot)(self);
}
constexpr char kToInt[] = "makes an int", kToFloat[] = "makes a float", kToAbsolute[] = "abs()",
               kToText[] = "makes text", kToHash[] = "calls hash()";

template <PyTypeObject* kType>
PyObject* text(PyObject* self) {
  lose(kToText, self);
  return kType->tp_repr(self);
}
template <PyTypeObject* kType>
Py_hash_t hash(PyObject* self) {
  lose(kToHash, self);
  return kType->tp_hash(self);
}
int float_truth(PyObject* self) {
  lose("bool() of a number", self);
  return floats()->nb_bool(self);
}

// A method of the plain number, whose result nobody follows.
PyObject* call_plain(PyObject* self, const char* method, PyObject* arguments) {
  lose(method, self);
  const PyRef plain = plain_number(self);
  const PyRef function = PyRef::steal(plain ? PyObject_GetAttrString(plain.get(), method) : nullptr);
  return function ? PyObject_CallObject(function.get(), arguments) : nullptr;
}
PyObject* format(PyObject* self, PyObject* arguments) { return call_plain(self, "__format__", arguments); }
PyObject* rounded(PyObject* self, Rounding rounding, const char* method) {
  PyObject* found = rounded_ratio(self, rounding);
  return found || PyErr_Occurred() ? found : call_plain(self, method, nullptr);
}
PyObject* ceil_of(PyObject* self, PyObject*) { return rounded(self, Rounding::kUp, "__ceil__"); }
PyObject* floor_of(PyObject* self, PyObject*) { return rounded(self, Rounding::kDown, "__floor__"); }
PyObject* trunc_of(PyObject* self, PyObject*) { return rounded(self, Rounding::kToZero, "__trunc__"); }
PyObject* round_of(PyObject* self, PyObject* arguments) {
  if (is_size(self) && PyTuple_GET_SIZE(arguments) == 0) return Py_NewRef(self);
  return call_plain(self, "__round__", arguments);
}
PyObject* whole(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* reduce(PyObject* self, PyObject*) {
  lose("copies or writes the value", self);
  const PyRef plain = plain_number(self);
  return plain ? Py_BuildValue("O(O)", Py_TYPE(plain.get()), plain.get()) : nullptr;
}

PyObject* class_of(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(is_size(self) ? &PyLong_Type : &PyFloat_Type));
}

PyMethodDef int_methods[] = {
    {"__format__", format, METH_VARARGS, nullptr}, {"__round__", round_of, METH_VARARGS, nullptr},
    {"__ceil__", whole, METH_NOARGS, nullptr},     {"__floor__", whole, METH_NOARGS, nullptr},
    {"__trunc__", whole, METH_NOARGS, nullptr},    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce, METH_O, nullptr},    {nullptr, nullptr, 0, nullptr}};
PyMethodDef float_methods[] = {
    {"__format__", format, METH_VARARGS, nullptr}, {"__round__", round_of, METH_VARARGS, nullptr},
    {"__ceil__", ceil_of, METH_NOARGS, nullptr},   {"__floor__", floor_of, METH_NOARGS, nullptr},
    {"__trunc__", trunc_of, METH_NOARGS, nullptr}, {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__reduce_ex__", reduce, METH_O, nullptr},    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef class_getset[] = {{"__class__", class_of, nullptr, nullptr, nullptr},
                              {nullptr, nullptr, nullptr, nullptr, nullptr}};

template <class Function>
void* slot(Function* function) {
  return reinterpret_cast<void*>(function);
}

PyType_Slot int_slots[] = {{Py_nb_add, slot(add)},
                           {Py_tp_call, slot(call_size)},
                           {Py_nb_subtract, slot(subtract)},
                           {Py_nb_multiply, slot(multiply)},
                           {Py_nb_true_divide, slot(true_divide)},
                           {Py_nb_floor_divide, slot(divide_whole<Kind::kQuotient>)},
                           {Py_nb_remainder, slot(divide_whole<Kind::kRemainder>)},
                           {Py_nb_divmod, slot(divide_both)},
                           {Py_nb_power, slot(power)},
                           {Py_nb_and, slot(bits<&PyNumberMethods::nb_and>)},
                           {Py_nb_or, slot(bits<&PyNumberMethods::nb_or>)},
                           {Py_nb_xor, slot(bits<&PyNumberMethods::nb_xor>)},
                           {Py_nb_lshift, slot(bits<&PyNumberMethods::nb_lshift>)},
                           {Py_nb_rshift, slot(bits<&PyNumberMethods::nb_rshift>)},
                           {Py_nb_negative, slot(negative)},
                           {Py_nb_positive, slot(itself)},
                           {Py_nb_absolute, slot(absolute)},
                           {Py_nb_invert, slot(invert)},
                           {Py_nb_bool, slot(truth)},
                           {Py_nb_int, slot(converted<kToInt, &PyLong_Type, &PyNumberMethods::nb_int>)},
                           {Py_nb_index, slot(itself)},
                           {Py_nb_float, slot(converted<kToFloat, &PyLong_Type, &PyNumberMethods::nb_float>)},
                           {Py_tp_richcompare, slot(compare_sizes)},
                           {Py_tp_repr, slot(text<&PyLong_Type>)},
                           {Py_tp_hash, slot(hash<&PyLong_Type>)},
                           {Py_tp_methods, int_methods},
                           {Py_tp_getset, class_getset},
                           {Py_tp_doc, const_cast<char*>("A size of a traced tensor: an int.")},
                           {0, nullptr}};
PyType_Slot float_slots[] = {
    {Py_nb_add, slot(add)},
    {Py_nb_subtract, slot(subtract)},
    {Py_nb_multiply, slot(multiply)},
    {Py_nb_true_divide, slot(true_divide)},
    {Py_nb_floor_divide, slot(divide_whole<Kind::kQuotient>)},
    {Py_nb_remainder, slot(divide_whole<Kind::kRemainder>)},
    {Py_nb_divmod, slot(divide_both)},
    {Py_nb_power, slot(power)},
    {Py_nb_negative, slot(float_negative)},
    {Py_nb_positive, slot(itself)},
    {Py_nb_absolute, slot(converted<kToAbsolute, &PyFloat_Type, &PyNumberMethods::nb_absolute>)},
    {Py_nb_bool, slot(float_truth)},
    {Py_nb_int, slot(converted<kToInt, &PyFloat_Type, &PyNumberMethods::nb_int>)},
    {Py_nb_float, slot(converted<kToFloat, &PyFloat_Type, &PyNumberMethods::nb_float>)},
    {Py_tp_richcompare, slot(compare_floats)},
    {Py_tp_repr, slot(text<&PyFloat_Type>)},
    {Py_tp_hash, slot(hash<&PyFloat_Type>)},
    {Py_tp_methods, float_methods},
    {Py_tp_getset, class_getset},
    {Py_tp_doc, const_cast<char*>("A number that was computed from a size of a traced tensor: a float.")},
    {0, nullptr}};
PyType_Spec int_spec = {"backplane.Size", 0, 0, Py_TPFLAGS_DEFAULT, int_slots};
PyType_Spec float_spec = {"backplane.SizeFloat", 0, 0, Py_TPFLAGS_DEFAULT, float_slots};

PyTypeObject* derived(PyType_Spec* spec, PyTypeObject* base) {
  const PyRef bases = PyRef::steal(PyTuple_Pack(1, base));
  return bases ? reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(spec, bases.get())) : nullptr;
}

}  // namespace

bool add_size_types() {
  g_size_type = derived(&int_spec, &PyLong_Type);
  g_size_float_type = derived(&float_spec, &PyFloat_Type);
  set_size_hook();
  return g_size_type && g_size_float_type;
}

}  // namespace backplane::python
