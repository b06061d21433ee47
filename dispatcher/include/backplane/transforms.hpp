// Functional transforms: reverse mode, forward mode and batching, in any nesting.
//
// A scope makes its transform this thread's innermost transform until the scope ends. `enter` returns the tensor that
// the transformed function sees; `leave` takes a result back out. Scopes end in the reverse order of construction, on
// their thread, also when the function throws. A tensor made inside and not taken out with `leave` belongs to the
// scope; using it after the scope's end is an error. All functions throw Error.
//
// The functions below the scopes do the same for a whole function; `transform` names the caller in messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

namespace core {
class Level;
class GradLevel;
class JvpLevel;
class BatchLevel;
struct PullbackState;
}  // namespace core

// ---- reverse mode ----------------------------------------------------------------------------------------------

// Maps cotangents of a function's results to cotangents of its inputs. Copies share one state. It may be called more
// than once and after its scope has ended, under the transforms that are active then.
class BACKPLANE_API Pullback {
 public:
  Pullback() = default;
  // `cotangents`: one per result, of its shape and dtype; an empty Tensor is a zero. `keep`: the pullback will be
  // called again. Returns one cotangent per input; zeros if no result depends on the input.
  std::vector<Tensor> operator()(std::span<const Tensor> cotangents, bool keep = true) const;
  // The gradients of the only result, which has no dimensions, for the cotangent 1. Must be the last call.
  std::vector<Tensor> of_one() const;
  explicit operator bool() const noexcept { return state_ != nullptr; }

 private:
  friend class GradScope;
  std::shared_ptr<core::PullbackState> state_;
};

class BACKPLANE_API GradScope {
 public:
  explicit GradScope(const char* transform = "grad");
  ~GradScope();
  GradScope(const GradScope&) = delete;
  // Throws for tensors that are not floating or complex. The cotangents have the order of these calls.
  Tensor enter(const Tensor& input);
  // Ends the scope. Replaces each result by its value outside. The pullback is of the first `n_roots` results.
  Pullback leave(std::span<Tensor> results, size_t n_roots);

 private:
  std::unique_ptr<core::GradLevel> level_;
};

// A function that differentiates itself while it is traced, as code with backward() does. Inside the scope, calls of
// this thread record the history of `leaves` wherever these tensors are given, and writes into them and into other
// tensors from outside reach those. The thread is directly inside of a trace when the scope begins.
class BACKPLANE_API TapeScope {
 public:
  explicit TapeScope(std::span<const Tensor> leaves, const char* transform = "backward");
  ~TapeScope();
  TapeScope(const TapeScope&) = delete;
  // Gradients of the roots for each input, a leaf or a tensor with a history, outside of the scope; empty where no root
  // depends on it. Hooks of leaves have run. `cotangents`: one per root, of its shape and dtype; an empty one: ones,
  // for roots of one element. Throws Error for a root or an input without history, and where a tensor from outside is
  // used that requires a gradient and is not a leaf.
  std::vector<Tensor> gradients(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                std::span<const Tensor> inputs, bool retain_graph);
  // From now on the tensor is a leaf, or no longer one. Throws for a tensor with a history.
  void follow(const Tensor& tensor, bool wanted);
  // A tensor of the scope for an argument of the function, which is not a leaf. Writes reach the argument.
  Tensor inside(const Tensor& argument);
  // The tensor's value outside of the scope.
  Tensor outside(const Tensor& tensor) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// ---- forward mode ----------------------------------------------------------------------------------------------

class BACKPLANE_API JvpScope {
 public:
  explicit JvpScope(const char* transform = "jvp");
  ~JvpScope();
  JvpScope(const JvpScope&) = delete;
  // `tangent` has the primal's shape and dtype; empty: zero.
  Tensor enter(const Tensor& primal, const Tensor& tangent);
  struct Dual {
    Tensor primal;
    Tensor tangent;  // zeros where the result does not depend on an input, also for integers and bools
  };
  Dual leave(const Tensor& result);

