// Operands of attention: matrices of rows of features over batch dims that broadcast.
#pragma once

#include "kernels/attention_arguments.hpp"
#include "kernels/families.hpp"

namespace backplane::cuda {

constexpr int64_t kPiece = 8,
                  kMostFeatures = 128;  // of half floats that tensor cores take: in one access, and in a row

// A tensor whose last `cores` axes are a matrix or a line of it. Strides in elements.
struct Stack {
  char* data;
  std::vector<int64_t> shape, strides;
  size_t cores;

  // Axes that the tensor lacks have one element.
  Stack(const bp_tensor& tensor, size_t made_cores);

  int64_t size(size_t core) const { return shape[shape.size() - cores + core]; }
  int64_t stride(size_t core) const { return strides[shape.size() - cores + core]; }
  // Over the axes of `batch`.
  std::vector<int64_t> batch_strides(std::span<const int64_t> batch) const;
  // As tensor cores take rows of half floats: whole pieces. Addresses of rows that are not there are made, too.
  bool is_ready() const;
  // A stack of its shape in new memory, row behind row.
  Stack made_ready(const Call& call) const;
};

// Refuses an operand without these sizes, or whose batch dims do not broadcast to `batch`. A mask's sizes may be 1.
void check_operand(const Call& call, const char* name, const Stack& operand, std::span<const int64_t> batch,
                   std::vector<int64_t> sizes, bool is_mask = false);
// Refuses query, key and value that do not belong together.
void check_inputs(const Call& call, std::span<const int64_t> batch);

// Copies half floats.
void move_rows(const Call& call, const Stack& to, const Stack& from);
// Argument `arg`, of half floats, ready.
Stack ready_rows(const Call& call, size_t arg);
// The factor of scores, given or by the number of features.
double scale_of(const bp_value& scale, int64_t features);
// Whether tensor cores take rows of the first three arguments.
bool fits_tensor_cores(const Call& call);

// By tiles.
void tiled_attention(const Call& call);
void tiled_attention_grad(const Call& call);

}  // namespace backplane::cuda
