#include "bindings/guards/recorder/instructions.hpp"
#include "bindings/interpreter/errors.hpp"
#include "bindings/interpreter/imports.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace backplane::python {
namespace {

struct Row {
  const char* opcode;
  Action action;
  int argument = -1;  // -1: the instruction's own
};

constexpr Row kRows[] = {
    {"LOAD_GLOBAL", Action::kLoadGlobal},
    {"LOAD_NAME", Action::kLoadName},
    {"LOAD_DEREF", Action::kLoadCell},
    {"LOAD_CLASSDEREF", Action::kLoadCell},
    {"LOAD_FROM_DICT_OR_DEREF", Action::kLoadCell},
    {"LOAD_FROM_DICT_OR_GLOBALS", Action::kLoadName},
    {"LOAD_ATTR", Action::kLoadAttribute},
    {"LOAD_METHOD", Action::kLoadAttribute},
    {"IMPORT_FROM", Action::kLoadAttribute},
    {"LOAD_SUPER_ATTR", Action::kLoadSuper},
    {"BINARY_SUBSCR", Action::kLoadItem},
    {"STORE_GLOBAL", Action::kStoreGlobal},
    {"DELETE_GLOBAL", Action::kDeleteGlobal},
    {"STORE_DEREF", Action::kStoreCell},
    {"STORE_ATTR", Action::kStoreAttribute},
    {"DELETE_ATTR", Action::kDeleteAttribute},
    {"STORE_SUBSCR", Action::kStoreItem},
    {"DELETE_SUBSCR", Action::kDeleteItem},
    {"STORE_SLICE", Action::kStoreSlice},
#if PY_VERSION_HEX < 0x030C0000
    {"PRECALL", Action::kCall},
#else
    {"CALL", Action::kCall},
    {"CALL_KW", Action::kCall},  // the names of keywords are one more
#endif
    {"CALL_FUNCTION_EX", Action::kCallUnpacked},
    {"GET_ITER", Action::kIterate},
    {"GET_YIELD_FROM_ITER", Action::kIterate},
    {"FOR_ITER", Action::kAdvance},
    {"IS_OP", Action::kCompareIdentity},
    {"CONTAINS_OP", Action::kContains},
    {"POP_JUMP_IF_TRUE", Action::kTruth},
    {"POP_JUMP_IF_FALSE", Action::kTruth},
    {"POP_JUMP_FORWARD_IF_TRUE", Action::kTruth},
    {"POP_JUMP_FORWARD_IF_FALSE", Action::kTruth},
    {"POP_JUMP_BACKWARD_IF_TRUE", Action::kTruth},
    {"POP_JUMP_BACKWARD_IF_FALSE", Action::kTruth},
    {"JUMP_IF_TRUE_OR_POP", Action::kTruth},
    {"JUMP_IF_FALSE_OR_POP", Action::kTruth},
    {"UNARY_NOT", Action::kTruth},
    {"TO_BOOL", Action::kTruth},
    {"BEFORE_WITH", Action::kSpecial},
    {"BEFORE_ASYNC_WITH", Action::kSpecial},
    {"SETUP_WITH", Action::kSpecial},
    {"GET_AWAITABLE", Action::kSpecial},
    {"GET_AITER", Action::kSpecial},
    {"GET_ANEXT", Action::kSpecial},
    {"UNARY_NEGATIVE", Action::kOperands, 1},
    {"UNARY_POSITIVE", Action::kOperands, 1},
    {"UNARY_INVERT", Action::kOperands, 1},
    {"CALL_INTRINSIC_1", Action::kOperands, 1},
    {"FORMAT_VALUE", Action::kText},
    {"FORMAT_SIMPLE", Action::kText, 1},
    {"FORMAT_WITH_SPEC", Action::kText, 2},
    {"CONVERT_VALUE", Action::kText, 1},
    {"UNPACK_SEQUENCE", Action::kOperands, 1},
    {"UNPACK_EX", Action::kOperands, 1},
    {"LIST_EXTEND", Action::kOperands, 1},
    {"SET_UPDATE", Action::kOperands, 1},
    {"DICT_UPDATE", Action::kOperands, 1},
    {"DICT_MERGE", Action::kOperands, 1},
    {"GET_LEN", Action::kOperands, 1},
    {"MATCH_KEYS", Action::kOperands, 2},
    {"RETURN_VALUE", Action::kReturn},
    {"YIELD_VALUE", Action::kReturn},
    {"MATCH_CLASS", Action::kClassPattern},
    {"IMPORT_NAME", Action::kImport},
    {"KW_NAMES", Action::kKeywordNames},
    {"COMPARE_OP", Action::kOperands, 2},
    {"BINARY_SLICE", Action::kOperands, 3},
    {"BINARY_OP", Action::kOperands, 2},
};

// Functions of the module operator, in the order of BINARY_OP's arguments from NB_INPLACE_ADD (13) on.
constexpr const char* kInPlace[] = {"iadd", "iand", "ifloordiv", "ilshift", "imatmul",  "imul", "imod",
                                    "ior",  "ipow", "irshift",   "isub",    "itruediv", "ixor"};
constexpr int kFirstInPlace = 13;
constexpr int kUnaryPositive = 5;  // CALL_INTRINSIC_1's argument from 3.12 on: +x
constexpr int kHasSpec = 4;        // in FORMAT_VALUE's argument: a format stands on top of the value

struct Entry {
  Action action = Action::kNone;
  int argument = -1;
  PyObject* name = nullptr;
};

struct Opcodes {
  std::array<Entry, 256> entries;
  int extended = -1, format_value = -1, load_attribute = -1, load_super = -1, load_global = -1, binary = -1,
      call_kw = -1, call_intrinsic = -1;
  Opcodes();
};

int number_of(PyObject* map, const char* name) {
  PyObject* number = PyDict_GetItemString(map, name);
  const long value = number ? PyLong_AsLong(number) : -1;
  return value >= 0 && value < 256 ? static_cast<int>(value) : -1;
}

Opcodes::Opcodes() {
  const PyRef module = imported_module("opcode");
  const PyRef map = PyRef::steal(module ? PyObject_GetAttrString(module.get(), "opmap") : nullptr);
  if (map && PyDict_Check(map.get())) {
    for (const Row& row : kRows)
      if (const int code = number_of(map.get(), row.opcode); code >= 0)
        entries[static_cast<size_t>(code)] = {row.action, row.argument, nullptr};
    extended = number_of(map.get(), "EXTENDED_ARG");
    format_value = number_of(map.get(), "FORMAT_VALUE");
    load_attribute = number_of(map.get(), "LOAD_ATTR");
    load_super = number_of(map.get(), "LOAD_SUPER_ATTR");
    load_global = number_of(map.get(), "LOAD_GLOBAL");
    binary = number_of(map.get(), "BINARY_OP");
    call_kw = number_of(map.get(), "CALL_KW");
    call_intrinsic = number_of(map.get(), "CALL_INTRINSIC_1");
  }
  forget_error();
}

// Made again where the module could not be imported.
const Opcodes& opcodes() {
  static const Opcodes* table = nullptr;  // holds names that outlive the interpreter's end
  if (table && table->extended >= 0) return *table;
  delete table;
  table = new Opcodes;
  return *table;
}

// From 3.11 on the lowest bit of a name's number tells whether a NULL is pushed too; that of super's has two such bits.
int name_index(const Opcodes& table, int opcode, int argument) {
#if PY_VERSION_HEX >= 0x030C0000
  if (opcode == table.load_attribute) return argument >> 1;
  if (opcode == table.load_super) return argument >> 2;
#endif
  return opcode == table.load_global ? argument >> 1 : argument;
}

bool takes_name(Action action) {
  switch (action) {
    case Action::kLoadGlobal:
    case Action::kLoadName:
    case Action::kLoadAttribute:
    case Action::kLoadSuper:
    case Action::kStoreGlobal:
    case Action::kDeleteGlobal:
    case Action::kStoreAttribute:
    case Action::kDeleteAttribute:
    case Action::kImport:
      return true;
    default:
      return false;
  }
}

}  // namespace

