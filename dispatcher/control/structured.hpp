// Control flow: ops whose Graph arguments are bodies, closed functions of tensors, and whose rules follow from those.
//
// A call is one list of tensors, grouped as the op's signature says. A derivative or a batch of a call is a call of the
// same op with other bodies, which the transforms make of the first ones; so each is traced, differentiated and batched
// again by the same rules. What a body draws was drawn before it (trace/body_draws.hpp).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "call/dispatch.hpp"
#include "functions/closed_function.hpp"
#include "functions/graph_call.hpp"
#include "registry/tagged_op.hpp"

namespace backplane::core {

using Body = std::shared_ptr<GraphFunction>;
using Tensors = std::vector<Tensor>;

class Structured : public ClosedFunction {
 public:
  // `counts`: tensors in each Tensor and Tensor[] argument of the op, in order.
  Structured(const OpEntry& op, std::vector<Body> bodies, std::vector<size_t> counts);

  const OpEntry& op() const { return op_; }
  const std::vector<Body>& bodies() const { return bodies_; }
  const std::vector<size_t>& counts() const { return counts_; }
  // The op's argument that is not a tensor and not a body.
  virtual bp_value plain_argument(size_t) const { return {}; }
  // What body `b` is called with, as far as shape, dtype and device go.
  virtual Tensors body_examples(size_t b, Args args) const = 0;
  // The results as examples, if the bodies give these.
  virtual Tensors result_examples(Args args, const std::vector<Tensors>& of_bodies) const = 0;
  Tensors result_forms(Args args) const override;
  void follow(std::vector<bool> arguments) override { followed_ = std::move(arguments); }

 protected:
  Args group(Args args, size_t k) const;
  // A body returns a carry of the form that it got: as many tensors, with equal shapes and dtypes.
  void check_carry(Args carried, Args found) const;

  const OpEntry& op_;
  bool follows(size_t argument) const { return followed_.empty() || followed_[argument]; }

  std::vector<Body> bodies_;
  std::vector<size_t> counts_;

 private:
  std::vector<bool> followed_;  // empty: all
};

// The bodies and the counts of a call, as `Structured` takes them.
std::vector<Body> bodies_of(const Call& call);
std::vector<size_t> counts_of(const Call& call);
// The same op with other bodies, at the levels that are active.
Tensors call_structured(const std::shared_ptr<Structured>& function, Args args);

// The forms of the results of a body that is not a graph, from its trace. A part above provides the function.
extern Tensors (*traced_forms)(const Body& body, Args args);

// A body of a C++ callable, which uses nothing but its arguments. `moves`: as ClosedFunction has it.
Body make_body(const std::string& name, std::function<Tensors(Args)> function, std::vector<uint64_t> moves = {});
std::vector<uint64_t> moves_of(const Body& body);
enum class Mode : uint8_t { kForward, kReverse };
// The results of a body, as bits of GraphFunction::Forward, that the flagged arguments move.
uint64_t moved_results(const Body& body, const std::vector<bool>& moving, Mode mode = Mode::kForward);
// Which arguments of a body move one of these results.
std::vector<bool> moving_arguments(const Body& body, uint64_t results, size_t n_args);
// Also flags each of the first `n_carried` arguments that is inexact and that a step of a loop moves.
void flag_moved_carry(const Body& body, Args args, size_t n_carried, std::vector<bool>& moving,
                      Mode mode = Mode::kForward);
// A body over a batch: `batched` says which arguments have it, at axis 0; all results do.
Body batched_body(const Body& body, int64_t size, std::vector<bool> batched);

// A handle of this shape without data, else like the tensor.
Tensor example_of(Shape shape, const Tensor& like);
// Which tensors are floating or complex.
std::vector<size_t> inexact_of(Args tensors);
// Which are floating or complex, and flagged.
std::vector<size_t> inexact_of(Args tensors, const std::vector<bool>& flags, size_t first_flag = 0);
// The floating or complex tensors of which a bit, from bit `first` on, is in `bits`.
std::vector<size_t> inexact_of(Args tensors, uint64_t bits, size_t first = 0);
// Which tensors there are.
std::vector<bool> present_of(Args tensors);
Tensors picked(Args tensors, const std::vector<size_t>& which);
Tensors joined(std::initializer_list<Args> lists);
Tensor zeros_of(Shape shape, const Tensor& like);
// A bool per row, as a mask that broadcasts with `like`, whose axis 0 are the rows.
Tensor row_mask(const Tensor& rows, const Tensor& like);
// Zeros like the tensors of `like` in place of those that are empty.
Tensors filled_up(Args tensors, Args like);
void check_condition(const Tensor& condition, const std::string& who);
bool read_condition(const Tensor& condition, const std::string& who);
// "float32 of shape (2, 3)".
std::string form_text(const Tensor& tensor);
// The op with this tag, with one result.
Tensor call_tagged(const char* tag, std::initializer_list<bp_value> args);

}  // namespace backplane::core
