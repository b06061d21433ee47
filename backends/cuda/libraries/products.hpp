// Products of matrices by cuBLASLt on one device: descriptors and the library's choice of algorithm, kept by shape.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <memory>
#include <mutex>

#include "backplane/abi/base.h"
#include "libraries/cublaslt.hpp"

namespace backplane::cuda {

// An operand in columns, `leading` elements apart; transposed: memory holds its transpose. Matrices of a batch are
// `stride` elements apart.
struct StoredMatrix {
  bool transposed = false;
  int64_t leading = 1;
  int64_t stride = 0;
  auto operator<=>(const StoredMatrix&) const = default;
};

// The addend of a product: a column for each of its columns, the same for all of a batch; or a matrix that lies as d
// does, and may be d.
enum class Added : uint8_t { kNothing, kColumn, kMatrix };

// d (rows x columns) = a (rows x depth) b (depth x columns) plus the addend, `batch` times. `aligned`: bytes, up
// to 256, that divides the addresses of a, b, d and the addend.
struct ProductShape {
  bp_dtype dtype = 0;
  int64_t rows = 0, columns = 0, depth = 0, batch = 1;
  StoredMatrix a, b, d;
  Added added = Added::kNothing;
  std::array<uint32_t, 4> aligned{};
  auto operator<=>(const ProductShape&) const = default;
};

struct ProductOperands {
  const void *a, *b;
  void* d;
  const void* added;  // nullptr: nothing is
};

class ProductPlan {
 public:
  // The library looks at the address of a column that is added when it chooses.
  ProductPlan(const cublaslt::Functions& library, cublaslt::Handle handle, const ProductShape& shape,
              const void* column);
  ~ProductPlan();
  ProductPlan(const ProductPlan&) = delete;
  bool possible() const { return possible_; }  // false: the library has no algorithm for it
  size_t workspace() const { return heuristic_.workspace; }
  // Records the product; `workspace` is a multiple of 256.
  void run(const ProductOperands& operands, void* workspace, driver::Stream stream) const;

 private:
  void describe(const ProductShape& shape, const void* column);
  void choose(const ProductShape& shape);
  void destroy();

  const cublaslt::Functions& library_;
  cublaslt::Handle handle_;
  bp_dtype dtype_;
  Added added_;
  mutable std::mutex mutex_;  // of a descriptor that holds the address of what one call adds
  cublaslt::Operation operation_ = nullptr;
  cublaslt::Layout a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublaslt::Heuristic heuristic_{};
  bool possible_ = false;
};

// Any thread; the device's context is the thread's current one.
class Products {
 public:
  explicit Products(const cublaslt::Functions& library);
  ~Products();
  Products(const Products&) = delete;
  static bool takes(bp_dtype dtype);
  std::shared_ptr<const ProductPlan> plan(const ProductShape& shape, const void* added);

 private:
  const cublaslt::Functions& library_;
  cublaslt::Handle handle_ = nullptr;
  std::mutex mutex_;  // guards plans_
  std::map<ProductShape, std::shared_ptr<const ProductPlan>> plans_;
};

}  // namespace backplane::cuda
