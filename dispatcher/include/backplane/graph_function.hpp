// Functions as arguments of ops: what a Graph argument holds, with the rules that its author gives to transforms.
//
// The ops `checkpoint` and `custom_function` take one. It is made with std::make_shared and has shared ownership. Its
// members may be called again, on any thread on which a transform runs, and throw Error. Tensors are passed as seen
// below the calling transform. In cotangents and tangents an empty Tensor is a zero.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backplane/op.hpp"

namespace backplane {

class BACKPLANE_API GraphFunction : public std::enable_shared_from_this<GraphFunction> {
 public:
  // What a transform may ask for beyond the function's value. kBackward: forward and backward.
  enum class Rule : uint8_t { kBackward, kJvp, kBatch };

  // What a backward pass needs: tensors, and whatever else the author keeps.
  struct Residuals {
    std::vector<Tensor> tensors;
    std::shared_ptr<const void> rest;
  };
  struct Forward {
    std::vector<Tensor> results;
    Residuals residuals;
    // Per result: no argument moves it, so that it has no history. Empty: all may be moved.
    std::vector<bool> constant = {};
    // Per argument: the results that it moves, as bits of bit(); from the cotangents of others it has none. Empty: all
    // may be moved.
    std::vector<uint64_t> moves = {};
    // Of so many results on, one bit stands for all.
    static uint64_t bit(size_t result) { return uint64_t{1} << (result < 63 ? result : 63); }
  };
  struct Duals {
    std::vector<Tensor> results;
    std::vector<Tensor> tangents;  // one per result
  };
  struct Batched {
    std::vector<Tensor> results;  // the batch at axis 0 of those that are batched
    std::vector<bool> batched;
  };

  // `recompute`: a backward pass runs the function again instead of asking for a rule; every transform goes through it.
  explicit GraphFunction(std::string name, bool recompute = false) : name_(std::move(name)), recompute_(recompute) {}
  virtual ~GraphFunction();
  GraphFunction(const GraphFunction&) = delete;
  GraphFunction& operator=(const GraphFunction&) = delete;

  const std::string& name() const noexcept { return name_; }
  bool recompute() const noexcept { return recompute_; }

  virtual bool has(Rule rule) const noexcept;
  // Are zeros among the cotangents of `backward` and the tangents of `jvp` left empty? Else it is given zeros.
  virtual bool takes_empty_zeros() const noexcept { return false; }
  virtual std::vector<Tensor> call(std::span<const Tensor> args) = 0;
  virtual Forward forward(std::span<const Tensor> args);
  // One cotangent per argument, of its shape and dtype.
  virtual std::vector<Tensor> backward(const Residuals& residuals, std::span<const Tensor> cotangents);
  virtual Duals jvp(std::span<const Tensor> primals, std::span<const Tensor> tangents);
  // Batched arguments have the batch, of `size` rows, at axis 0.
  virtual Batched batch(int64_t size, const std::vector<bool>& batched, std::span<const Tensor> args);

 private:
  std::string name_;
  bool recompute_;
};

// As an argument of an op; borrowed.
inline bp_value value(const GraphFunction& function) noexcept {
  bp_value v{};
  v.tag = BP_TAG_GRAPH;
  v.u.p = &function;
  return v;
}

// A function made of callables; an empty one is a rule that it lacks.
struct CustomRules {
  std::function<std::vector<Tensor>(std::span<const Tensor>)> call;
  std::function<GraphFunction::Forward(std::span<const Tensor>)> forward;
  std::function<std::vector<Tensor>(const GraphFunction::Residuals&, std::span<const Tensor>)> backward;
  std::function<GraphFunction::Duals(std::span<const Tensor>, std::span<const Tensor>)> jvp;
  std::function<GraphFunction::Batched(int64_t, const std::vector<bool>&, std::span<const Tensor>)> batch;
};
BACKPLANE_API std::shared_ptr<GraphFunction> make_custom_function(std::string name, CustomRules rules);
// For the op `checkpoint`.
BACKPLANE_API std::shared_ptr<GraphFunction> make_checkpoint(
    std::string name, std::function<std::vector<Tensor>(std::span<const Tensor>)> function);

// Takes `count` counters of a generator for one random call; every frontend draws random numbers this way. While a
// checkpoint recomputes on this thread, returns the counters of the first run and leaves `generator` unchanged.
BACKPLANE_API bp_generator_state reserve_random(bp_generator_state& generator, uint64_t count);
// The same for a call of an op with these arguments. Their largest element count bounds the numbers it can draw.
BACKPLANE_API bp_generator_state reserve_random(bp_generator_state& generator, OpHandle op,
                                                std::span<const bp_value> args);

}  // namespace backplane
