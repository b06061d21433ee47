// From strides to what cuBLASLt takes: matrices whose columns or rows lie side by side, a batch of them one stride
// apart. Nothing is copied: a view that is neither goes to the backend's own kernel.
#include "kernels/library_matmul.hpp"

#include <climits>
#include <optional>

namespace backplane::cuda {
namespace {

// Batches without a single stride become a call for each position of the others; more of these than this keep the
// host busier than the device.
constexpr int64_t kMostCalls = 64;

// If the library adds a column, the addend is aligned to this multiple: more than the library is known to need.
constexpr uint32_t kColumnAlignment = 16;

int64_t BatchDimension::*const kStrides[] = {&BatchDimension::x, &BatchDimension::y, &BatchDimension::out,
                                             &BatchDimension::added};

bool goes_backward(const BatchDimension& dimension) { return dimension.x < 0 || dimension.y < 0 || dimension.out < 0; }

// A matrix in columns, or in rows, which are the columns of its transpose.
std::optional<StoredMatrix> stored(int64_t rows, int64_t columns, MatrixStrides strides) {
  if ((strides.row == 1 || rows == 1) && (strides.column >= rows || columns == 1))
    return StoredMatrix{false, columns == 1 ? rows : strides.column};
  if ((strides.column == 1 || columns == 1) && (strides.row >= columns || rows == 1))
    return StoredMatrix{true, rows == 1 ? columns : strides.row};
  return std::nullopt;
}

// Neighbouring dimensions become one where the outer one's step is the inner one's length, in all four.
void merge(std::vector<BatchDimension>& batch) {
  std::vector<BatchDimension> merged;
  for (const BatchDimension& inner : batch) {
    if (inner.size == 1) continue;
    const bool joins = !merged.empty() && std::all_of(std::begin(kStrides), std::end(kStrides), [&](auto stride) {
      return merged.back().*stride == inner.*stride * inner.size;
    });
    if (joins)
      merged.back() = {merged.back().size * inner.size, inner.x, inner.y, inner.out, inner.added};
    else
      merged.push_back(inner);
  }
  batch = std::move(merged);
}

// A batch of left operands with one right operand is a taller left operand, where its rows go on from matrix to matrix.
void fold_rows(BatchedProduct& product) {
  if (product.batch.empty()) return;
  const BatchDimension& inner = product.batch.back();
  const auto goes_on = [&](MatrixStrides strides, int64_t step) {
    return product.rows == 1 || step == product.rows * strides.row;
  };
  if (inner.y != 0 || !goes_on(product.x, inner.x) || !goes_on(product.out, inner.out) ||
      !goes_on(product.added, inner.added))
    return;
  if (product.rows == 1) product.x.row = inner.x, product.out.row = inner.out, product.added.row = inner.added;
  product.rows *= inner.size;
  product.batch.pop_back();
}

// The product as the library takes it; `swapped`: the transpose of it, whose operands have changed places.
struct Arranged {
  ProductShape shape;
  bool swapped;
};

std::optional<Arranged> arrange(const BatchedProduct& product, bp_dtype dtype) {
  const auto transposed = [](MatrixStrides strides) { return MatrixStrides{strides.column, strides.row}; };
  for (const bool swapped : {true, false}) {  // results mostly lie in rows
    const int64_t rows = swapped ? product.columns : product.rows, columns = swapped ? product.rows : product.columns;
    const auto a = stored(rows, product.depth, swapped ? transposed(product.y) : product.x);
    const auto b = stored(product.depth, columns, swapped ? transposed(product.x) : product.y);
    const auto d = stored(rows, columns, swapped ? transposed(product.out) : product.out);
    if (!a || !b) return std::nullopt;
    if (!d || d->transposed) continue;
    return Arranged{{dtype, rows, columns, product.depth, 1, *a, *b, *d, {}}, swapped};
  }
  return std::nullopt;
}

bool sizes_fit(const ProductShape& shape) {
  return std::max({shape.rows, shape.columns, shape.depth, shape.batch, shape.a.leading, shape.b.leading,
                   shape.d.leading}) <= INT_MAX;
}

uint32_t alignment_of(const void* at) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  return address == 0 ? 256 : static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), 256));
}

struct Addresses {
  const char *a, *b;
  char* d;
  const char* added;
};

