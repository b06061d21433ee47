// See owned_objects.hpp. An object that something beside the tensor holds as well is passed over: to the collector it
// is alive.
#include "bindings/tensor/owned_objects.hpp"

#include <vector>

#include "bindings/tensor/scalars.hpp"
#include "bindings/tensor/tensor_object.hpp"

namespace backplane::python {

HeldObject::~HeldObject() {
  if (!object_ || interpreter_gone()) return;
  WithGil locked;
  Py_DECREF(object_);
}

Tensor PythonHook::operator()(const Tensor& cotangent) const {
  if (interpreter_gone())
    throw Error(BP_ERROR_NOT_IMPLEMENTED, "register_hook: the hook is in Python, which has ended");
  WithGil locked;
  const PyRef function = PyRef::borrow(function_->get());
  if (!function) return {};
  PyRef argument = PyRef::steal(wrap_tensor(cotangent));
  PyRef result = PyRef::steal(argument ? PyObject_CallOneArg(function.get(), argument.get()) : nullptr);
  if (result && result.get() == Py_None) return {};
  if (result && is_tensor(result.get())) return tensor_of(result.get());
  if (result) {
    raise(BP_ERROR_TYPE, "register_hook: the hook returned a value of type %s, expected a Tensor or None",
          Py_TYPE(result.get())->tp_name);
  }
  throw keep_python_error();
}

namespace {

// Calls `visit` with each object that the tensor alone holds.
template <class Visit>
class Visitor final : public OwnedVisitor {
 public:
  explicit Visitor(Visit visit) : visit_(visit) {}
  void hook(const Hook& hook) override {
    if (const auto* ours = hook.target<PythonHook>()) object(ours->function());
  }
  void function(const std::shared_ptr<GraphFunction>& function, const std::shared_ptr<const void>& rest) override {
    const std::shared_ptr<HeldObject>* callables = function.use_count() == 1 ? callables_of(*function) : nullptr;
    if (!callables) return;
    object(*callables);
    // Of a function of ours, an object of ours.
    if (rest.use_count() == 1) seen(*static_cast<HeldObject*>(const_cast<void*>(rest.get())));
  }

 private:
  void object(const std::shared_ptr<HeldObject>& held) {
    if (held.use_count() == 1) seen(*held);
  }
  void seen(HeldObject& held) {
    if (held.get()) visit_(held);
  }
  Visit visit_;
};

}  // namespace

int visit_owned_objects(const bp_tensor* tensor, visitproc visit, void* arg) {
  int stopped = 0;
  Visitor visitor([&](HeldObject& held) {
    if (stopped == 0) stopped = visit(held.get(), arg);
  });
  visit_owned(tensor, visitor);
  return stopped;
}

void drop_owned_objects(const bp_tensor* tensor) noexcept {
  std::vector<PyRef> dropped;  // Python code may run as they go
  Visitor visitor([&](HeldObject& held) {
    dropped.push_back(PyRef::borrow(held.get()));
    held.drop();
  });
  visit_owned(tensor, visitor);
}

}  // namespace backplane::python
