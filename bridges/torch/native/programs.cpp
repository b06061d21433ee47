// Reading and running programs.
#include "programs.hpp"

#include "python_values.hpp"

namespace backplane_torch {

namespace {

bp_value number_value(const c10::Scalar& number, double (&parts)[2], bool is_operand) {
  bp_value found{};
  if (number.isBoolean()) {
    found = backplane::value(number.toBool());
  } else if (number.isComplex()) {
    const auto value = number.toComplexDouble();
    parts[0] = value.real();
    parts[1] = value.imag();
    found.tag = BP_TAG_COMPLEX;
    found.u.c = parts;
  } else if (number.isFloatingPoint()) {
    found = backplane::value(number.toDouble());
  } else {
    found = backplane::value(number.toLong());
  }
  if (is_operand) found.flags |= BP_VALUE_NUMBER;
  return found;
}

bool read_list(PyObject* list, ProgramValue& into) {
  bool has_absent = false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* element = PyList_GET_ITEM(list, i);
    has_absent = has_absent || element == Py_None;
    into.ints.push_back(element == Py_None ? 0 : PyLong_AsLongLong(element));
    into.values.push_back(element == Py_None ? backplane::absent() : backplane::value(into.ints.back()));
  }
  if (has_absent) {
    into.constant.tag = BP_TAG_VALUE_LIST;
    into.constant.count = static_cast<uint32_t>(into.values.size());
  } else {
    into.constant = backplane::value(backplane::Shape(into.ints.data(), into.ints.size()));
  }
  return !PyErr_Occurred();
}

// A bool, an int, a float, a complex number, a text, a list of ints, the number of a dtype in a tuple, or None.
bool read_constant(PyObject* content, ProgramValue& into) {
  bp_value& constant = into.constant;
  if (content == Py_None) {
    constant = backplane::absent();
  } else if (PyBool_Check(content)) {
    constant = backplane::value(content == Py_True);
  } else if (PyLong_Check(content)) {
    constant = backplane::value(static_cast<int64_t>(PyLong_AsLongLong(content)));
  } else if (PyFloat_Check(content)) {
    constant = backplane::value(PyFloat_AS_DOUBLE(content));
  } else if (PyComplex_Check(content)) {
    into.parts[0] = PyComplex_RealAsDouble(content);
    into.parts[1] = PyComplex_ImagAsDouble(content);
    constant.tag = BP_TAG_COMPLEX;
  } else if (PyUnicode_Check(content)) {
    into.text = PyUnicode_AsUTF8(content);
    constant.tag = BP_TAG_STRING;
    constant.count = static_cast<uint32_t>(into.text.size());
  } else if (PyList_Check(content)) {
    return read_list(content, into);
  } else if (PyTuple_Check(content)) {
    constant = backplane::dtype_value(static_cast<bp_dtype>(PyLong_AsLong(PyTuple_GET_ITEM(content, 0))));
  } else {
    PyErr_SetString(PyExc_TypeError, "backplane.torch: a program has a constant of an unknown type");
  }
  if (into.is_operand) constant.flags |= BP_VALUE_NUMBER;
  return !PyErr_Occurred();
}

bp_value whole(const ProgramValue& value) {
  bp_value found = value.constant;
  if (found.tag == BP_TAG_INT_LIST) found.u.ints = value.ints.data();
  if (found.tag == BP_TAG_VALUE_LIST) found.u.values = value.values.data();
  if (found.tag == BP_TAG_STRING) found.u.s = value.text.c_str();
  if (found.tag == BP_TAG_COMPLEX) found.u.c = value.parts;
  return found;
}

}  // namespace

std::unique_ptr<Program> Program::from_python(PyObject* description) {
  auto made = std::make_unique<Program>();
  PyObject *steps = nullptr, *outputs = nullptr;
  if (!PyArg_ParseTuple(description, "O!O!", &PyList_Type, &steps, &PyList_Type, &outputs)) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(steps); ++i)
    if (!made->read_step(PyList_GET_ITEM(steps, i))) return nullptr;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(outputs); ++i)
    made->outputs_.push_back(PyLong_AsSize_t(PyList_GET_ITEM(outputs, i)));
  return PyErr_Occurred() ? nullptr : std::move(made);
}

