// The spellings of one op under one name: further words for its arguments, and further signatures with the calls that
// they mean. A call selects one by its count of positions, its keywords and the kinds of its values, before anything
// runs. The tables are codegen's, of `spellings` in ops/*.yaml.
//
// Needs the interpreter lock.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "backplane/abi/op.h"
#include "bindings/interpreter/py_ref.hpp"

namespace backplane::python {

struct SpelledCall;
struct SpelledNode;

struct Parameter {
  PyRef name;       // interned
  bp_arg_def spec;  // its strings belong to the record
  bool required;
};

// One further signature.
class Overload {
 public:
  // The most parameters, and the most nodes; codegen refuses more.
  static constexpr size_t kMost = 16;

  Overload(const SpelledCall& call, bool in_place, PyObject* name);

  const char* signature() const noexcept;
  const std::vector<Parameter>& parameters() const noexcept { return parameters_; }
  // Places a call's objects under the parameters (borrowed, NULL where left out). False: it is not such a call. `own`
  // are the parameters of the op's own signature: where they do not take a tensor by position, only a Tensor is one.
  // `first` is the first operand, if it was read.
  bool match(PyObject* const* args, size_t n_positional, PyObject* keywords, const std::vector<Parameter>& own,
             const bp_tensor* first, PyObject** values, PyObject** out) const;
  // The dtypes of first operands that select the signature: SpelledParameter::Dtypes. 0: all.
  uint8_t dtypes() const noexcept;
  // Makes the call that the signature means. NULL with a Python error.
  PyObject* run(PyObject* const* values, PyObject* out) const;

 private:
  // Puts the op that was called before the pending error of another one.
  void name_error(const SpelledNode& call) const;
  bool place(PyObject* keyword, PyObject* object, PyObject** values, PyObject** out) const;

  const SpelledCall& call_;
  bool in_place_;
  PyRef name_;
  std::vector<Parameter> parameters_;
  std::vector<PyRef> defaults_;      // a parameter's; empty: left out
  mutable std::vector<PyRef> made_;  // per node: the literal, or the Op that is called; made by the first call
  size_t positional_ = 0;
  size_t dim_ = kMost;  // the parameter of PyTorch's word
};

class Spellings {
 public:
  Spellings(const char* op, const char* name, bool in_place, const std::vector<Parameter>& own);

  // The argument that a stated word means; -1: none.
  int32_t find_word(PyObject* name) const noexcept;
  // Does a keyword (of a tuple of names, or NULL) stand in a further signature, and not in the op's own one?
  bool claims_any(PyObject* keywords) const noexcept;
  bool claims(PyObject* name) const noexcept;
  bool empty() const noexcept { return overloads_.empty(); }
  // The first signature that takes the call, with the objects under its parameters; nullptr: none. With `first`, the
  // first operand as it was read, only those that a dtype selects.
  const Overload* select(PyObject* const* args, size_t n_positional, PyObject* keywords,
                         const std::vector<Parameter>& own, const bp_tensor* first, PyObject** values,
                         PyObject** out) const;
  // Does the dtype of the first operand select a signature, if the other arguments fit it?
  bool may_select(bp_dtype dtype) const noexcept;
  bool selects_by_dtype() const noexcept { return dtypes_ != 0; }
  // "max(x, dim, *, keepdim=False); max(x, other)"
  std::string signatures() const;

 private:
  std::vector<std::pair<PyRef, int32_t>> words_;
  std::vector<PyRef> claimed_;
  uint8_t dtypes_ = 0;  // those that select one of the signatures
  std::vector<Overload> overloads_;
};

// The parameter that NumPy or PyTorch calls so: `dim` the only axis or axes, `keepdim` keepdims, `a` or `input` the
// first operand, `other` the second one. -1: none.
int32_t find_derived_word(PyObject* name, const std::vector<Parameter>& parameters) noexcept;

bool same_name(PyObject* a, PyObject* b) noexcept;
PyObject* out_keyword();  // "out", interned; borrowed

}  // namespace backplane::python
