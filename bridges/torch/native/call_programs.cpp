// Programs of calls.
#include "call_programs.hpp"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>

#include "cpu_tensors.hpp"
#include "op_libraries.hpp"
#include "torch_objects.hpp"

namespace backplane_torch {

namespace {

constexpr size_t kMostTexts = 1024;  // of one operator
constexpr size_t kMostPlanned = 4096;
constexpr size_t kMostPlans = 256;  // of one program

// Words of the key that begin an argument.
enum KeyWord : int64_t { kNoneKey = -1000, kNumberKey, kTensorKey, kListKey, kTextKey };

PyObject *python_run, *python_plan;

bool add_words(CallKey& key, const c10::IValue& value) {
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

// An entry of a table that is emptied when it is full.
template <class Table, class Key, class Make>
auto kept(Table& table, std::mutex& lock, const Key& key, size_t most, Make make) {
  std::lock_guard<std::mutex> guard(lock);
  const auto found = table.find(key);
  if (found != table.end()) return found->second;
  if (table.size() >= most) table.clear();
  return table.emplace(key, make()).first->second;
}

std::vector<at::Tensor> run_in_python(const std::string& text, const std::vector<at::Tensor>& tensors) {
  Interpreter interpreter;
  const Object given = tensor_list_object(tensors);
  const Object found = owned(PyObject_CallFunction(python_run, "sO", text.c_str(), given.get()));
  return tensors_of(found.get());
}

// Are they tensors of PyTorch's CPU that no derivative, transform, mode or subclass follows?
bool none_is_followed(const std::vector<at::Tensor>& tensors) {
  constexpr auto kFollowed =
      c10::DispatchKeySet({c10::DispatchKey::Python, c10::DispatchKey::Functionalize,
                           c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper});
  const bool records = at::GradMode::is_enabled();
  const auto is_plain = [&](const at::Tensor& x) {
    return x.is_cpu() && x.layout() == c10::kStrided && !x.is_conj() && !x.is_neg() && !x._is_zerotensor() &&
           !x.key_set().has_any(kFollowed) && !(records && x.requires_grad()) && !x._fw_grad(0).defined();
  };
  return !c10::impl::TorchDispatchModeTLS::any_modes_set() && std::all_of(tensors.begin(), tensors.end(), is_plain);
}

class RunKernel final : public c10::OperatorKernel {
 public:
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const std::vector<at::Tensor> tensors = stack->back().toTensorVector();
    const std::string text = (*stack)[stack->size() - 2].toStringRef();
    const std::shared_ptr<PlannedProgram> program = planned_program(text);
    std::optional<std::vector<at::Tensor>> found = program->run(tensors, false);
    if (!found) {
      found = run_in_python(text, tensors);
      program->learn(tensors);
    }
    torch::jit::drop(*stack, 2);
    stack->emplace_back(std::move(*found));
  }
};

}  // namespace

size_t CallKeyHash::operator()(const CallKey& key) const noexcept {
  size_t hash = key.size();
  for (const int64_t word : key) hash = hash * 1099511628211u + static_cast<size_t>(word);
  return hash;
}

std::vector<c10::IValue> constants_of(c10::ArrayRef<c10::IValue> arguments) {
  std::vector<c10::IValue> constants;
  constants.reserve(arguments.size());
  for (const c10::IValue& value : arguments) {
    if (value.isTensor()) {
      constants.emplace_back(value.toTensor().defined());
    } else if (value.isTensorList() || value.isOptionalTensorList()) {
      c10::List<bool> present;
      for (const c10::IValue& element : value.toListRef())
        present.push_back(element.isTensor() && element.toTensor().defined());
      constants.emplace_back(std::move(present));
    } else {
      constants.push_back(value);
    }
  }
  return constants;
}

CallTexts::CallTexts(std::string kinds, PyObject* describe)
    : kinds_(std::move(kinds)), describe_(Py_NewRef(describe)) {}

std::string CallTexts::of(const std::vector<c10::IValue>& constants) {
  if (describe_ == Py_None) return constants.front().toStringRef();
  CallKey key;
  for (const c10::IValue& constant : constants)
    if (!add_words(key, constant)) return described(constants);
  {
    std::lock_guard<std::mutex> guard(lock_);
    const auto found = texts_.find(key);
    if (found != texts_.end()) return found->second;
  }
  const std::string text = described(constants);
  return kept(texts_, lock_, key, kMostTexts, [&] { return text; });
}

std::string CallTexts::described(const std::vector<c10::IValue>& constants) const {
  Interpreter interpreter;
  const Object arguments = owned(PyTuple_New(static_cast<Py_ssize_t>(constants.size())));
  for (size_t i = 0; i < constants.size(); ++i)
    PyTuple_SET_ITEM(arguments.get(), static_cast<Py_ssize_t>(i), torch_object(constants[i], kinds_[i]).release());
  const Object text = owned(PyObject_CallObject(describe_, arguments.get()));
  const char* letters = PyUnicode_AsUTF8(text.get());
  if (!letters) throw_pending();
  return letters;
}

std::shared_ptr<PlannedProgram::Plan> PlannedProgram::plan_of(const std::vector<at::Tensor>& tensors) {
  CallKey key;
  for (const at::Tensor& x : tensors) {
    key.insert(key.end(), {kTensorKey, static_cast<int64_t>(x.scalar_type()), x.dim()});
    key.insert(key.end(), x.sizes().begin(), x.sizes().end());
  }
  return kept(plans_, lock_, key, kMostPlans, [] { return std::make_shared<Plan>(); });
}

std::optional<std::vector<at::Tensor>> PlannedProgram::run(const std::vector<at::Tensor>& tensors, bool may_share) {
  const std::shared_ptr<Plan> plan = plan_of(tensors);
  if (!plan->described || !plan->runs) return std::nullopt;
  std::vector<backplane::Tensor> results, given;
  if (plan->program) {
    for (const at::Tensor& x : tensors) given.push_back(borrowed(x));
    try {
      results = plan->program->run(given, {}, {});
    } catch (const backplane::Error&) {
      return std::nullopt;
    }
  }
  const auto is_shared = [&](size_t place) {
    for (const backplane::Tensor& x : given)
      if (x.get()->storage == results[place].get()->storage) return true;
    for (size_t i = 0; i < results.size(); ++i)
      if (i != place && results[i].get()->storage == results[place].get()->storage) return true;
    return false;
  };
  std::vector<at::Tensor> found;
  for (const int64_t place : plan->places) {
    if (place < 0) {
      const at::Tensor& x = tensors[static_cast<size_t>(-1 - place)];
      found.push_back(may_share ? x : x.clone(at::MemoryFormat::Contiguous));
    } else {
      const auto index = static_cast<size_t>(place);
      found.push_back(cpu_tensor_over(is_shared(index) ? copied(results[index]) : results[index]));
    }
  }
  return found;
}

// Plans are made under the interpreter's lock.
void PlannedProgram::learn(const std::vector<at::Tensor>& tensors) {
  const std::shared_ptr<Plan> plan = plan_of(tensors);
  if (plan->described) return;
  Interpreter interpreter;
  if (plan->described || ++plan->calls < 2) return;
  const Object given = tensor_list_object(tensors);
  const Object description(PyObject_CallFunction(python_plan, "sO", text_.c_str(), given.get()));
  PyObject *steps = nullptr, *results = nullptr, *places = nullptr;
  if (description && description.get() != Py_None &&
      PyArg_ParseTuple(description.get(), "O!O!O!", &PyList_Type, &steps, &PyList_Type, &results, &PyList_Type,
                       &places)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(places); ++i)
      plan->places.push_back(PyLong_AsLongLong(PyList_GET_ITEM(places, i)));
    if (PyList_GET_SIZE(steps) > 0) {
      const Object program(PyTuple_Pack(2, steps, results));
      plan->program = Program::from_python(program.get());
    }
    plan->runs = !PyErr_Occurred();
  }
  PyErr_Clear();  // Python computes what has no plan
  plan->described = true;
}

std::shared_ptr<PlannedProgram> planned_program(const std::string& text) {
  static auto* programs = new std::unordered_map<std::string, std::shared_ptr<PlannedProgram>>();
  static auto* lock = new std::mutex();
  return kept(*programs, *lock, text, kMostPlanned, [&] { return std::make_shared<PlannedProgram>(text); });
}

std::vector<at::Tensor> run_program(const std::string& text, const std::vector<at::Tensor>& tensors, bool may_share) {
  if (none_is_followed(tensors))
    if (auto found = planned_program(text)->run(tensors, may_share)) return std::move(*found);
  static const c10::OperatorHandle handle = c10::Dispatcher::singleton().findSchemaOrThrow("backplane_bridge::run", "");
  torch::jit::Stack stack{text, tensors};
  handle.callBoxed(&stack);
  return stack.back().toTensorVector();
}

void register_run(PyObject* run, PyObject* plan) {
  python_run = Py_NewRef(run);
  python_plan = Py_NewRef(plan);
  op_library("backplane_bridge", c10::DispatchKey::CPU)
      .impl("run", torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RunKernel>()));
}

}  // namespace backplane_torch