// The addresses of every position of the dimensions but the one that is the batch's stride.
std::vector<Addresses> each_call(const Addresses& first, std::span<const BatchDimension> others, int64_t item) {
  std::vector<Addresses> made{first};
  for (const BatchDimension& dimension : others) {
    std::vector<Addresses> next;
    for (const Addresses& at : made)
      for (int64_t k = 0; k < dimension.size; ++k)
        next.push_back({at.a + k * dimension.x * item, at.b + k * dimension.y * item, at.d + k * dimension.out * item,
                        at.added + k * dimension.added * item});
    made = std::move(next);
  }
  return made;
}

// Is the addend a column that the library can add to all matrices?
bool is_column(const BatchedProduct& product, bool swapped, const char* added) {
  const bool shared = std::all_of(product.batch.begin(), product.batch.end(),
                                  [](const BatchDimension& dimension) { return dimension.added == 0; });
  const auto [row, column] = product.added;
  return shared && swapped && (row == 0 || product.rows == 1) && (column == 1 || product.columns == 1) &&
         reinterpret_cast<uintptr_t>(added) % kColumnAlignment == 0;
}

bool lies_as_result(const BatchedProduct& product) {
  const bool batch = std::all_of(product.batch.begin(), product.batch.end(),
                                 [](const BatchDimension& dimension) { return dimension.added == dimension.out; });
  return batch && (product.added.row == product.out.row || product.rows == 1) &&
         (product.added.column == product.out.column || product.columns == 1);
}

struct PlannedCall {
  Addresses at;
  std::shared_ptr<const ProductPlan> plan;
};

// Empty if the library has no algorithm for a call.
std::vector<PlannedCall> plan_calls(Products& library, ProductShape shape, const std::vector<Addresses>& calls) {
  std::vector<PlannedCall> planned;
  for (const Addresses& at : calls) {
    shape.aligned = {alignment_of(at.a), alignment_of(at.b), alignment_of(at.d), alignment_of(at.added)};
    planned.push_back({at, library.plan(shape, at.added)});
    if (!planned.back().plan->possible()) return {};
  }
  return planned;
}

}  // namespace

bool library_matmul(const Call& call, BatchedProduct product, const char* added, const std::function<void()>& copy) {
  const bp_dtype dtype = call.compute();
  // A product of depth 0 is a fill, which the library's descriptors cannot say.
  if (!Products::takes(dtype) || product.depth == 0) return false;
  merge(product.batch);
  BatchedProduct folded = product;
  fold_rows(folded);
  std::optional<Arranged> arranged = arrange(folded, dtype);
  if (arranged)
    product = std::move(folded);
  else if (arranged = arrange(product, dtype); !arranged)
    return false;
  auto& [shape, swapped] = *arranged;
  // The largest dimension is the batch's stride; the library writes no element twice.
  std::stable_sort(product.batch.begin(), product.batch.end(),
                   [](const auto& one, const auto& other) { return one.size > other.size; });
  const bool column = added && is_column(product, swapped, added), in_place = added && lies_as_result(product);
  for (BatchDimension& dimension : product.batch)
    if (swapped) std::swap(dimension.x, dimension.y);
  std::span<const BatchDimension> others = product.batch;
  if (!others.empty()) {
    if (goes_backward(others[0])) return false;
    shape.batch = others[0].size;
    shape.a.stride = others[0].x, shape.b.stride = others[0].y, shape.d.stride = others[0].out;
    others = others.subspan(1);
  }
  int64_t calls = 1;
  for (const BatchDimension& dimension : others) calls *= dimension.size;
  if (calls > kMostCalls || !sizes_fit(shape)) return false;
  Products* library = call.libraries().products();
  if (!library) return false;

  const char *x = data_of(call.input(0)), *y = data_of(call.input(1));
  const std::vector<Addresses> each =
      each_call({swapped ? y : x, swapped ? x : y, data_of(call.output()), added}, others, item_of(call.output()));
  std::vector<PlannedCall> planned;
  if (column) shape.added = Added::kColumn, planned = plan_calls(*library, shape, each);
  if (planned.empty()) {
    std::vector<Addresses> matrices = each;
    for (Addresses& at : matrices)
      if (added && !in_place) at.added = at.d;
    shape.added = added ? Added::kMatrix : Added::kNothing;
    planned = plan_calls(*library, shape, matrices);
    if (planned.empty()) return false;
    if (added && !in_place) copy();
  }
  size_t workspace = 0;
  for (const PlannedCall& one : planned) workspace = std::max(workspace, one.plan->workspace());
  // The calls follow each other on the stream, and share it.
  char* memory = call.aligned_scratch(workspace);
  for (const auto& [at, plan] : planned) plan->run({at.a, at.b, at.d, at.added}, memory, call.stream());
  return true;
}

}  // namespace backplane::cuda
