// An op's signature in the form in which Python calls are matched: interned names, and how many arguments may be given
// by position. Made once per op from its record, which it holds.
//
// Needs the interpreter lock.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backplane/abi/host.h"
#include "backplane/abi/signature.h"
#include "backplane/op.hpp"
#include "bindings/interpreter/py_ref.hpp"
#include "bindings/ops/convert.hpp"
#include "bindings/ops/spellings.hpp"

namespace backplane::python {

enum class Variant { Functional, InPlace };

// Is the first operand of one of these kinds (form_kinds_of)?
bool has_form_kind(uint8_t kinds, const std::vector<Parameter>& parameters, PyObject* const* given,
                   const bp_value* values) noexcept;

class OpSignature {
 public:
  OpSignature(OpHandle op, Variant variant, PyObject* python_name);

  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  int32_t count() const noexcept { return static_cast<int32_t>(parameters_.size()); }
  int32_t positional() const noexcept { return positional_; }
  int32_t positional_only() const noexcept { return positional_only_; }
  int32_t result_count() const noexcept { return static_cast<int32_t>(def_->results.count); }
  bool takes_out() const noexcept { return takes_out_; }
  bool makes_view() const noexcept { return makes_view_; }
  // The further words and signatures of the op under this name.
  const Spellings& spellings() const noexcept { return *spellings_; }
  // Does a keyword (of a tuple of names) belong only to further signatures?
  bool needs_overload(PyObject* keywords) const noexcept {
    return !spellings_->empty() && spellings_->claims_any(keywords);
  }
  // The first further signature that takes the call, with its objects under the parameters; nullptr: none.
  // `first` is the first operand, if it was read.
  const Overload* select(PyObject* const* args, size_t n_positional, PyObject* keywords, PyObject** values,
                         PyObject** out, const bp_tensor* first = nullptr) const {
    return spellings_->select(args, n_positional, keywords, parameters_, first, values, out);
  }
  // The keywords of a call (a tuple of names, or NULL), with an argument's own name for each word that the entry
  // states. A new reference; NULL for NULL.
  PyObject* own_names(PyObject* keywords) const;
  // The Python function that answers a call whose arguments the entry does not take as they are (borrowed); nullptr:
  // none. Throws Error: the first such call imports the module of these functions.
  PyObject* other_form() const;
  // Does another form answer for the kind of the first operand, which the entry refuses? Known before the op runs.
  bool is_for_other_form(PyObject* const* given, const bp_value* values) const noexcept {
    return form_kinds_ != 0 && has_form_kind(form_kinds_, parameters_, given, values);
  }
  // May the dtype of the first operand select a further signature?
  bool selects_by_dtype(const bp_value* values) const noexcept {
    return selects_by_dtype_ && values[0].tag == BP_TAG_TENSOR && spellings_->may_select(values[0].u.t->dtype);
  }
  const char* result_name(int32_t result) const noexcept;

  // The number of a parameter by name, -1 for an unknown name.
  int32_t find(PyObject* name) const noexcept;
  // reshape(x, shape): further ints by position join the last one. True for a last positional list of ints.
  bool gathers_ints() const noexcept { return gathers_ints_; }
  // normal(shape, *, mean, std): NumPy's order of these has the shape last, so three ints by position are ambiguous.
  bool has_numpy_order(size_t n_ints) const noexcept { return n_ints == 3 && two_numbers_follow_; }
  PyObject* raise_numpy_order(PyObject* ints) const;
  // max(x, axis): are the last positional ints axes, in whose place another form may take a tensor?
  bool ends_in_axes() const noexcept { return ends_in_axes_; }

  // Places a call's objects under their parameters (borrowed, NULL where left out). False: Python error.
  bool match(PyObject* const* args, size_t n_positional, PyObject* keywords, PyObject** given, PyObject** out) const;
  // The error of a bool among such ints, like PyTorch's positional keepdim, or of another object that is not an int.
  PyObject* raise_gathered(PyObject* object) const;
  // The error of a call that none of the signatures takes.
  PyObject* raise_no_signature(PyObject* const* args, size_t n_positional, PyObject* keywords) const;
  // Reads the given arguments. Returns the count of values to pass, or -1 with a Python error.
  int32_t read(PyObject* const* given, CallArguments& arguments) const;

 private:
  // The parameter of a word that libraries have for it, stated or derived (find_derived_word). -1: none.
  int32_t find_synonym(PyObject* name) const;
  // The keyword that gave the parameter before keyword number `before`; nullptr: none did.
  PyObject* earlier_word(PyObject* keywords, Py_ssize_t before, int32_t index) const;
  bool match_keywords(PyObject* const* values, PyObject* keywords, PyObject** given, PyObject** out) const;
  PyObject* raise_unread(const Parameter& parameter, PyObject* object) const;
  bool reserve(PyObject* const* given, CallArguments& arguments) const;
  bool raise_unknown(PyObject* keyword) const;
  std::string all_signatures() const;

  OpHandle op_;
  std::shared_ptr<const bp_op_def> def_;
  const char* name_;
  std::vector<Parameter> parameters_;
  int32_t positional_ = 0;
  int32_t positional_only_ = 0;
  int32_t generator_ = -1;          // the argument that takes random numbers' positions
  int32_t reduced_axis_ = -1;       // of a reduction of the first argument: its axis or axes, if it may be absent
  bool numbers_have_axis_ = false;  // such an op takes the axis 0 of a number, as in NumPy
  bool takes_out_ = false;
  bool makes_view_ = false;
  bool gathers_ints_ = false;
  bool ends_in_axes_ = false;
  bool two_numbers_follow_ = false;
  bool selects_by_dtype_ = false;
  uint8_t form_kinds_ = 0;
  // Once they were looked for.
  mutable std::vector<std::pair<PyRef, int32_t>> synonyms_;  // words that calls have spelled so, and their parameters
  std::unique_ptr<const Spellings> spellings_;
  mutable PyObject* const* other_form_ = nullptr;  // where it stands
};

}  // namespace backplane::python