 private:
  std::unique_ptr<core::JvpLevel> level_;
};

// ---- batching --------------------------------------------------------------------------------------------------

// Random ops inside a batch throw, give all rows the same numbers, or give each row its own numbers.
enum class Randomness : uint8_t { kError, kSame, kDifferent };

class BACKPLANE_API BatchScope {
 public:
  explicit BatchScope(int64_t size, Randomness randomness = Randomness::kError, const char* transform = "vmap");
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  // Returns the tensor without `axis`. The input has the scope's size along `axis`.
  Tensor enter(const Tensor& input, int32_t axis);
  // An argument that all rows share. Values computed from it belong to the batch and accept writes of batched values.
  // Writing to the argument changes the caller's tensor, so a batched value cannot be written to it.
  Tensor enter_shared(const Tensor& input);
  // The result with the batch at its `axis`; a value that all rows share is repeated. Without an axis, the value
  // itself, which all rows must share.
  Tensor leave(const Tensor& result, std::optional<int32_t> axis);

 private:
  std::unique_ptr<core::BatchLevel> level_;
};

// ---- whole functions -------------------------------------------------------------------------------------------

using Function = std::function<std::vector<Tensor>(std::span<const Tensor>)>;

struct ValuesAndPullback {
  std::vector<Tensor> values;
  Pullback pullback;
};
BACKPLANE_API ValuesAndPullback vjp(const Function& function, std::span<const Tensor> inputs);

struct ValuesAndGradients {
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;  // per input, of its shape and dtype
};
// Differentiates the function's first result, which has no dimensions. The other results are only returned.
BACKPLANE_API ValuesAndGradients value_and_grad(const Function& function, std::span<const Tensor> inputs);

struct ValuesAndTangents {
  std::vector<Tensor> values;
  std::vector<Tensor> tangents;
};
BACKPLANE_API ValuesAndTangents jvp(const Function& function, std::span<const Tensor> primals,
                                    std::span<const Tensor> tangents);

// Batches over axis 0 of every input; results have the batch at axis 0.
BACKPLANE_API std::vector<Tensor> vmap(const Function& function, std::span<const Tensor> inputs,
                                       Randomness randomness = Randomness::kError);

// For recursions that do not call ops: throws Error(BP_ERROR_MEMORY) if this thread's stack is nearly used up.
BACKPLANE_API void check_stack_left(const char* who);

// The innermost value of a tensor inside transforms, batched or not. For any other tensor, the tensor itself.
BACKPLANE_API Tensor innermost_value(const Tensor& tensor);
// The tensor's value without transforms, through grad and jvp levels. Throws if it differs between rows of a batch; the
// message names `who`.
BACKPLANE_API Tensor plain_value(const Tensor& tensor, const char* who);
// The tensor's value as seen by `other`, and by a trace around both: without the transforms that began later. Throws if
// it differs between rows of a batch of these transforms.
BACKPLANE_API Tensor value_beside(const Tensor& tensor, const Tensor& other, const char* who);
// The transforms that the tensor belongs to, innermost first; empty for a plain one.
BACKPLANE_API std::vector<const char*> transforms_of(const Tensor& tensor);
// The transform that differentiates the tensor, "grad" or "jvp", or nullptr. For this transform, a value made from the
// tensor's data outside of ops would be a constant.
BACKPLANE_API const char* differentiated_by(const Tensor& tensor);
// Is a transform active on this thread?
BACKPLANE_API bool transforms_active() noexcept;
// How many are, one inside of the other?
BACKPLANE_API uint32_t transform_depth() noexcept;
// Does a transform record or handle every call of this thread, for any arguments? Then even a result computed from
// plain tensors has no values to read.
BACKPLANE_API bool every_call_taken() noexcept;
// Directly inside a function that such a transform runs: were calls recorded where the transform was called? Elsewhere
// true.
BACKPLANE_API bool recorded_outside() noexcept;
// Does the tensor belong to a transform (its data cannot be read directly)?
BACKPLANE_API bool is_transformed(const Tensor& tensor);

}  // namespace backplane
