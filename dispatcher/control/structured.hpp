// Control flow: ops whose Graph arguments are bodies, closed functions of tensors, and whose rules follow from those.
//
// A call is one list of tensors, grouped as the op's signature says. A derivative or a batch of a call is a call of the
// same op with other bodies, which are made of the first ones by the transforms; so each is traced, differentiated and
// batched again by the same rules. Bodies draw no random numbers.
#pragma once

#include <memory>
#include <vector>

#include "call/dispatch.hpp"
#include "functions/closed_function.hpp"
#include "functions/graph_call.hpp"
#include "graph/graph.hpp"

namespace backplane::core {

using Body = std::shared_ptr<GraphFunction>;
using Tensors = std::vector<Tensor>;

class Structured : public ClosedFunction {
 public:
  // `counts`: tensors in each Tensor and Tensor[] argument of the op, in order.
  Structured(const OpEntry& op, std::vector<Body> bodies, std::vector<size_t> counts, bp_value statics[], size_t n);

  const OpEntry& op() const { return op_; }
  const std::vector<Body>& bodies() const { return bodies_; }
  const std::vector<size_t>& counts() const { return counts_; }
  const bp_value& plain_argument(size_t i) const { return plain_[i]; }  // of an argument that is neither

  // What body `b` is called with, as far as shape, dtype and device go.
  virtual Tensors body_examples(size_t b, Args args) const = 0;
  // The results, likewise, where the bodies give these.
  virtual Tensors result_examples(Args args, const std::vector<Tensors>& of_bodies) const = 0;

 protected:
  // The same op with other bodies, at the levels that are active.
  std::vector<Tensor> call_with(std::shared_ptr<Structured> other, Args args) const;
  Args group(Args args, size_t k) const;

  const OpEntry& op_;
  std::vector<Body> bodies_;
  std::vector<size_t> counts_;
  std::vector<bp_value> plain_;
};

// The graph of a closed function: its own where it is one, else traced (control/graph_body.hpp, trace/).
// A handle of this form, without data.
Tensor example_of(Shape shape, const Tensor& like);

// A body of a C++ callable.
Body make_body(const char* name, std::function<Tensors(Args)> function);
// Numbers of floating and complex tensors.
std::vector<size_t> inexact_of(Args tensors);
Tensors picked(Args tensors, const std::vector<size_t>& which);
Tensors joined(std::initializer_list<Args> lists);
// Zeros in place of those that are empty, like the tensors of `like`.
Tensors filled_up(Args tensors, Args like);
bool read_condition(const Tensor& condition, const char* who);
Tensor call_tagged(const char* tag, std::initializer_list<bp_value> args);

}  // namespace backplane::core
