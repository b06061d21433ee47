// Eager reverse-mode differentiation. The tape is level 0 of the transforms. Functions throw Error.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backplane/tensor.hpp"

namespace backplane {

BACKPLANE_API bool grad_enabled() noexcept;
BACKPLANE_API bool set_grad_enabled(bool enabled) noexcept;  // of this thread; returns the old setting

BACKPLANE_API bool requires_grad(const Tensor& tensor);
BACKPLANE_API void set_requires_grad(const Tensor& tensor, bool wanted);  // leaves only; inexact dtypes only
BACKPLANE_API bool is_leaf(const Tensor& tensor);
BACKPLANE_API Tensor grad_of(const Tensor& tensor);  // empty where there is none
// Throws unless the gradient has the tensor's shape and dtype.
BACKPLANE_API void check_grad_of(const Tensor& tensor, const Tensor& grad);
// A gradient that is the tensor itself, or leads back to it, is taken without its history: it would keep both for ever.
BACKPLANE_API void set_grad_of(const Tensor& tensor, const Tensor& grad);
BACKPLANE_API Tensor detach(const Tensor& tensor);  // shares data and version counter, not history
BACKPLANE_API uint64_t version_of(const Tensor& tensor);
// Are they views of one tensor, through any number of views, or that tensor itself? Then a change of one has its
// history in the other.
BACKPLANE_API bool have_one_base(const Tensor& a, const Tensor& b);
BACKPLANE_API const char* node_name(const Tensor& tensor);  // the op that made it; "" for a leaf

struct BackwardOptions {
  bool retain_graph = false;
  bool create_graph = false;
};
// Accumulates into the leaves' grads. `cotangents`: one per root, or none at all; an empty one means ones, for
// one-element roots only.
BACKPLANE_API void backward(std::span<const Tensor> roots, std::span<const Tensor> cotangents, BackwardOptions options);
// Returns the gradients of `inputs` instead, empty where an input was not reached.
BACKPLANE_API std::vector<Tensor> gradients(std::span<const Tensor> roots, std::span<const Tensor> cotangents,
                                            std::span<const Tensor> inputs, BackwardOptions options);

// Called with the cotangent of `tensor` when it is complete; a non-empty result replaces it. Returns an id.
using Hook = std::function<Tensor(const Tensor& cotangent)>;
BACKPLANE_API uint64_t add_hook(const Tensor& tensor, Hook hook);
// False where the tensor has another history since, by an in-place change: the hook stays with the one before.
BACKPLANE_API bool remove_hook(const Tensor& tensor, uint64_t id);

// For garbage collectors: the hooks and the functions that live as long as a tensor alone.
class GraphFunction;
class OwnedVisitor {
 public:
  virtual void hook(const Hook& hook) = 0;
  // `rest`: what its backward rule gets beside tensors, or empty.
  virtual void function(const std::shared_ptr<GraphFunction>& function, const std::shared_ptr<const void>& rest) = 0;

 protected:
  ~OwnedVisitor() = default;
};
// Visits the owned objects of a tensor, if the caller holds its only reference: its own, the objects of the last
// step of its history if nothing else holds that step, and the same for its gradient. Else visits nothing.
BACKPLANE_API void visit_owned(const bp_tensor* tensor, OwnedVisitor& visitor);

BACKPLANE_API size_t bytes_per_node() noexcept;

}  // namespace backplane
