// Lets pybind11 functions take and return backplane::Tensor. None and the empty tensor stand for each other.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "bindings/tensor/tensor_object.hpp"

template <>
struct pybind11::detail::type_caster<backplane::Tensor> {
  PYBIND11_TYPE_CASTER(backplane::Tensor, const_name("Tensor"));

  bool load(handle source, bool) {
    if (source.is_none()) return true;
    if (!backplane::python::is_tensor(source.ptr())) return false;
    value = backplane::python::tensor_of(source.ptr());
    return true;
  }
  static handle cast(backplane::Tensor tensor, return_value_policy, handle) {
    if (!tensor) return none().release();
    return backplane::python::wrap_tensor(std::move(tensor));
  }
};
