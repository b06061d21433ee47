// Batching as a level: one function call does what a loop over the rows of a batch would.
//
// A batched wrapper's inner tensor has the batch at axis 0; `enter` moves it there with a view, `leave` moves it to
// where the caller wants it. A wrapper that is not batched holds a value that is the same for all rows. How each op
// batches is read from its record at registration (batch_rules.hpp). One thread per level, as every level.
#pragma once

#include <optional>

#include "backplane/transforms.hpp"
#include "levels/level.hpp"

namespace backplane::core {

class BatchLevel final : public Level {
 public:
  // Throws for a negative size.
  BatchLevel(const char* transform, int64_t size, Randomness randomness);
  // One that was on the stack before (level.hpp).
  BatchLevel(const char* transform, uint64_t serial, int64_t rows, Randomness policy)
      : Level(transform, serial), size(rows), randomness(policy) {}
  void handle(const Call& call) override;
  std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) override;

  void check_write(const Call& call, const TensorImpl& target) override;

  Tensor enter(const Tensor& input, int32_t axis);
  Tensor enter_shared(const Tensor& input);  // the same for all rows
  Tensor leave(const Tensor& result, std::optional<int32_t> axis);

  const int64_t size;
  const Randomness randomness;

 private:
  int32_t entered_ = 0;  // for messages
  int32_t left_ = 0;
};

}  // namespace backplane::core
