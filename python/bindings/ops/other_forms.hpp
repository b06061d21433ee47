// The forms of ops in Python: what answers a call that an entry does not take as it is, chosen before the op runs.
//
// The package sets them: backplane._calls._other_forms, which is imported when a form is first looked for, and
// backplane._calls._form_kinds. Needs the interpreter lock; the functions live as long as the process.
#pragma once

#include <string_view>

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

// By the op's full name and its name in Python: where the form stands, also one that is set later; borrowed, nullptr:
// none. Throws Error.
PyObject* const& find_other_form(const char* full_name, const char* name);
// The kinds of first operands for which the other form of an op answers, a bit each.
uint8_t form_kinds_of(std::string_view full_name) noexcept;

// set_other_form(full_name, name, function): the form of calls that the entry does not take. The function may return
// NotImplemented.
PyObject* set_other_form(PyObject*, PyObject* args);
// set_form_kinds(kinds): {kind of first operands: names of ops in our namespace whose other form answers for it}. The
// kinds are bool, integer, number (no axes, where the call names one) and no_axis (not one axis, and none
// named).
PyObject* set_form_kinds(PyObject*, PyObject* kinds);
}  // namespace backplane::python
