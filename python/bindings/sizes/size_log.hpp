// Sizes of traced tensors as Python numbers that record the operations on them.
//
// While a function is traced for any size, `x.shape` gives numbers of a subclass of int. Arithmetic gives more of them
// (floating ones are of a subclass of float), a comparison notes its outcome, and whatever else looks at the value is
// noted as a use that nobody can follow. The list of the run's uses (backplane/size_uses.hpp) tells at which other
// sizes the run would have been the same. All functions need the interpreter lock.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backplane/size_uses.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/tensor/number_hook.hpp"

namespace backplane::python {

extern PyTypeObject *g_size_type, *g_size_float_type;
bool add_size_types();  // and sets the hook

inline bool is_size(PyObject* object) noexcept { return Py_TYPE(object) == g_size_type; }
inline bool is_size_float(PyObject* object) noexcept { return Py_TYPE(object) == g_size_float_type; }
inline bool is_of_size(PyObject* object) noexcept { return is_size(object) || is_size_float(object); }
// A number that a log follows: a size, or a number that changes from call to call (number_log.hpp).
inline bool is_followed(PyObject* object) noexcept { return is_of_size(object) || is_traced_number(object); }
// The plain int or float with this value; other objects themselves.
PyRef plain_number(PyObject* object);

class SizeLog {
 public:
  using Kind = SizeUse::Kind;
  using Operand = SizeUse::Operand;

  SizeLog() = default;
  ~SizeLog();
  SizeLog(const SizeLog&) = delete;

  // The log of this thread; nullptr: none, or it is not to note anything now.
  static SizeLog* current() noexcept { return current_; }

  // While it lives, this log is the thread's; nullptr: none is.
  class Use {
   public:
    explicit Use(SizeLog* log) noexcept : outer_(current_) { current_ = log; }
    ~Use() { current_ = outer_; }
    Use(const Use&) = delete;

   private:
    SizeLog* outer_;
  };

  // While it lives, the logs of this thread know which sizes that are read differ from call to call: by the order of
  // the reads.
  class KnownReads {
   public:
    explicit KnownReads(const std::vector<bool>* dynamic) noexcept : outer_(std::exchange(known_reads_, dynamic)) {}
    ~KnownReads() { known_reads_ = outer_; }
    KnownReads(const KnownReads&) = delete;

   private:
    const std::vector<bool>* outer_;
  };

  // A size of a tensor. New reference, or NULL with an error.
  PyObject* read(int64_t value);
  // Is it made of sizes that differ from call to call, as far as is known?
  bool is_dynamic(Operand operand);
  bool was_asked() const { return was_asked_; }  // that question
  // `result`, which is taken over, as the number that this gives.
  PyObject* number(Kind kind, Operand left, Operand right, PyObject* result);
  PyObject* floating(Operand of, PyObject* result);
  // float(size), or a root of it: 0 where the size is 0, and nowhere else.
  PyObject* converted(Operand of, double value);
  void compare(Kind kind, Operand left, Operand right, bool outcome);
  // A use that nobody can follow: "calls hash() of a size".
  void lose(const std::string& what, PyObject* of, PyObject* also = nullptr);
  // A Python number, or the use of a number of this log.
  Operand operand(PyObject* object) const;
  // Which use made it; Operand::kNone: none of this log.
  uint32_t use_of(PyObject* object) const { return operand(object).use; }
  // A floating number that is a size times a fraction. Denominator 0: another number.
  struct Ratio {
    Operand of;
    int64_t numerator = 0, denominator = 0;
  };
  void note_ratio(PyObject* floating, const Ratio& ratio) { ratios_[use_of(floating)] = ratio; }
  Ratio ratio(PyObject* floating) const {
    const auto found = ratios_.find(use_of(floating));
    return found == ratios_.end() ? Ratio{} : found->second;
  }
  const SizeUse& use(uint32_t index) const { return uses_[index]; }
  std::vector<SizeUse> take_uses() { return std::move(uses_); }

 private:
  PyObject* add(SizeUse use, PyObject* object);
  static thread_local constinit SizeLog* current_;
  static thread_local constinit const std::vector<bool>* known_reads_;
  std::vector<SizeUse> uses_;
  std::unordered_map<PyObject*, uint32_t> known_;
  std::unordered_map<uint32_t, Ratio> ratios_;  // by use
  std::vector<PyRef> held_;
  std::unordered_map<uint32_t, size_t> reads_;  // by use: which of the reads it is
  bool was_asked_ = false;
};

// is_dynamic(number): in a trace for any size, is it made of sizes that differ from call to call?
PyObject* is_dynamic(PyObject* module, PyObject* number);
// Sizes of traced tensors are read through this folder from now on.
void set_size_hook();

// The function to call in place of one that would no longer follow a size: float, int, math.sqrt, len,
// type, numpy.prod. Borrowed; NULL for other callables, or if the argument is not a size, or several.
PyObject* size_function(PyObject* callable, PyObject* argument);

}  // namespace backplane::python
