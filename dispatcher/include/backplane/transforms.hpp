// Functional transforms: reverse mode, forward mode and batching, in any nesting.
//
// A scope makes its transform the innermost one of this thread until it ends. `enter` gives the tensor that the
// transformed function shall see; `leave` takes a result back out. Scopes end in the reverse order of their making, on
// their thread, also when the function throws. Tensors made inside that were not taken out with `leave` belong to the
// scope, and using one after its end is an error. All functions throw Error.
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

// From cotangents of a function's results to those of its inputs. Copies share one state. It may be called more than
// once and after its scope has ended, at whatever transforms are then active.
class BACKPLANE_API Pullback {
 public:
  Pullback() = default;
  // `cotangents`: one per result, of its shape and dtype; an empty Tensor is a zero. `keep`: it will be called again.
  // Returns one cotangent per input; zeros where no result depends on it.
  std::vector<Tensor> operator()(std::span<const Tensor> cotangents, bool keep = true) const;
  // The gradients of the only result, which has no dimensions: from a cotangent of one. It is not called again.
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
  // Only floating and complex tensors have gradients; others are refused. The order of calls is that of the cotangents.
  Tensor enter(const Tensor& input);
  // Ends the scope. The results become what they are outside; the first `n_roots` of them are what the pullback is of.
  Pullback leave(std::span<Tensor> results, size_t n_roots);

 private:
  std::unique_ptr<core::GradLevel> level_;
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

// What random ops do inside a batch: refuse, give all rows the same numbers, or each its own.
enum class Randomness : uint8_t { kError, kSame, kDifferent };

class BACKPLANE_API BatchScope {
 public:
  explicit BatchScope(int64_t size, Randomness randomness = Randomness::kError, const char* transform = "vmap");
  ~BatchScope();
  BatchScope(const BatchScope&) = delete;
  // A tensor without `axis`, along which it has the scope's size.
  Tensor enter(const Tensor& input, int32_t axis);
  // An argument that is the same for all rows: what is computed from it belongs to the batch, which may be written into
  // that. A change of the argument itself is one of the caller's tensor, and takes no value of the batch.
  Tensor enter_shared(const Tensor& input);
  // The result with the batch at `axis` of it; a value that is the same for all rows is repeated. Without an axis, the
  // value itself, which must be the same for all rows.
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
// Of the function's first result, which has no dimensions; the others are values only.
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

// For recursions that call no op: throws Error(BP_ERROR_MEMORY) where this thread's stack is nearly used up.
BACKPLANE_API void check_stack_left(const char* who);

// What a tensor inside transforms stands over, batched or not; another tensor itself.
BACKPLANE_API Tensor innermost_value(const Tensor& tensor);
// The tensor's value as one without transforms: through grad and jvp levels. Throws where it differs from row to row of
// a batch, naming `who` asks.
BACKPLANE_API Tensor plain_value(const Tensor& tensor, const char* who);
// The tensor's value as `other`, and a trace around both, see it: without the transforms that began later. Throws where
// it differs from row to row of a batch of theirs.
BACKPLANE_API Tensor value_beside(const Tensor& tensor, const Tensor& other, const char* who);
// The transforms that the tensor belongs to, innermost first; empty for a plain one.
BACKPLANE_API std::vector<const char*> transforms_of(const Tensor& tensor);
// The transform that differentiates the tensor, "grad" or "jvp", for which whatever is made of its data outside of ops
// would be a constant; nullptr where there is none.
BACKPLANE_API const char* differentiated_by(const Tensor& tensor);
// Is a transform active on this thread?
BACKPLANE_API bool transforms_active() noexcept;
// Is every call of this thread written down or handled by a transform, whatever its arguments are, so that even what is
// computed from plain tensors has no values to read?
BACKPLANE_API bool every_call_taken() noexcept;
// Inside of a function that such a transform runs, and of none within: were calls recorded where it was called? Else
// true.
BACKPLANE_API bool recorded_outside() noexcept;
// Is the tensor one of a transform (its data cannot be read directly)?
BACKPLANE_API bool is_transformed(const Tensor& tensor);

}  // namespace backplane
