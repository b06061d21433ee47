// Stacks of matrices between tensors, where they lie by rows, and cuSOLVER, which takes columns. A matrix by rows is
// its transpose by columns, so that kernels choose routines with few copies.
#pragma once

#include <optional>

#include "kernels/call.hpp"
#include "libraries/factorizations.hpp"

namespace backplane::cuda {

constexpr bp_dtype_mask kSolverTypes =
    BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64) | BP_DTYPE_BIT(BP_COMPLEX64) | BP_DTYPE_BIT(BP_COMPLEX128);

struct Stack {
  std::vector<int64_t> shape;  // of the stack
  int64_t count = 1, rows, columns;

  Stack(const Call& call, const bp_tensor& x);  // refuses what has no matrices
  void require_square(const Call& call) const;
  int64_t size() const { return rows * columns; }
};

// The matrices of one tensor: contiguous copies of them, the library's routines over them, and the fault of each.
// Holds the library's handle once `solver` was asked for.
class Factoring {
 public:
  explicit Factoring(const Call& call, const bp_tensor& x);

  const Call& call() const { return call_; }
  const Stack& stack() const { return stack_; }
  int64_t item() const { return item_; }
  Factorizing& solver();

  char* elements(int64_t count) const { return call_.aligned_scratch(static_cast<uint64_t>(count * item_)); }
  int32_t* infos() const;   // for each matrix; 0 at first
  int64_t* pivots() const;  // of square matrices

  // x as it lies; each matrix by columns. `between`: how many of them are adjacent, by default all.
  char* by_rows() const;
  char* by_columns(int64_t between = 0) const;
  // The result by rows from matrices by columns, of `leading` elements from column to column.
  void store(const bp_tensor& out, char* by_columns, int64_t leading, int64_t matrix) const;

  // A kernel of the module over all elements of call.out; the steps of x are those of matrices by rows unless given.
  Matrices matrices(char* out, const char* x, int64_t rows, int64_t columns) const;
  void launch(const char* kernel, const Matrices& matrices) const;
  template <class Arguments>
  void launch(const char* kernel, Grid grid, const Arguments& arguments) const {
    call_.launch(module_, kernel, grid, arguments);
  }
  // Raises where a matrix's info is above 0, once the work has come there.
  void report(const int32_t* infos, DataFault fault) const;

 private:
  const Call& call_;
  const Stack stack_;
  const int64_t item_;
  const std::string module_;
  std::optional<Factorizing> solver_;
};

// Declines calls that the host's kernel computes instead: all without the library, and stacks of many small
// matrices.
bp_status BP_CALL takes_matrices(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                                 int32_t n_outs);

}  // namespace backplane::cuda
