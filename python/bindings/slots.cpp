// The array of slot handles and its one writer.
#include "slots.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "errors.hpp"

namespace backplane::python {
namespace {

constexpr unsigned kSlotCount = static_cast<unsigned>(Slot::Count);

constexpr const char* kSlotNames[] = {
#define BP_SLOT(name, text) text,
    BP_PYTHON_SLOTS(BP_SLOT)
#undef BP_SLOT
};

}  // namespace

constinit OpHandle g_slot_ops[kSlotCount] = {
#define BP_SLOT(name, text) BP_NO_OP,
    BP_PYTHON_SLOTS(BP_SLOT)
#undef BP_SLOT
};

const char* slot_name(Slot slot) noexcept { return kSlotNames[static_cast<unsigned>(slot)]; }

PyObject* bind_slot(PyObject*, PyObject* args) {
  const char *slot = nullptr, *op = nullptr;
  if (!PyArg_ParseTuple(args, "ss:bind_slot", &slot, &op)) return nullptr;
  const auto* found = std::find_if(std::begin(kSlotNames), std::end(kSlotNames),
                                   [&](const char* name) { return std::strcmp(name, slot) == 0; });
  if (found == std::end(kSlotNames))
    return raise(BP_ERROR_VALUE, "bind_slot: argument slot: found '%s', expected the name of a slot", slot);
  g_slot_ops[found - std::begin(kSlotNames)] = find_op(op);
  Py_RETURN_NONE;
}

OpHandle require_op(Slot slot) noexcept {
  const OpHandle op = op_of(slot);
  if (op == BP_NO_OP) {
    raise(BP_ERROR_NOT_IMPLEMENTED,
          "%s: no op is registered for this syntax; backplane/_syntax.py says which one is expected", slot_name(slot));
  }
  return op;
}

}  // namespace backplane::python
