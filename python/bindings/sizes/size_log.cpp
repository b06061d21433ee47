#include "bindings/sizes/size_log.hpp"

#include <bit>

#include "backplane/transforms.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/tensor/size_hook.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

thread_local constinit SizeLog* SizeLog::current_ = nullptr;
thread_local constinit const std::vector<bool>* SizeLog::known_reads_ = nullptr;

SizeLog::~SizeLog() {
  if (current_ == this) current_ = nullptr;
}

PyRef plain_number(PyObject* object) {
  if (is_size(object)) return PyRef::steal(_PyLong_Copy(reinterpret_cast<PyLongObject*>(object)));
  if (is_size_float(object)) return PyRef::steal(PyFloat_FromDouble(PyFloat_AS_DOUBLE(object)));
  return PyRef::borrow(object);
}

SizeLog::Operand SizeLog::operand(PyObject* object) const {
  if (is_of_size(object))
    if (const auto known = known_.find(object); known != known_.end()) return {known->second, 0};
  if (PyFloat_Check(object)) return {Operand::kNone, std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(object))};
  int overflow = 0;
  const long long value = PyLong_Check(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : 0;
  return {Operand::kNone, value};
}

PyObject* SizeLog::add(SizeUse use, PyObject* object) {
  use.line = user_line();
  if (object) {
    known_[object] = static_cast<uint32_t>(uses_.size());
    held_.push_back(PyRef::borrow(object));
  }
  uses_.push_back(std::move(use));
  return object;
}

PyObject* SizeLog::read(int64_t value) {
  reads_.emplace(static_cast<uint32_t>(uses_.size()), reads_.size());
  return number(Kind::kSize, {}, {}, PyLong_FromLongLong(value));
}

bool SizeLog::is_dynamic(Operand operand) {
  was_asked_ = true;
  if (operand.use == Operand::kNone || !known_reads_) return false;
  const SizeUse& own = uses_[operand.use];
  if (own.kind != Kind::kSize) return is_dynamic(own.left) || is_dynamic(own.right);
  const size_t read = reads_.at(operand.use);
  return read < known_reads_->size() && (*known_reads_)[read];
}

PyObject* SizeLog::number(Kind kind, Operand left, Operand right, PyObject* result) {
  if (!result) return nullptr;
  const PyRef plain = PyRef::steal(result), arguments = PyRef::steal(PyTuple_Pack(1, result));
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(result, &overflow);
  if (overflow) {
    add({Kind::kOther, left, right, 0, "computes a number beyond 64 bits of a size", {}}, nullptr);
    return Py_NewRef(result);
  }
  PyObject* object = arguments ? PyLong_Type.tp_new(g_size_type, arguments.get(), nullptr) : nullptr;
  return object ? add({kind, left, right, value, "", {}}, object) : nullptr;
}

PyObject* SizeLog::floating(Operand of, PyObject* result) {
  if (!result) return nullptr;
  const PyRef plain = PyRef::steal(result), arguments = PyRef::steal(PyTuple_Pack(1, result));
  PyObject* object = arguments ? PyFloat_Type.tp_new(g_size_float_type, arguments.get(), nullptr) : nullptr;
  return object ? add({Kind::kFloat, of, {}, std::bit_cast<int64_t>(PyFloat_AS_DOUBLE(object)), "", {}}, object)
                : nullptr;
}

PyObject* SizeLog::converted(Operand of, double value) {
  PyObject* object = floating(of, PyFloat_FromDouble(value));
  if (object) uses_.back().what = "float";
  return object;
}

void SizeLog::compare(Kind kind, Operand left, Operand right, bool outcome) {
  add({kind, left, right, outcome, "", {}}, nullptr);
}

void SizeLog::lose(const std::string& what, PyObject* of, PyObject* also) {
  add({Kind::kOther, operand(of), also ? operand(also) : Operand{}, 0, what, {}}, nullptr);
}

namespace {

bool notes_now(PyObject* tensor) { return SizeLog::current() && is_transformed(BorrowedTensor(tensor).get()); }

PyObject* read_now(int64_t value) { return SizeLog::current()->read(value); }

void lose_value(int64_t value, const char* what) {
  SizeLog* log = SizeLog::current();
  if (const PyRef size = PyRef::steal(log->read(value))) log->lose(what, size.get());
}

void lose_strides(PyObject* tensor) {
  const DLTensor& dl = handle_of(tensor)->dl;
  int64_t count = 1;
  for (int32_t i = 0; i < dl.ndim; ++i) count *= dl.shape[i];
  lose_value(count, "reads strides");
}

void lose_length(PyObject* tensor) { lose_value(handle_of(tensor)->dl.shape[0], "counts the rows of a tensor"); }

}  // namespace

PyObject* is_dynamic(PyObject*, PyObject* number) {
  SizeLog* log = SizeLog::current();
  return PyBool_FromLong(log && is_of_size(number) && log->is_dynamic(log->operand(number)));
}

void set_size_hook() { g_size_hook = {notes_now, read_now, lose_strides, lose_length}; }

}  // namespace backplane::python
