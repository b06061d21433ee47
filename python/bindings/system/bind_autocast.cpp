#include "bindings/system/bind_autocast.hpp"

#include "backplane/autocast.hpp"
#include "backplane/placement.hpp"
#include "bindings/interpreter/context_settings.hpp"
#include "bindings/system/device_argument.hpp"
#include "bindings/tensor/dtype_device.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

bp_dtype half_argument(const py::object& object) {
  const bp_dtype dtype = dtype_argument(object, "autocast");
  BP_CHECK(dtype == BP_FLOAT16 || dtype == BP_BFLOAT16, DTYPE, "autocast: argument dtype: found ", dtype_name(dtype),
           ", expected float16 or bfloat16");
  return dtype;
}

std::optional<uint32_t> backend_argument(const py::object& object) {
  if (object.is_none()) return std::nullopt;
  const bp_device device = device_argument(object, "autocast");
  check_device(device);
  return device.backend;
}

// What a SettingBlock takes. dtype None: off.
int64_t autocast_value(const py::object& dtype, const py::object& device) {
  const std::optional<uint32_t> backend = backend_argument(device);
  return value_of_autocast({dtype.is_none() ? bp_dtype{BP_DTYPE_NONE} : half_argument(dtype), backend});
}

// The dtype in which calls on the device run; a device of None stands for any. The result None: calls run as they are.
py::object autocast_dtype(const py::object& device) {
  use_context_settings();
  const Autocast now = autocast();
  const std::optional<uint32_t> backend = backend_argument(device);
  if (now.dtype == BP_DTYPE_NONE || (backend && now.backend && backend != now.backend)) return py::none();
  return py::reinterpret_steal<py::object>(wrap_dtype(now.dtype));
}

}  // namespace

void bind_autocast(py::module_& module) {
  module.def("autocast_value", &autocast_value);
  module.def("autocast_now", [] {
    use_context_settings();
    return value_of_autocast(autocast());
  });
  module.def("autocast_dtype", &autocast_dtype);
}

}  // namespace backplane::python
