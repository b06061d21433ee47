// Descriptors of a product, and the algorithm for them; see products.hpp.
#include "libraries/products.hpp"

#include "backplane/abi/value.h"
#include "backplane/error.hpp"

namespace backplane::cuda {
namespace {

using cublaslt::Status;

constexpr uint64_t kMostWorkspace = uint64_t{32} << 20;  // NVIDIA's advice for Hopper ("cuBLAS Workspace")
constexpr size_t kMostPlans = 1024;

struct Types {
  bp_dtype dtype;
  int stored, compute, scale;
};
// Half floats are summed in float32, and float32 is not rounded to TF32: as everywhere in the registry.
constexpr Types kTypes[] = {{BP_FLOAT16, cublaslt::kReal16, cublaslt::kCompute32, cublaslt::kReal32},
                            {BP_BFLOAT16, cublaslt::kBrain16, cublaslt::kCompute32, cublaslt::kReal32},
                            {BP_FLOAT32, cublaslt::kReal32, cublaslt::kCompute32, cublaslt::kReal32},
                            {BP_FLOAT64, cublaslt::kReal64, cublaslt::kCompute64, cublaslt::kReal64},
                            {BP_COMPLEX64, cublaslt::kComplex32, cublaslt::kCompute32, cublaslt::kComplex32},
                            {BP_COMPLEX128, cublaslt::kComplex64, cublaslt::kCompute64, cublaslt::kComplex64}};

const Types* types_of(bp_dtype dtype) {
  for (const Types& types : kTypes)
    if (types.dtype == dtype) return &types;
  return nullptr;
}

void check_product(const cublaslt::Functions& library, Status status, const char* call) {
  if (status == cublaslt::kSuccess) [[likely]]
    return;
  ::backplane::detail::fail(status == cublaslt::kAllocFailed ? BP_ERROR_MEMORY : BP_ERROR_DEVICE, "cuda: ", call, ": ",
                            library.cublasLtGetStatusString(status));
}

template <class Descriptor, class Value>
void set(const cublaslt::Functions& library, Status (*function)(Descriptor, int, const void*, size_t),
         Descriptor descriptor, int attribute, Value value) {
  check_product(library, function(descriptor, attribute, &value, sizeof(value)), "setting an attribute");
}

}  // namespace

ProductPlan::ProductPlan(const cublaslt::Functions& library, cublaslt::Handle handle, const ProductShape& shape,
                         const void* column)
    : library_(library), handle_(handle), dtype_(shape.dtype), added_(shape.added) {
  try {
    describe(shape, column);
    choose(shape);
  } catch (...) {
    destroy();
    throw;
  }
}

ProductPlan::~ProductPlan() { destroy(); }

void ProductPlan::destroy() {
  for (const cublaslt::Layout layout : {a_, b_, d_})
    if (layout) (void)library_.cublasLtMatrixLayoutDestroy(layout);
  if (operation_) (void)library_.cublasLtMatmulDescDestroy(operation_);
}

void ProductPlan::describe(const ProductShape& shape, const void* column) {
  const Types& types = *types_of(shape.dtype);
  check_product(library_, library_.cublasLtMatmulDescCreate(&operation_, types.compute, types.scale),
                "cublasLtMatmulDescCreate");
  const auto operand = [&](const StoredMatrix& stored, int64_t rows, int64_t columns, cublaslt::Layout& made) {
    if (stored.transposed) std::swap(rows, columns);
    check_product(library_,
                  library_.cublasLtMatrixLayoutCreate(&made, types.stored, static_cast<uint64_t>(rows),
                                                      static_cast<uint64_t>(columns), stored.leading),
                  "cublasLtMatrixLayoutCreate");
    if (shape.batch == 1) return;
    const auto set_layout = library_.cublasLtMatrixLayoutSetAttribute;
    set(library_, set_layout, made, cublaslt::kLayoutBatchCount, static_cast<int32_t>(shape.batch));
    set(library_, set_layout, made, cublaslt::kLayoutBatchStride, stored.stride);
  };
  operand(shape.a, shape.rows, shape.depth, a_);
  operand(shape.b, shape.depth, shape.columns, b_);
  operand(shape.d, shape.rows, shape.columns, d_);
  const auto set_operation = library_.cublasLtMatmulDescSetAttribute;
  const auto transposition = [](const StoredMatrix& stored) {
    return static_cast<int32_t>(stored.transposed ? cublaslt::kTransposed : cublaslt::kAsStored);
  };
  set(library_, set_operation, operation_, cublaslt::kOperationTransposeA, transposition(shape.a));
  set(library_, set_operation, operation_, cublaslt::kOperationTransposeB, transposition(shape.b));
  if (shape.added != Added::kColumn) return;
  set(library_, set_operation, operation_, cublaslt::kOperationEpilogue, uint32_t{cublaslt::kEpilogueBias});
  set(library_, set_operation, operation_, cublaslt::kOperationBiasType, static_cast<int32_t>(types.stored));
  set(library_, set_operation, operation_, cublaslt::kOperationBias, column);
}

void ProductPlan::choose(const ProductShape& shape) {
  cublaslt::Preference preference = nullptr;
  check_product(library_, library_.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::unique_ptr<cublaslt::PreferenceData, Status (*)(cublaslt::Preference)> held(
      preference, library_.cublasLtMatmulPreferenceDestroy);
  const auto set_preference = library_.cublasLtMatmulPreferenceSetAttribute;
  set(library_, set_preference, preference, cublaslt::kPreferWorkspace, kMostWorkspace);
  // Sums of parts in the result's dtype would round half floats more than once.
  set(library_, set_preference, preference, cublaslt::kPreferReductions, uint32_t{cublaslt::kReduceInComputeType});
  set(library_, set_preference, preference, cublaslt::kPreferAlignmentA, shape.aligned[0]);
  set(library_, set_preference, preference, cublaslt::kPreferAlignmentB, shape.aligned[1]);
  set(library_, set_preference, preference, cublaslt::kPreferAlignmentC,
      shape.aligned[shape.added == Added::kMatrix ? 3 : 2]);
  set(library_, set_preference, preference, cublaslt::kPreferAlignmentD, shape.aligned[2]);
  int count = 0;
  const Status status =
      library_.cublasLtMatmulAlgoGetHeuristic(handle_, operation_, a_, b_, d_, d_, preference, 1, &heuristic_, &count);
  if (status != cublaslt::kNotSupported) check_product(library_, status, "cublasLtMatmulAlgoGetHeuristic");
  possible_ = status == cublaslt::kSuccess && count > 0 && heuristic_.state == cublaslt::kSuccess;
}

void ProductPlan::run(const ProductOperands& operands, void* workspace, driver::Stream stream) const {
  union Factor {
    float single[2];
    double twice[2];
  };
  const bool is_double = dtype_ == BP_FLOAT64 || dtype_ == BP_COMPLEX128;
  const Factor one = is_double ? Factor{.twice = {1, 0}} : Factor{.single = {1, 0}};
  const Factor zero = is_double ? Factor{.twice = {0, 0}} : Factor{.single = {0, 0}};
  const bool with_matrix = added_ == Added::kMatrix;
  std::unique_lock lock(mutex_, std::defer_lock);
  if (added_ == Added::kColumn) {
    lock.lock();
    set(library_, library_.cublasLtMatmulDescSetAttribute, operation_, cublaslt::kOperationBias, operands.added);
  }
  check_product(library_,
                library_.cublasLtMatmul(handle_, operation_, &one, operands.a, a_, operands.b, b_,
                                        with_matrix ? &one : &zero, with_matrix ? operands.added : operands.d, d_,
                                        operands.d, d_, &heuristic_.algorithm, workspace, heuristic_.workspace, stream),
                "cublasLtMatmul");
}

Products::Products(const cublaslt::Functions& library) : library_(library) {
  check_product(library_, library_.cublasLtCreate(&handle_), "cublasLtCreate");
}

Products::~Products() {
  plans_.clear();
  (void)library_.cublasLtDestroy(handle_);
}

bool Products::takes(bp_dtype dtype) { return types_of(dtype) != nullptr; }

std::shared_ptr<const ProductPlan> Products::plan(const ProductShape& shape, const void* added) {
  std::lock_guard lock(mutex_);
  if (const auto found = plans_.find(shape); found != plans_.end()) return found->second;
  if (plans_.size() >= kMostPlans) plans_.clear();
  return plans_[shape] = std::make_shared<const ProductPlan>(library_, handle_, shape, added);
}

}  // namespace backplane::cuda
