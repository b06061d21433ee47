// Programs of derivatives.
#include "derivatives.hpp"

#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <cstring>
#include <memory>

#include "cpu_tensors.hpp"
#include "device_tensors.hpp"
#include "python_values.hpp"

namespace backplane_torch {

namespace {

constexpr size_t kMostKinds = 256;  // of one operator

// Words of the key that begin an argument.
enum KeyWord : int64_t { kNoneKey = -1000, kNumberKey, kTensorKey, kListKey, kTextKey };

bool add_words(std::vector<int64_t>& key, const c10::IValue& value) {
  if (value.isNone()) {
    key.push_back(kNoneKey);
  } else if (value.isBool() || value.isInt()) {
    key.insert(key.end(), {kNumberKey + value.isBool() * 100, value.isBool() ? value.toBool() : value.toInt()});
  } else if (value.isDouble()) {
    const double number = value.toDouble();
    int64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    key.insert(key.end(), {kNumberKey + 200, bits});
  } else if (value.isString()) {
    key.insert(key.end(), {kTextKey, static_cast<int64_t>(value.toStringRef().size())});
    for (const char letter : value.toStringRef()) key.push_back(letter);
  } else if (value.isList()) {
    key.insert(key.end(), {kListKey, static_cast<int64_t>(value.toListRef().size())});
    for (const c10::IValue& element : value.toListRef())
      if (!add_words(key, element)) return false;
  } else {
    return false;
  }
  return true;
}

// A tensor of PyTorch's CPU that no mode, transform or subclass follows.
bool is_plain(const at::Tensor& x) {
  return x.defined() && x.is_cpu() && x.layout() == c10::kStrided && !x.is_conj() && !x.is_neg() &&
         !x._is_zerotensor() && !x.unsafeGetTensorImpl()->is_python_dispatch() && !x._fw_grad(0).defined() &&
         !x.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::Functionalize);
}

bool may_run() {
  return !at::GradMode::is_enabled() && !at::functorch::maybeCurrentDynamicLayer() &&
         !c10::impl::TorchDispatchModeTLS::any_modes_set();
}

}  // namespace

size_t Derivatives::KeyHash::operator()(const std::vector<int64_t>& key) const noexcept {
  size_t hash = key.size();
  for (const int64_t word : key) hash = hash * 1099511628211u + static_cast<size_t>(word);
  return hash;
}

// Entries are never erased, so the address stays. Programs are made under the interpreter's lock.
Derivatives::Kind* Derivatives::kind_of(c10::ArrayRef<c10::IValue> constants, const std::vector<at::Tensor>& inputs) {
  if (!may_run()) return nullptr;
  std::vector<int64_t> key;
  for (const c10::IValue& constant : constants)
    if (!add_words(key, constant)) return nullptr;
  for (const at::Tensor& x : inputs) {
    if (!is_plain(x)) return nullptr;
    key.insert(key.end(), {kTensorKey, static_cast<int64_t>(x.scalar_type()), x.dim()});
    key.insert(key.end(), x.sizes().begin(), x.sizes().end());
  }
  std::lock_guard<std::mutex> lock(lock_);
  const auto found = kinds_.find(key);
  if (found != kinds_.end()) return &found->second;
  return kinds_.size() < kMostKinds ? &kinds_[key] : nullptr;
}

std::optional<std::vector<at::Tensor>> Derivatives::run(c10::ArrayRef<c10::IValue> constants,
                                                        const std::vector<at::Tensor>& inputs, size_t n_tensors) {
  const Kind* kind = kind_of(constants, inputs);
  if (!kind || !kind->described || kind->places.empty()) return std::nullopt;
  std::vector<backplane::Tensor> results, given;
  if (kind->program) {
    for (const at::Tensor& x : inputs) given.push_back(borrowed(x));
    results = guarded("backward", [&] { return kind->program->run(given, {}, {}); });
  }
  const auto is_shared = [&](size_t place) {
    for (const backplane::Tensor& x : given)
      if (x.get()->storage == results[place].get()->storage) return true;
    for (size_t i = 0; i < results.size(); ++i)
      if (i != place && results[i].get()->storage == results[place].get()->storage) return true;
    return false;
  };
  std::vector<at::Tensor> found;
  for (size_t i = 0; i < n_tensors; ++i) {
    const int64_t place = kind->places[i];
    if (place <= -2) {
      found.push_back(inputs[static_cast<size_t>(-2 - place)]);
    } else if (place == -1) {
      found.emplace_back();
    } else {
      const auto index = static_cast<size_t>(place);
      found.push_back(cpu_tensor_over(is_shared(index) ? copied(results[index]) : results[index]));
    }
  }
  return found;
}

void Derivatives::learn(c10::ArrayRef<c10::IValue> constants, const std::vector<at::Tensor>& inputs,
                        PyObject* arguments, PyObject* cotangents) {
  Kind* kind = kind_of(constants, inputs);
  if (!kind || kind->described || ++kind->calls < 2) return;
  const Object description(PyObject_CallFunctionObjArgs(describe_, arguments, cotangents, nullptr));
  if (description && description.get() != Py_None) {
    PyObject *steps = nullptr, *results = nullptr, *places = nullptr;
    if (PyArg_ParseTuple(description.get(), "O!O!O!", &PyList_Type, &steps, &PyList_Type, &results, &PyList_Type,
                         &places)) {
      std::vector<int64_t> read;
      for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); ++i)
        read.push_back(PyLong_AsLongLong(PyList_GET_ITEM(places, i)));
      if (PyList_GET_SIZE(steps) > 0) {
        const Object program(PyTuple_Pack(2, steps, results));
        kind->program = Program::from_python(program.get());
      }
      if (!PyErr_Occurred()) kind->places = std::move(read);
    }
  }
  PyErr_Clear();  // Python computes what has no program
  kind->described = true;
}

}  // namespace backplane_torch
