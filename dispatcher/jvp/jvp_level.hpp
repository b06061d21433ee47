// Forward mode as a level: each tensor of it is a value and, where it depends on an input, its tangent.
//
// An op runs below on the values; its JVP formulas then run below on values and tangents, one addend for each argument
// that has a tangent. Nothing is kept once the call is over.
#pragma once

#include "backplane/transforms.hpp"
#include "levels/level.hpp"

namespace backplane::core {

class JvpLevel final : public Level {
 public:
  explicit JvpLevel(const char* transform) : Level(transform) {}
  JvpLevel(const char* transform, uint64_t serial) : Level(transform, serial) {}
  void handle(const Call& call) override;
  std::vector<Tensor> call_graph(const OpEntry& op, GraphFunction& function, std::span<const Tensor> args) override;
};

}  // namespace backplane::core
