// Everything here may wait for a device, and so runs without the interpreter lock; so does the end of each object, for
// which a callback on another thread may have to take it.
#include "bindings/system/bind_streams.hpp"

#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "backplane/features.hpp"
#include "backplane/memory_kinds.hpp"
#include "backplane/profile.hpp"
#include "backplane/stream.hpp"
#include "backplane/transforms.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/interpreter/user_line.hpp"
#include "bindings/system/device_argument.hpp"
#include "bindings/tensor/dtype_device.hpp"
#include "bindings/tensor/tensor_caster.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

// An object of the library in a Python object.
template <class T>
struct Held {
  template <class... Args>
  explicit Held(Args&&... args) : value(std::make_unique<T>(std::forward<Args>(args)...)) {}
  Held(Held&&) = default;
  ~Held() {
    if (!value) return;
    WithoutGil unlocked;
    value.reset();
  }
  std::unique_ptr<T> value;
};
using HeldStream = Held<Stream>;
using HeldScope = Held<StreamScope>;
using HeldEvent = Held<Event>;
using HeldRecording = Held<Recording>;
using HeldProfile = Held<Profile>;

// A Python function that another thread calls and lets go of.
class Callback {
 public:
  explicit Callback(const py::function& function) : function_(PyRef::borrow(function.ptr())) {}
  ~Callback() {
    if (interpreter_gone()) {
      function_.release();
      return;
    }
    WithGil locked;
    function_ = {};
  }
  Callback(const Callback&) = delete;
  void run() const {
    if (interpreter_gone()) return;
    WithGil locked;
    if (PyRef result = PyRef::steal(PyObject_CallNoArgs(function_.get())); !result)
      PyErr_WriteUnraisable(function_.get());
  }

 private:
  PyRef function_;
};

void bind_stream(py::module_& module) {
  py::class_<HeldScope>(module, "StreamScope").def("close", [](HeldScope& self) {
    WithoutGil unlocked;
    self.value.reset();
  });
  py::class_<HeldStream>(module, "CoreStream")
      .def("device",
           [](const HeldStream& self) { return py::reinterpret_steal<py::object>(wrap_device(self.value->device())); })
      .def("priority", [](const HeldStream& self) { return self.value->priority(); })
      .def("handle", [](const HeldStream& self) { return reinterpret_cast<uintptr_t>(self.value->handle()); })
      .def("same", [](const HeldStream& self, const HeldStream& other) { return *self.value == *other.value; })
      .def(
          "query", [](const HeldStream& self) { return self.value->query(); }, py::call_guard<WithoutGil>())
      .def(
          "synchronize", [](const HeldStream& self) { self.value->synchronize(); }, py::call_guard<WithoutGil>())
      .def(
          "wait_event", [](const HeldStream& self, const HeldEvent& event) { self.value->wait(*event.value); },
          py::call_guard<WithoutGil>())
      .def(
          "wait_stream", [](const HeldStream& self, const HeldStream& other) { self.value->wait(*other.value); },
          py::call_guard<WithoutGil>())
      .def("scope", [](const HeldStream& self) { return HeldScope(*self.value); })
      .def("on_complete", [](const HeldStream& self, const py::function& function) {
        auto callback = std::make_shared<Callback>(function);
        WithoutGil unlocked;
        self.value->on_complete([kept = std::move(callback)] { kept->run(); });
      });
  module.def("new_stream", [](const py::object& device, int priority) {
    const bp_device on = device_argument(device, "Stream");
    WithoutGil unlocked;
    return HeldStream(on, priority);
  });
  module.def("stream_of_handle", [](const py::object& device, uintptr_t handle) {
    const bp_device on = device_argument(device, "Stream.from_handle");
    WithoutGil unlocked;
    return HeldStream(Stream::from_handle(on, reinterpret_cast<void*>(handle)));
  });
  module.def("current_stream", [](const py::object& device) {
    const bp_device on = device_argument(device, "current_stream");
    WithoutGil unlocked;
    return HeldStream(Stream::current(on));
  });
  module.def("stream_priorities", [](const py::object& device) {
    const PriorityRange range = stream_priorities(device_argument(device, "stream_priorities"));
    return std::pair(range.least, range.greatest);
  });
}

