// What an instruction of CPython's bytecode reads or writes, and which name or number it carries.
//
// Opcodes differ between versions of the interpreter; their names hardly do, so the table is made of the interpreter's
// own module `opcode`. All functions need the interpreter lock, and leave no Python error.
#pragma once

#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

enum class Action : uint8_t {
  kNone,
  kLoadGlobal,       // name
  kLoadName,         // name: the frame's locals, then globals
  kLoadCell,         // argument: the cell
  kLoadAttribute,    // name; the object is on top
  kLoadSuper,        // name; super or what hides it, a class, the object
  kLoadItem,         // container, key
  kStoreGlobal,      // name; the value is on top
  kDeleteGlobal,     // name
  kStoreCell,        // argument: the cell; the value is on top
  kStoreAttribute,   // name; value, object
  kDeleteAttribute,  // name; object
  kStoreItem,        // value, container, key
  kDeleteItem,       // container, key
  kStoreSlice,       // value, container, start, stop
  kCall,             // argument: how many arguments; in front of them the callable and a self, or NULL
  kCallUnpacked,     // argument, lowest bit: is there a dict of keyword arguments?
  kIterate,          // the iterable is on top
  kAdvance,          // the iterator is on top
  kCompareIdentity,  // two values
  kContains,         // value, container
  kTruth,            // a value is on top
  kOperands,         // argument: how many values, of which all is read
  kSpecial,          // a value is on top, of which a special method is called
  kText,             // argument: how many values, of which the lowest becomes text
  kClassPattern,     // argument: how many by position; subject, class, names
  kImport,           // name
  kKeywordNames,     // name: the tuple of the names of the next call's keyword arguments
  kReturn,           // a value that leaves the function, or is given to who goes through a generator
  kInPlace,          // two values, of which the first changes; name: the function of `operator`
};

struct Instruction {
  Action action = Action::kNone;
  int argument = 0;
  PyObject* name = nullptr;  // borrowed of the code, or immortal
  bool has_names = false;    // kCall: the last argument is the tuple of the keyword arguments' names
};

// Of `code` at a byte offset; behind an EXTENDED_ARG, what that extends.
Instruction instruction_at(PyObject* code, int offset);

}  // namespace backplane::python
