// A call with batched arguments, as the batch rules see and change it: `args` are the arguments below the level, the
// batch of the batched ones at axis 0; `call.args` are the same for one row, with the shapes of one row.
//
// Lives on the stack of one call, and owns the temporaries of a rule. Rules run with the thread's stack below the
// level. A rule changes `args` (`batched` does not change) and ends with `run` or with results of its own.
#pragma once

#include "batch/batch_level.hpp"
#include "call/dispatch.hpp"
#include "call/formulas/temporaries.hpp"
#include "record/builtins.hpp"
#include "record/mapped_value.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

class BatchedCall {
 public:
  BatchedCall(const BatchLevel& level, const Call& call);
  BatchedCall(const BatchedCall&) = delete;

  const BatchLevel& level;
  const Call& call;
  const OpRecord& record;
  bp_value args[kMaxArgs];
  bool batched[kMaxArgs];  // per argument; of a list: some element is
  bool any = false;

  int64_t size() const { return level.size; }
  bool is_tensor(int32_t i) const { return call.args[i].tag == BP_TAG_TENSOR; }
  // Of one row.
  const DLTensor& row(int32_t i) const { return call.args[i].u.t->dl; }
  TensorImpl* inner(int32_t i) const { return impl(args[i].u.t); }
  // The shape of result `index` of one row, by the op's rule; throws what the call on one row would.
  void infer_row(int32_t index, ShapeResult& shape) const;

  // Memory for an int list or a value list, until the call ends.
  int64_t* ints(size_t count) { return arena_.array<int64_t>(count); }
  void set_ints(int32_t arg, const int64_t* list, size_t count);

  // New tensors below the level, released when the call ends.
  TensorImpl* reshape(TensorImpl* x, const int64_t* shape, size_t ndim);
  TensorImpl* expand(TensorImpl* x, const int64_t* shape, size_t ndim);
  TensorImpl* permute(TensorImpl* x, const int64_t* axes, size_t ndim);
  void set_tensor(int32_t arg, TensorImpl* x) { args[arg].u.t = x; }

  // The batched tensor with axes of size 1 after the batch, up to `rank` per row.
  TensorImpl* padded(TensorImpl* x, int32_t rank);
  // The tensor repeated for every row, with the batch at axis 0.
  TensorImpl* repeated(TensorImpl* x);
  // Every element of a list argument batched.
  void batch_list(int32_t arg);

  // The op below, on `args`: its results are plain tensors of the level below in the call's out slots.
  void run() { dispatch({call.op, args, call.n_args, call.outs, call.n_outs, call.mask}); }
  // Reshapes a result that `run` gave.
  void reshape_result(int32_t index, const int64_t* shape, size_t ndim);

 private:
  Temporaries made_;
  TensorLists lists_;
  ValueArena arena_;
};

}  // namespace backplane::core
