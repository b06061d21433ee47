// The array of slot handles and its one writer.
#include "bindings/tensor/slots.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "bindings/interpreter/errors.hpp"

namespace backplane::python {
namespace {

constexpr unsigned kSlotCount = static_cast<unsigned>(Slot::Count);

// In the order of Slot: as the package's table spells them.
constexpr const char* kSlotNames[] = {
    "__add__",    "__sub__", "__mul__",   "__truediv__", "__floordiv__", "__mod__", "__pow__",   "__matmul__",
    "__and__",    "__or__",  "__xor__",   "__lshift__",  "__rshift__",   "__neg__", "__pos__",   "__abs__",
    "__invert__", "__lt__",  "__le__",    "__eq__",      "__ne__",       "__gt__",  "__ge__",    "select",
    "slice",      "squeeze", "unsqueeze", "permute",     "gather",       "scatter", "positions", "fill",
    "assign",     "cast",    "copy",      "conj",        "detach"};
static_assert(std::size(kSlotNames) == kSlotCount);

constexpr std::array<OpHandle, kSlotCount> no_ops() {
  std::array<OpHandle, kSlotCount> handles{};
  handles.fill(BP_NO_OP);
  return handles;
}

}  // namespace

constinit std::array<OpHandle, kSlotCount> g_slot_ops = no_ops();

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
          "%s: no op is registered for this syntax; backplane/_calls/_syntax.py says which one is expected",
          slot_name(slot));
  }
  return op;
}

}  // namespace backplane::python
