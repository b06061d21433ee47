// Parts of a call on a device: choosing the row, preparing operands, the kernel itself.
#pragma once

#include <memory>

#include "call/dispatch.hpp"
#include "memory/loop.hpp"
#include "record/shape_rules.hpp"

namespace backplane::core {

// Why no row took a call, for the missing-kernel error.
struct Refusals {
  std::string text;
};

// The shapes of a call's results, each inferred where it is first asked for. Lives as long as the call.
class ResultShapes {
 public:
  explicit ResultShapes(const Call& call) : call_(call) {}
  ResultShapes(const ResultShapes&) = delete;
  const ShapeResult& of(int32_t result) {
    if (result > 0 && !others_) others_.reset(new ShapeResult[static_cast<size_t>(call_.n_outs - 1)]);
    ShapeResult& shape = result == 0 ? first_ : others_[static_cast<size_t>(result - 1)];
    if (!(known_ >> result & 1)) {
      infer_shape(*call_.op.record, call_.args, call_.n_args, result, shape);
      known_ |= 1u << result;
    }
    return shape;
  }
  // Throws where the op's shape rule refuses the arguments; of a rule that depends on values, nothing is asked.
  void check() {
    if (call_.op.flags & BP_OP_DYNAMIC) return;
    for (int32_t i = 0; i < call_.n_outs; ++i) of(i);
  }

 private:
  const Call& call_;
  uint32_t known_ = 0;
  ShapeResult first_;  // a kilobyte: the others are not on the stack
  std::unique_ptr<ShapeResult[]> others_;
};

// The best row that takes the call, or nullptr. `why` (may be null) collects the reasons of those that do not.
const KernelRow* pick_row(const Call& call, const Device& device, bp_dtype compute, ResultShapes& shapes,
                          Refusals* why);

// Owns the temporaries of one call.
class Temporaries {
 public:
  Temporaries() = default;
  Temporaries(const Temporaries&) = delete;
  ~Temporaries() {
    for (int i = 0; i < count_; ++i) release(held_[i]);
    for (TensorImpl* t : more_) release(t);
  }
  TensorImpl* keep(TensorImpl* t) {
    if (count_ < kInline)
      held_[count_++] = t;
    else
      more_.push_back(t);
    return t;
  }

 private:
  static constexpr int kInline = 8;
  int count_ = 0;
  TensorImpl* held_[kInline];
  std::vector<TensorImpl*> more_;
};

// A tensor in the form that a row asks for: dtype, layout, alignment. Returns `t` itself where it fits.
TensorImpl* prepare_tensor(TensorImpl* t, const KernelRow& row, Device& device, bool in_compute, bp_dtype compute,
                           Temporaries& temporaries);
// The number as a tensor without axes; the caller owns it.
TensorImpl* tensor_of_number(const bp_value& number, bp_dtype dtype, const Device& device, uint64_t mask);
// A number in a tensor position: in the compute dtype's kind for rows that take immediates, else a tensor.
bp_value prepare_number(const bp_value& number, const KernelRow& row, Device& device, bp_dtype compute,
                        double (&complex_storage)[2], Temporaries& temporaries);

// The compute dtype, or a result's, in which the device does not compute; BP_DTYPE_NONE: there is none.
bp_dtype lacked_dtype(const Call& call, const Device& device, bp_dtype compute);

void call_view(const Call& call);  // view_call.cpp
// Runs the call on the host's device with copied operands and brings the results back.
void call_host_fallback(const Call& call, Device& device);  // host_fallback.cpp
[[noreturn]] void throw_missing_kernel(const Call& call, Device& device, bp_dtype compute, const Refusals& why);

// As call_decomposition, which asks the op's shape rule should this fail. decomposition.cpp.
void decompose_checked(const Call& call);
// The device of a call: that of its tensors, which must agree; else of a Device argument; else the default.
Device& device_of_call(const Call& call);
inline Device& device_of(const TensorImpl& t) {
  return t.storage ? *t.storage->device : device_at({t.backend, t.ordinal});
}

// Has the output that the caller gave the result's shape, a dtype that holds it, and writable memory on the device?
void check_given(const OpEntry& op, const TensorImpl& target, const ShapeResult& shape, bp_dtype dtype, Device& device);

// The results of a row with BP_KERNEL_OWN_RESULTS: what the rules say of them before the kernel runs, against what it
// stores; own_results.cpp.
class OwnResults {
 public:
  // Throws for an unfit output of the caller's.
  OwnResults(const Call& call, Device& device, bp_dtype compute, ResultShapes& shapes);
  void check(const bp_value* outs) const;

 private:
  struct Expected {
    const ShapeResult* shape = nullptr;
    bp_dtype dtype = BP_DTYPE_NONE;  // NONE: the kernel decides
  };
  void check_tensor(int32_t i, const bp_value& found) const;
  const Call& call_;
  Device& device_;
  std::vector<Expected> expected_;
};

// What a decomposition gave against the op's rules.
void check_decomposed(const Call& call, const bp_value* results);

// Before a write into a tensor that the caller gave. Throws for read-only and self-overlapping ones.
void check_writable(const OpEntry& op, const TensorImpl& target);

}  // namespace backplane::core
