// A stand-in for cuBLASLt: products computed from the descriptors that are given, on the emulated device's memory, in
// the order of its streams. What the library's manual forbids is refused by name, as a status and on standard error; an
// algorithm is good for the very descriptors and alignments that it was chosen for.
#include "libraries/cublaslt.hpp"

#include <atomic>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "elements.hpp"
#include "services.hpp"

using namespace backplane::cuda;
using namespace backplane::cuda::cublaslt;

struct cublasLtContext {};

namespace backplane::cuda::cublaslt {

struct LayoutData {
  int type;
  uint64_t rows, columns;
  int64_t leading;
  int32_t batch = 1;
  int64_t stride = 0;
  bool operator==(const LayoutData&) const = default;
};
struct OperationData {
  int compute, scale;
  int32_t transposed[2] = {kAsStored, kAsStored};
  uint32_t epilogue = 1;   // none
  int32_t bias_type = -1;  // D's
  const char* bias = nullptr;
};
struct PreferenceData {
  uint64_t workspace = 0;
  uint32_t reductions = 7;
  uint32_t aligned[4] = {256, 256, 256, 256};
};

}  // namespace backplane::cuda::cublaslt

namespace {

constexpr uint64_t kAlgorithmMark = 0x62b1a5c0de;
std::atomic<uint64_t> products{0}, biased{0};

Status refuse(Status status, const std::string& what) {
  std::fprintf(stderr, "emulated cuBLASLt: %s\n", what.c_str());
  return status;
}

// What an algorithm is bound to; it lies in the caller's 64 bytes.
struct Chosen {
  uint64_t mark;
  uint64_t descriptors;
  uint64_t workspace;
  uint32_t aligned[4];
};
static_assert(sizeof(Chosen) <= sizeof(Algorithm));

template <class... Values>
uint64_t digest(const Values&... values) {
  uint64_t sum = 14695981039346656037u;  // FNV-1a
  const auto add = [&](uint64_t value) {
    for (int k = 0; k < 64; k += 8) sum = (sum ^ (value >> k & 255)) * 1099511628211u;
  };
  (add(static_cast<uint64_t>(values)), ...);
  return sum;
}

uint64_t digest(const LayoutData& l) { return digest(l.type, l.rows, l.columns, l.leading, l.batch, l.stride); }

uint64_t digest_of(const OperationData& o, Layout a, Layout b, Layout c, Layout d) {
  return digest(o.compute, o.scale, o.transposed[0], o.transposed[1], o.epilogue, o.bias_type, digest(*a), digest(*b),
                digest(*c), digest(*d));
}

bool supported(const OperationData& operation, int type) {
  switch (type) {
    case kReal16:
    case kBrain16:
    case kReal32:
      return operation.compute == kCompute32 && operation.scale == kReal32;
    case kReal64:
      return operation.compute == kCompute64 && operation.scale == kReal64;
    case kComplex32:
      return operation.compute == kCompute32 && operation.scale == kComplex32;
    case kComplex64:
      return operation.compute == kCompute64 && operation.scale == kComplex64;
    default:
      return false;
  }
}

Status check_layout(const LayoutData& layout, const char* name) {
  if (layout.rows == 0 || layout.columns == 0 || layout.rows > INT32_MAX || layout.columns > INT32_MAX)
    return refuse(kInvalidValue, std::string(name) + " has no rows or columns, or more than an int32 holds");
  if (layout.leading < static_cast<int64_t>(layout.rows))
    return refuse(kInvalidValue, std::string(name) + " has the leading dimension " + std::to_string(layout.leading) +
                                     ", fewer than its " + std::to_string(layout.rows) + " rows");
  if (layout.batch < 1 || layout.stride < 0) return refuse(kInvalidValue, std::string(name) + " has a bad batch");
  return kSuccess;
}

Status check_product(const OperationData& operation, const LayoutData& a, const LayoutData& b, const LayoutData& c,
                     const LayoutData& d) {
  for (const auto& [layout, name] : {std::pair(&a, "A"), std::pair(&b, "B"), std::pair(&c, "C"), std::pair(&d, "D")})
    if (const Status status = check_layout(*layout, name)) return status;
  if (a.type != b.type || a.type != d.type || c.type != d.type || !supported(operation, a.type))
    return refuse(kNotSupported, "the types of operands, computation and scale do not go together");
  const auto side = [&](const LayoutData& layout, int which, bool rows) {
    return (operation.transposed[which] == kTransposed) == rows ? layout.columns : layout.rows;
  };
  if (side(a, 0, true) != d.rows || side(b, 1, false) != d.columns || side(a, 0, false) != side(b, 1, true))
    return refuse(kInvalidValue, "the sizes of A, B and D do not go together");
  if (!(c == d)) return refuse(kInvalidValue, "C is not laid out as D");
  if (a.batch != d.batch || b.batch != d.batch) return refuse(kInvalidValue, "the batches of A, B and D differ");
  if (d.batch > 1 && d.stride == 0) return refuse(kInvalidValue, "every matrix of the batch goes to the same D");
  if (operation.epilogue != kEpilogueBias) return kSuccess;
  if (d.type == kComplex32 || d.type == kComplex64) return kNotSupported;
  if (operation.bias_type != -1 && operation.bias_type != d.type)
    return refuse(kNotSupported, "the bias has another type than D");
  if (!operation.bias) return refuse(kInvalidValue, "the epilogue adds a bias, and there is none");
  return kSuccess;
}

struct Product {
  OperationData operation;
  LayoutData a, b, d;
  const char *a_data, *b_data, *c_data;  // c_data: nullptr where beta is 0
  char *d_data, *workspace;
  uint64_t workspace_bytes;
};

// The operand's element at (row, column) of op(M).
template <class T>
auto element(const LayoutData& layout, const char* data, bool transposed, int64_t batch, uint64_t row,
             uint64_t column) {
  if (transposed) std::swap(row, column);
  const int64_t at = batch * layout.stride + static_cast<int64_t>(column) * layout.leading + static_cast<int64_t>(row);
  return emulator::load<T>(data + at * static_cast<int64_t>(sizeof(T)));
}

template <class T>
void multiply(const Product& call) {
  using Sum = typename emulator::Element<T>::Sum;
  const bool a_transposed = call.operation.transposed[0] == kTransposed;
  const bool b_transposed = call.operation.transposed[1] == kTransposed;
  const uint64_t depth = a_transposed ? call.a.rows : call.a.columns;
  for (int64_t batch = 0; batch < call.d.batch; ++batch)
    for (uint64_t column = 0; column < call.d.columns; ++column)
      for (uint64_t row = 0; row < call.d.rows; ++row) {
        Sum sum{};
        for (uint64_t k = 0; k < depth; ++k)
          sum += Sum(element<T>(call.a, call.a_data, a_transposed, batch, row, k)) *
                 Sum(element<T>(call.b, call.b_data, b_transposed, batch, k, column));
        if (call.c_data) sum += Sum(element<T>(call.d, call.c_data, false, batch, row, column));
        if (call.operation.epilogue == kEpilogueBias)  // of each row, the same in all matrices
          sum += Sum(emulator::load<T>(call.operation.bias + row * sizeof(T)));
        const int64_t at =
            batch * call.d.stride + static_cast<int64_t>(column) * call.d.leading + static_cast<int64_t>(row);
        emulator::store<T>(call.d_data + at * static_cast<int64_t>(sizeof(T)), sum);
      }
}

void run(const Product& call) {
  if (call.workspace_bytes > 0)  // what was there before is lost
    std::memset(emulator::writable(call.workspace, call.workspace_bytes), 0xA5, call.workspace_bytes);
  switch (call.a.type) {
    case kReal16:
      return multiply<emulator::Half>(call);
    case kBrain16:
      return multiply<emulator::Brain>(call);
    case kReal32:
      return multiply<float>(call);
    case kReal64:
      return multiply<double>(call);
    case kComplex32:
      return multiply<std::complex<float>>(call);
    default:
      return multiply<std::complex<double>>(call);
  }
}

template <class Value>
Status take(Value& where, const void* value, size_t bytes, const char* name) {
  if (bytes != sizeof(Value)) return refuse(kInvalidValue, std::string(name) + " has another size");
  std::memcpy(&where, value, bytes);
  return kSuccess;
}

bool is_number(const void* at, int scale, double expected) {
  if (scale == kReal32 || scale == kComplex32) {
    const auto* value = static_cast<const float*>(at);
    return value[0] == static_cast<float>(expected) && (scale == kReal32 || value[1] == 0);
  }
  const auto* value = static_cast<const double*>(at);
  return value[0] == expected && (scale == kReal64 || value[1] == 0);
}

bool is_aligned(const void* at, uint64_t bytes) { return reinterpret_cast<uint64_t>(at) % bytes == 0; }

}  // namespace

