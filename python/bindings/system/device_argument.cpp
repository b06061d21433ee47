#include "bindings/system/device_argument.hpp"

#include "bindings/tensor/dtype_device.hpp"

namespace backplane::python {

namespace py = pybind11;

bp_device device_argument(const py::object& object, const char* function) {
  bp_device device{};
  const int read = read_device(object.ptr(), &device);
  if (read < 0) throw py::error_already_set();
  BP_CHECK(read == 1, TYPE, function, ": argument device: found a value of type ", Py_TYPE(object.ptr())->tp_name,
           ", expected a device or its name");
  return device;
}

bp_dtype dtype_argument(const py::handle& object, const char* function) {
  bp_dtype dtype = BP_DTYPE_NONE;
  const int read = read_dtype(object.ptr(), &dtype);
  if (read < 0) throw py::error_already_set();
  BP_CHECK(read == 1, TYPE, function, ": argument dtype: found a value of type ", Py_TYPE(object.ptr())->tp_name,
           ", expected a dtype such as backplane.float32");
  return dtype;
}

}  // namespace backplane::python
