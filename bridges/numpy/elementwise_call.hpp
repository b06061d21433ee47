// An elementwise op as the inner loop of a NumPy ufunc: operands along one axis, each with a stride in bytes.
//
// Nothing here needs Python. A prepared object may be called on any thread at once; calls throw Error. Memory belongs
// to the caller.
#pragma once

#include <array>
#include <complex>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "axis_call.hpp"
#include "backplane/op.hpp"

namespace backplane::numpy {

// Operands of a loop, inputs before results.
inline constexpr int kMostOperands = 16;
inline constexpr size_t kMostArguments = 32;  // of an op

// The dtypes of one loop, of the inputs, then of the results, and what follows from them.
struct LoopForm {
  std::vector<bp_dtype> dtypes;
  int items[kMostOperands] = {};  // bytes of an element
  bool reads_bools = false;

  bool same_dtype(int i, int k) const { return dtypes[static_cast<size_t>(i)] == dtypes[static_cast<size_t>(k)]; }
};

using AttributeValue = std::variant<std::monostate, bool, int64_t, double, std::complex<double>, std::string>;

class ElementwiseCall {
 public:
  // Of an op with the flag BP_OP_ELEMENTWISE, or of Python that says it is elementwise. Throws for others, and for ops
  // that take random numbers.
  explicit ElementwiseCall(const std::string& full_name);

  const bp_op_def& def() const { return *def_; }
  int n_inputs() const { return static_cast<int>(places_.size()); }
  int n_outputs() const { return static_cast<int>(def_->results.count); }

  // An argument that is the same in all calls: a number may be a tensor's value. Throws for names that the op does not
  // have and for values of another type.
  void set_attribute(const std::string& name, const AttributeValue& value);
  // After the attributes: which arguments are inputs. Throws if another argument has no value.
  void choose_inputs();
  // The combinations of input dtypes that the op takes among `dtypes`, in that order, each with the results' dtypes.
  std::vector<LoopForm> loops(const std::vector<bp_dtype>& dtypes) const;
  // Of loops that give bools from two inputs of another dtype: loops whose first input is a bool as well, which NumPy's
  // reductions need because a partial result is their first input. Only for ops that take the truth of each input.
  static std::vector<LoopForm> loops_of_truths(const std::vector<LoopForm>& loops);
  // Ops of a whole axis, which `reduce` and `accumulate` call in place of one step per element. "": none.
  void set_axis_calls(const std::string& reduction, const std::string& scan);

  // NumPy's loop over n elements. Where a result lies over inputs of other steps, the effect is that of one step per
  // element in order, as reductions expect.
  void run(const LoopForm& form, char* const* data, int64_t n, const int64_t* steps) const;

 private:
  struct Operands;
  const bp_arg_def& arg(uint32_t i) const;
  bool run_row(const LoopForm& form, char* const* data, int64_t n, const int64_t* steps) const;
  void check_lent(bool is_kept) const;
  void run_in_order(const Operands& all) const;
  void run_block(const Operands& all) const;
  void run_on_copies(const Operands& all) const;
  void reduce(const Operands& all) const;
  void accumulate(const Operands& all) const;
  void call(const bp_value* inputs, bp_value* outs, bool given_outs = true) const;

  OpHandle op_ = BP_NO_OP;
  std::shared_ptr<const bp_op_def> def_;
  AxisCall reduction_, scan_;
  std::vector<bp_value> args_;
  std::vector<bool> stated_;
  std::vector<uint32_t> places_;  // of the inputs among the arguments
  bool only_inputs_ = false;      // the arguments are the inputs, in this order
  bool copies_ = false;           // kernels of Python may keep their arguments: memory is copied, not lent
  std::deque<std::string> texts_;
  std::deque<std::array<double, 2>> complex_numbers_;
};

}  // namespace backplane::numpy