bool Program::read_step(PyObject* step) {
  const char* name = nullptr;
  PyObject* args = nullptr;
  int n_results = 0;
  if (!PyArg_ParseTuple(step, "sO!i", &name, &PyList_Type, &args, &n_results)) return false;
  ProgramStep& made = steps_.emplace_back(ProgramStep{backplane::find_op(name), {}, n_results});
  if (made.op == BP_NO_OP) {
    PyErr_Format(PyExc_LookupError, "backplane.torch: there is no op %s", name);
    return false;
  }
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args); ++i)
    if (!read_value(PyList_GET_ITEM(args, i), made.args.emplace_back())) return false;
  n_results_ += static_cast<size_t>(n_results);
  return true;
}

bool Program::read_value(PyObject* value, ProgramValue& into) {
  const char* letter = nullptr;
  PyObject* content = nullptr;
  int is_operand = 0;
  if (!PyArg_ParseTuple(value, "sOp", &letter, &content, &is_operand)) return false;
  into.is_operand = is_operand;
  into.kind = *letter == 't'   ? ProgramValue::Kind::kTensor
              : *letter == 'n' ? ProgramValue::Kind::kNumber
              : *letter == 'r' ? ProgramValue::Kind::kResult
              : *letter == 'l' ? ProgramValue::Kind::kList
                               : ProgramValue::Kind::kConstant;
  if (into.kind == ProgramValue::Kind::kConstant) return read_constant(content, into);
  if (into.kind == ProgramValue::Kind::kList) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(content); ++i)
      if (!read_value(PyList_GET_ITEM(content, i), into.elements.emplace_back())) return false;
    return true;
  }
  into.index = PyLong_AsSize_t(content);
  return !PyErr_Occurred();
}

std::vector<backplane::Tensor> Program::run(const std::vector<backplane::Tensor>& tensors,
                                            const std::vector<c10::Scalar>& numbers,
                                            const backplane::Tensor& given) const {
  constexpr size_t kMostArgs = 24, kMostResults = 8;
  std::vector<backplane::Tensor> results;
  results.reserve(n_results_);
  std::vector<std::vector<bp_tensor*>> lists;
  for (const ProgramStep& step : steps_) {
    bp_value args[kMostArgs], outs[kMostResults]{};
    double parts[kMostArgs][2];
    for (size_t i = 0; i < step.args.size(); ++i) {
      const ProgramValue& value = step.args[i];
      switch (value.kind) {
        case ProgramValue::Kind::kTensor:
          args[i] = backplane::value(tensors[value.index]);
          break;
        case ProgramValue::Kind::kResult:
          args[i] = backplane::value(results[value.index]);
          break;
        case ProgramValue::Kind::kNumber:
          args[i] = number_value(numbers[value.index], parts[i], value.is_operand);
          break;
        case ProgramValue::Kind::kConstant:
          args[i] = whole(value);
          break;
        case ProgramValue::Kind::kList: {
          std::vector<bp_tensor*>& list = lists.emplace_back();
          for (const ProgramValue& element : value.elements)
            list.push_back((element.kind == ProgramValue::Kind::kTensor ? tensors : results)[element.index].get());
          args[i] = bp_value{};
          args[i].tag = BP_TAG_TENSOR_LIST;
          args[i].count = static_cast<uint32_t>(list.size());
          args[i].u.tensors = list.data();
          break;
        }
      }
    }
    const bool is_given = given && &step == &steps_.back();
    if (is_given) {
      outs[0] = backplane::value(given);
      outs[0].flags |= BP_VALUE_GIVEN;
    }
    if (bp_status status =
            backplane::call_packed(step.op, args, static_cast<int32_t>(step.args.size()), outs, step.n_results))
      backplane::throw_last_error(status);
    for (int32_t i = 0; i < step.n_results; ++i)
      results.push_back(is_given ? given : backplane::Tensor::adopt(outs[i].u.t));
  }
  std::vector<backplane::Tensor> found;
  for (size_t place : outputs_) found.push_back(results[place]);
  return found;
}

}  // namespace backplane_torch