// The stand-in has what the plugin asks for, with the plugin's declarations.
extern "C" {
#define BP_DECLARE(result, name, parameters) __attribute__((visibility("default"))) result name parameters;
BP_CUBLASLT(BP_DECLARE)
#undef BP_DECLARE
// How many products were recorded, and how many of them with a bias: what a test asks, to see that a call came here.
__attribute__((visibility("default"))) uint64_t emulated_cublaslt_products(void) { return products; }
__attribute__((visibility("default"))) uint64_t emulated_cublaslt_biased_products(void) { return biased; }

Status cublasLtCreate(Handle* handle) {
  *handle = new cublasLtContext();
  return kSuccess;
}
Status cublasLtDestroy(Handle handle) {
  delete handle;
  return kSuccess;
}
const char* cublasLtGetStatusString(Status status) {
  return status == kInvalidValue ? "an invalid value (emulated)" : "a failure (emulated)";
}
size_t cublasLtGetVersion(void) { return 130002; }

Status cublasLtMatrixLayoutCreate(Layout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
  *layout = new LayoutData{type, rows, columns, leading};
  return kSuccess;
}
Status cublasLtMatrixLayoutDestroy(Layout layout) {
  delete layout;
  return kSuccess;
}
Status cublasLtMatrixLayoutSetAttribute(Layout layout, int attribute, const void* value, size_t bytes) {
  if (attribute == kLayoutBatchCount) return take(layout->batch, value, bytes, "a batch count");
  if (attribute == kLayoutBatchStride) return take(layout->stride, value, bytes, "a batch stride");
  return refuse(kNotSupported, "a layout's attribute " + std::to_string(attribute));
}

Status cublasLtMatmulDescCreate(Operation* operation, int compute, int scale) {
  *operation = new OperationData{compute, scale};
  return kSuccess;
}
Status cublasLtMatmulDescDestroy(Operation operation) {
  delete operation;
  return kSuccess;
}
Status cublasLtMatmulDescSetAttribute(Operation operation, int attribute, const void* value, size_t bytes) {
  if (attribute == kOperationBias) return take(operation->bias, value, bytes, "a bias's address");
  if (attribute == kOperationBiasType) return take(operation->bias_type, value, bytes, "a bias's type");
  if (attribute == kOperationEpilogue) {
    const Status status = take(operation->epilogue, value, bytes, "an epilogue");
    return status == kSuccess && operation->epilogue != kEpilogueBias
               ? refuse(kNotSupported, "the epilogue " + std::to_string(operation->epilogue))
               : status;
  }
  if (attribute != kOperationTransposeA && attribute != kOperationTransposeB)
    return refuse(kNotSupported, "an operation's attribute " + std::to_string(attribute));
  int32_t& which = operation->transposed[attribute - kOperationTransposeA];
  const Status status = take(which, value, bytes, "a transposition");
  if (status == kSuccess && which != kAsStored && which != kTransposed)
    return refuse(kNotSupported, "the transposition " + std::to_string(which));
  return status;
}

Status cublasLtMatmulPreferenceCreate(Preference* preference) {
  *preference = new PreferenceData();
  return kSuccess;
}
Status cublasLtMatmulPreferenceDestroy(Preference preference) {
  delete preference;
  return kSuccess;
}
Status cublasLtMatmulPreferenceSetAttribute(Preference preference, int attribute, const void* value, size_t bytes) {
  if (attribute == kPreferWorkspace) return take(preference->workspace, value, bytes, "a workspace's size");
  if (attribute == kPreferReductions) return take(preference->reductions, value, bytes, "a mask of reductions");
  if (attribute >= kPreferAlignmentA && attribute <= kPreferAlignmentD)
    return take(preference->aligned[attribute - kPreferAlignmentA], value, bytes, "an alignment");
  return refuse(kNotSupported, "a preference's attribute " + std::to_string(attribute));
}

Status cublasLtMatmulAlgoGetHeuristic(Handle, Operation operation, Layout a, Layout b, Layout c, Layout d,
                                      Preference preference, int wanted, Heuristic* found, int* count) {
  *count = 0;
  if (const Status status = check_product(*operation, *a, *b, *c, *d)) return status;
  if (wanted < 1) return refuse(kInvalidValue, "no algorithm is asked for");
  const char* refuses = std::getenv("BACKPLANE_EMULATED_CUBLASLT_REFUSES");
  if (refuses && (std::string_view(refuses) != "bias" || operation->epilogue == kEpilogueBias)) return kNotSupported;
  // Products of some depth are cut into parts, which are summed in a workspace where the mask allows it.
  const bool parts = d->rows * d->columns < 64 && preference->reductions & kReduceInComputeType;
  Chosen chosen{kAlgorithmMark, digest_of(*operation, a, b, c, d), 0, {}};
  if (parts) chosen.workspace = std::min<uint64_t>(d->rows * d->columns * 16, preference->workspace);
  std::memcpy(chosen.aligned, preference->aligned, sizeof(chosen.aligned));
  *found = {};
  std::memcpy(&found->algorithm, &chosen, sizeof(chosen));
  found->workspace = chosen.workspace;
  *count = 1;
  return kSuccess;
}

Status cublasLtMatmul(Handle, Operation operation, const void* alpha, const void* a, Layout a_layout, const void* b,
                      Layout b_layout, const void* beta, const void* c, Layout c_layout, void* d, Layout d_layout,
                      const Algorithm* algorithm, void* workspace, size_t workspace_bytes, driver::Stream stream) {
  if (const Status status = check_product(*operation, *a_layout, *b_layout, *c_layout, *d_layout)) return status;
  Chosen chosen{};
  std::memcpy(&chosen, algorithm, sizeof(chosen));
  if (chosen.mark != kAlgorithmMark ||
      chosen.descriptors != digest_of(*operation, a_layout, b_layout, c_layout, d_layout))
    return refuse(kInvalidValue, "the algorithm was chosen for other descriptors");
  const bool with_c = is_number(beta, operation->scale, 1);
  if (!is_number(alpha, operation->scale, 1) || (!with_c && !is_number(beta, operation->scale, 0)))
    return refuse(kNotSupported, "an alpha that is not 1, or a beta that is neither 0 nor 1");
  if (!is_aligned(a, chosen.aligned[0]) || !is_aligned(b, chosen.aligned[1]) || !is_aligned(c, chosen.aligned[2]) ||
      !is_aligned(d, chosen.aligned[3]))
    return refuse(kInvalidValue, "an operand is less aligned than was said when the algorithm was chosen");
  if (workspace_bytes < chosen.workspace || (chosen.workspace > 0 && (!workspace || !is_aligned(workspace, 256))))
    return refuse(kInvalidValue, "the workspace is too small, or no multiple of 256");
  const Product call{*operation,
                     *a_layout,
                     *b_layout,
                     *d_layout,
                     static_cast<const char*>(a),
                     static_cast<const char*>(b),
                     with_c ? static_cast<const char*>(c) : nullptr,
                     static_cast<char*>(d),
                     static_cast<char*>(workspace),
                     chosen.workspace};
  if (!emulator::record_work(stream, [call] { run(call); })) return kExecutionFailed;
  ++products;
  if (operation->epilogue == kEpilogueBias) ++biased;
  return kSuccess;
}

}  // extern "C"
