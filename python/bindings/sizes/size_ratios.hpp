// Floating numbers that are a size times a fraction, as n / 2 and n * 0.75: rounded to whole numbers, they are
// followed.
#pragma once

#include "bindings/sizes/size_log.hpp"

namespace backplane::python {

// After `product` = a * b, or `quotient` = a / b, of the log that is in use: notes which fraction of a size it is, if
// it is one whose roundings are known at every size. Objects may be NULL.
void note_product(PyObject* product, PyObject* a, PyObject* b);
void note_quotient(PyObject* quotient, PyObject* a, PyObject* b);
// float(size).
void note_whole(PyObject* floating, PyObject* size);

enum class Rounding : uint8_t { kDown, kUp, kToZero };
// The number rounded, as a size. NULL without an error if it is not a known fraction of a size.
PyObject* rounded_ratio(PyObject* number, Rounding rounding);

}  // namespace backplane::python
