// A call of an op in the terms of the provider: what moves, and what the other ranks compare. Half floats reduce in
// float32; data that only moves moves as bytes.
#pragma once

#include <string_view>
#include <vector>

#include "backplane/plugin/kernel.hpp"
#include "world.hpp"

namespace backplane::collectives {

struct Call {
  Call(plugin::Context call, uint32_t kind, std::string_view group, std::string_view site);

  // The tensor whose dtype and shape the ranks compare.
  void compares(const bp_tensor& tensor);
  void peer(int64_t place, const char* argument);
  bool is_peer() const { return members.place == request.call.peer; }
  void divides(int64_t n) const;
  void reduction(std::string_view op, bp_dtype dtype);
  void move(const void* in, void* out, uint64_t bytes);
  // `n_in`, `n_out`: elements of this rank's operand and result; n_out is 0 where it gets none. `count`: of one block.
  void reduce(const void* in, void* out, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype);
  // The same two in the background, with a copy of `in`: the number of the call. `bytes`: of one rank's block.
  int64_t begin_move(const void* in, uint64_t n_in, uint64_t n_out, uint64_t bytes);
  int64_t begin_reduce(const void* in, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype);

  const bp_host* host;
  World& world;
  Group& members;
  Request request;
  bool mean = false;

 private:
  std::vector<float> operand(const void* in, uint64_t n, bp_dtype dtype);
};

}  // namespace backplane::collectives
