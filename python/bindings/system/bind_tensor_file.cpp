#include "bindings/system/bind_tensor_file.hpp"

#include <pybind11/stl.h>

#include "backplane/tensor_file.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/system/device_argument.hpp"
#include "bindings/tensor/tensor_caster.hpp"

namespace backplane::python {
namespace {

namespace py = pybind11;

Tensor read(const TensorFileReader& file, int64_t tensor, bp_device device) {
  WithoutGil unlocked;
  return file.read(tensor, device);
}

int64_t number_of(const TensorFileReader& file, const std::string& name) {
  const int64_t tensor = file.find(name);
  if (tensor < 0) throw py::key_error(name);
  return tensor;
}

// In the order of the file.
py::list names(const TensorFileReader& file) {
  py::list all(static_cast<size_t>(file.size()));
  for (int64_t i = 0; i < file.size(); ++i) all[static_cast<size_t>(i)] = py::str(file.name(i));
  return all;
}

py::dict read_all(const TensorFileReader& file, const py::object& object) {
  const bp_device device = device_argument(object, "load");
  py::dict all;
  for (int64_t i = 0; i < file.size(); ++i) all[py::str(file.name(i))] = read(file, i, device);
  return all;
}

}  // namespace

void bind_tensor_file(py::module_& module) {
  py::class_<TensorFileReader>(module, "TensorFileReader")
      .def(py::init([](const std::string& path) {
        WithoutGil unlocked;
        return TensorFileReader(path);
      }))
      .def("__len__", &TensorFileReader::size)
      .def("__contains__",
           [](const TensorFileReader& file, const py::object& name) {
             return PyUnicode_Check(name.ptr()) && file.find(name.cast<std::string>()) >= 0;
           })
      .def("names", &names)
      .def("metadata", &TensorFileReader::metadata)
      .def("read",
           [](const TensorFileReader& file, const std::string& name, const py::object& device) {
             return read(file, number_of(file, name), device_argument(device, "load"));
           })
      .def("read_all", &read_all);
}

}  // namespace backplane::python