void bind_event_and_recording(py::module_& module) {
  py::class_<HeldEvent>(module, "CoreEvent")
      .def(py::init([] { return HeldEvent(); }))
      .def(
          "record", [](HeldEvent& self, const HeldStream& stream) { self.value->record(*stream.value); },
          py::call_guard<WithoutGil>())
      .def(
          "query", [](const HeldEvent& self) { return self.value->query(); }, py::call_guard<WithoutGil>())
      .def(
          "synchronize", [](const HeldEvent& self) { self.value->synchronize(); }, py::call_guard<WithoutGil>())
      .def(
          "elapsed", [](const HeldEvent& self, const HeldEvent& end) { return self.value->elapsed(*end.value); },
          py::call_guard<WithoutGil>());
  py::class_<HeldRecording>(module, "CoreRecording")
      .def(
          "end", [](HeldRecording& self) { self.value->end(); }, py::call_guard<WithoutGil>())
      .def(
          "give_up", [](HeldRecording& self) { *self.value = Recording(); }, py::call_guard<WithoutGil>())
      .def("replay", [](const HeldRecording& self, const HeldStream* stream) {
        WithoutGil unlocked;
        stream ? self.value->replay(*stream->value) : self.value->replay();
      });
  module.def("begin_capture", [](const py::object& device) {
    const bp_device on = device_argument(device, "capture");
    WithoutGil unlocked;
    return HeldRecording(on);
  });
}

py::list events_of(const HeldProfile& profile) {
  py::list rows;
  for (const ProfileEvent& event : profile.value->events())
    rows.append(py::make_tuple(event.name, event.kind, event.device, event.depth, event.begin, event.end,
                               event.device_time, event.line, event.bytes, event.flops, event.memory));
  return rows;
}

std::string program_line() {
  const SourceLine at = user_line();
  return at.line ? at.file + ":" + std::to_string(at.line) : "";
}

// Calls a Python function with the name of the op, and its results as they are below the transforms.
Profile::Observer observer_of(const py::object& function) {
  const std::shared_ptr<PyRef> held(new PyRef(PyRef::borrow(function.ptr())), [](PyRef* ref) {
    if (interpreter_gone()) {
      ref->release();
      delete ref;
      return;
    }
    const WithGil locked;
    delete ref;
  });
  return [held](const std::string& op, std::span<const Tensor> results) {
    const WithGil locked;
    py::list tensors;
    for (const Tensor& t : results) tensors.append(py::cast(innermost_value(t)));
    if (!PyRef::steal(PyObject_CallFunction(held->get(), "sO", op.c_str(), tensors.ptr()))) throw keep_python_error();
  };
}

void bind_profile(py::module_& module) {
  module.def("program_line", &program_line, "file:line of the user's program; '' outside of it.");
  py::class_<HeldProfile>(module, "CoreProfile")
      .def(py::init([](bool lines, const py::object& observe) {
             return HeldProfile(lines ? std::function<std::string()>(&program_line) : std::function<std::string()>(),
                                observe.is_none() ? Profile::Observer() : observer_of(observe));
           }),
           py::arg("lines"), py::arg("observe") = py::none())
      .def(
          "end", [](HeldProfile& self) { self.value->end(); }, py::call_guard<WithoutGil>())
      .def("begin_range", [](HeldProfile& self, const std::string& name) { self.value->begin_range(name); })
      .def("end_range", [](HeldProfile& self) { self.value->end_range(); })
      .def("events", &events_of);
}

py::dict properties_of(const py::object& device) {
  py::dict found;
  for (const auto& [name, property] : properties(device_argument(device, "properties")))
    found[py::str(name)] = std::visit([](const auto& value) { return py::cast(value); }, property);
  return found;
}

}  // namespace

void bind_streams(py::module_& module) {
  bind_stream(module);
  bind_event_and_recording(module);
  bind_profile(module);
  module.def("features", [](const py::object& device) { return features(device_argument(device, "features")); });
  module.def("has_feature", [](const py::object& device, const std::string& name) {
    return has_feature(device_argument(device, "has"), name);
  });
  module.def("properties", &properties_of);
  module.def("memory_kinds",
             [](const py::object& device) { return memory_kinds(device_argument(device, "memory_kinds")); });
  module.def("empty_in", [](const std::string& kind, const std::vector<int64_t>& shape, const py::object& dtype_name,
                            const py::object& device, uint64_t alignment) {
    return empty_in(kind, shape, dtype_argument(dtype_name, "empty_in"), device_argument(device, "empty_in"),
                    alignment);
  });
  module.def("set_wait_timeout", [](const py::object& device, std::optional<double> seconds) {
    set_wait_timeout(device_argument(device, "set_wait_timeout"), seconds);
  });
  module.def("reset_device", [](const py::object& device) {
    const bp_device on = device_argument(device, "reset");
    WithoutGil unlocked;
    reset_device(on);
  });
  module.def("pin", [](const Tensor& tensor, const py::object& device) {
    const bp_device on = device_argument(device, "pin_memory");
    WithoutGil unlocked;
    return pin(tensor, on);
  });
  module.def("is_pinned", [](const Tensor& tensor) { return is_pinned(tensor); });
}

}  // namespace backplane::python