Instruction instruction_at(PyObject* code, int offset) {
  const Opcodes& table = opcodes();
  const PyRef bytes = PyRef::steal(PyCode_GetCode(reinterpret_cast<PyCodeObject*>(code)));
  if (!bytes || !PyBytes_Check(bytes.get())) {
    forget_error();
    return {};
  }
  const auto* words = reinterpret_cast<const unsigned char*>(PyBytes_AS_STRING(bytes.get()));
  const Py_ssize_t size = PyBytes_GET_SIZE(bytes.get());
  int argument = 0;
  for (; offset >= 0 && offset + 1 < size && words[offset] == table.extended; offset += 2)
    argument = (argument | words[offset + 1]) << 8;
  if (offset < 0 || offset + 1 >= size) return {};
  const int opcode = words[offset];
  argument |= words[offset + 1];
  const Entry& entry = table.entries[static_cast<size_t>(opcode)];
  Instruction found{entry.action, entry.argument >= 0 ? entry.argument : argument, entry.name};
  if (opcode == table.binary && argument >= kFirstInPlace &&
      argument - kFirstInPlace < static_cast<int>(std::size(kInPlace))) {
    static PyObject* names[std::size(kInPlace)] = {};
    PyObject*& name = names[argument - kFirstInPlace];
    if (!name) name = PyUnicode_InternFromString(kInPlace[argument - kFirstInPlace]);
    found = {Action::kInPlace, 2, name};
  }
  if (opcode == table.call_intrinsic && argument != kUnaryPositive) return {};
  if (opcode == table.format_value) found.argument = argument & kHasSpec ? 2 : 1;
  if (opcode == table.call_kw) found.has_names = true, ++found.argument;
  if (found.action == Action::kKeywordNames) {
    PyObject* constants = reinterpret_cast<PyCodeObject*>(code)->co_consts;
    found.name = argument < PyTuple_GET_SIZE(constants) ? PyTuple_GET_ITEM(constants, argument) : nullptr;
    if (!found.name) found.action = Action::kNone;
  }
  if (takes_name(found.action)) {
    const int index = name_index(table, opcode, argument);
    PyObject* names = reinterpret_cast<PyCodeObject*>(code)->co_names;
    found.name = index < PyTuple_GET_SIZE(names) ? PyTuple_GET_ITEM(names, index) : nullptr;
    if (!found.name) found.action = Action::kNone;
  }
  return found;
}

}  // namespace backplane::python
