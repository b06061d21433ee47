// The XLA FFI handler of backplane.jax: one target for all functions. A call's attributes are the text of its graph and
// a key of that text; operands and results are XLA's buffers, which the ops read and write where they lie.
//
// It is called on XLA's threads, without Python. The API is used from call frames alone, so that nothing of XLA is
// linked; third_party/xla_ffi has its header.
#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "backplane/borrowed_tensor.hpp"
#include "backplane/device.hpp"
#include "backplane/graph.hpp"
#include "backplane/registration.hpp"
#include "node_call.hpp"
#include "xla_ffi/c_api.h"

namespace backplane::jax {
namespace {

// A graph, ready to be called. Kept as long as the process: programs of XLA that refer to it may be run again.
struct Prepared {
  std::string text;
  Graph graph;
  std::optional<NodeCall> single;
};

std::mutex prepared_lock;
std::map<int64_t, std::unique_ptr<Prepared>>& all_prepared() {
  static auto* all = new std::map<int64_t, std::unique_ptr<Prepared>>();
  return *all;
}

const Prepared& prepare(int64_t key, std::string_view text) {
  const std::lock_guard guard(prepared_lock);
  std::unique_ptr<Prepared>& found = all_prepared()[key];
  if (!found) {
    auto made = std::make_unique<Prepared>();
    made->text = text;
    made->graph = parse_graph(text);
    BP_CHECK(made->graph.generators().empty() && made->graph.updates().empty(), NOT_IMPLEMENTED,
             "backplane.jax: the function draws random numbers or changes tensors in place");
    made->single = NodeCall::of(made->graph);
    found = std::move(made);
  }
  BP_CHECK(found->text == text, VALUE, "backplane.jax: two graphs have the key ", key);
  return *found;
}

bp_dtype dtype_of(XLA_FFI_DataType type) {
  switch (type) {
    case XLA_FFI_DataType_PRED:
      return BP_BOOL;
    case XLA_FFI_DataType_S8:
      return BP_INT8;
    case XLA_FFI_DataType_S16:
      return BP_INT16;
    case XLA_FFI_DataType_S32:
      return BP_INT32;
    case XLA_FFI_DataType_S64:
      return BP_INT64;
    case XLA_FFI_DataType_U8:
      return BP_UINT8;
    case XLA_FFI_DataType_U16:
      return BP_UINT16;
    case XLA_FFI_DataType_U32:
      return BP_UINT32;
    case XLA_FFI_DataType_U64:
      return BP_UINT64;
    case XLA_FFI_DataType_F16:
      return BP_FLOAT16;
    case XLA_FFI_DataType_BF16:
      return BP_BFLOAT16;
    case XLA_FFI_DataType_F32:
      return BP_FLOAT32;
    case XLA_FFI_DataType_F64:
      return BP_FLOAT64;
    case XLA_FFI_DataType_C64:
      return BP_COMPLEX64;
    case XLA_FFI_DataType_C128:
      return BP_COMPLEX128;
    default:
      detail::fail(BP_ERROR_DTYPE, "backplane.jax: found XLA's data type ", static_cast<int>(type),
                   ", which is not supported");
  }
}

// A tensor over the memory of a buffer, which the call does not own.
const Tensor& point(BorrowedTensor& lent, const void* slot, Lent use) {
  const auto* buffer = static_cast<const XLA_FFI_Buffer*>(slot);
  const Shape shape(buffer->dims, static_cast<size_t>(buffer->rank));
  return lent.point(buffer->data, shape, {}, dtype_of(buffer->dtype), use);
}

const void* attribute(const XLA_FFI_CallFrame& frame, std::string_view name) {
  for (int64_t i = 0; i < frame.attrs.size; ++i)
    if (std::string_view(frame.attrs.names[i]->ptr, frame.attrs.names[i]->len) == name) return frame.attrs.attrs[i];
  detail::fail(BP_ERROR_VALUE, "backplane.jax: the call has no attribute '", name, "'");
}

const Prepared& prepared_of(const XLA_FFI_CallFrame& frame) {
  const auto key = *static_cast<const int64_t*>(static_cast<const XLA_FFI_Scalar*>(attribute(frame, "key"))->value);
  struct Latest {
    int64_t key;
    const Prepared* prepared;
  };
  thread_local Latest latest[64] = {};
  Latest& slot = latest[static_cast<uint64_t>(key) % 64];
  if (slot.prepared == nullptr || slot.key != key) {
    const auto* text = static_cast<const XLA_FFI_ByteSpan*>(attribute(frame, "graph"));
    slot = {key, &prepare(key, {text->ptr, text->len})};
  }
  return *slot.prepared;
}

void run(const XLA_FFI_CallFrame& frame) {
  bp_frame below{};  // XLA may call on a thread whose transforms are Backplane's: they see none of it
  below.keys = ~uint64_t{0};
  const KernelScope scope(below);
  const Prepared& prepared = prepared_of(frame);
  const auto n_args = static_cast<size_t>(frame.args.size), n_results = static_cast<size_t>(frame.rets.size);
  if (prepared.single && n_args + n_results <= BorrowedTensors::kCount) {
    const BorrowedTensors lent;
    bp_value operands[BorrowedTensors::kCount];
    for (size_t i = 0; i < n_args; ++i) operands[i] = value(point(lent[i], frame.args.args[i], Lent::kRead));
    for (size_t i = 0; i < n_results; ++i)
      operands[n_args + i] = value(point(lent[n_args + i], frame.rets.rets[i], Lent::kOverwritten));
    return prepared.single->call(operands, operands + n_args, n_results);
  }
  std::vector<BorrowedTensor> lent(n_args);
  std::vector<Tensor> inputs(n_args);
  for (size_t i = 0; i < n_args; ++i) inputs[i] = point(lent[i], frame.args.args[i], Lent::kRead);
  const std::vector<Tensor> results = prepared.graph.call(inputs);
  BP_CHECK(results.size() == n_results, VALUE, "backplane.jax: the graph has ", results.size(),
           " results, and the program expects ", n_results);
  for (size_t i = 0; i < n_results; ++i) {
    const auto* buffer = static_cast<const XLA_FFI_Buffer*>(frame.rets.rets[i]);
    const Shape shape = results[i].shape();
    BP_CHECK(results[i].dtype() == dtype_of(buffer->dtype) &&
                 std::equal(shape.begin(), shape.end(), buffer->dims, buffer->dims + buffer->rank),
             VALUE, "backplane.jax: result ", i, " has another dtype or shape than the program expects");
    if (results[i].get()->nbytes) to_host(results[i], buffer->data);
  }
}

XLA_FFI_Error* error_of(const XLA_FFI_CallFrame& frame, bp_status status, const char* message) {
  XLA_FFI_Error_Create_Args args{};
  args.struct_size = XLA_FFI_Error_Create_Args_STRUCT_SIZE;
  args.message = message;
  args.errc = status == BP_ERROR_NOT_IMPLEMENTED ? XLA_FFI_Error_Code_UNIMPLEMENTED
              : status == BP_ERROR_MEMORY        ? XLA_FFI_Error_Code_RESOURCE_EXHAUSTED
              : status == BP_ERROR_INTERNAL      ? XLA_FFI_Error_Code_INTERNAL
                                                 : XLA_FFI_Error_Code_INVALID_ARGUMENT;
  return frame.api->XLA_FFI_Error_Create(&args);
}

// XLA asks each target once for the version of the API that it speaks. All that is used here exists since version 0.1,
// so the answer is the asking XLA's own version. XLA of version 0.1 (jaxlib 0.8.0) asks without a table of its
// functions.
bool answer_metadata(const XLA_FFI_CallFrame& frame) {
  for (XLA_FFI_Extension_Base* each = frame.extension_start; each != nullptr; each = each->next) {
    if (each->type != XLA_FFI_Extension_Metadata) continue;
    XLA_FFI_Metadata& metadata = *reinterpret_cast<XLA_FFI_Metadata_Extension*>(each)->metadata;
    metadata.api_version.major_version = frame.api != nullptr ? frame.api->api_version.major_version : 0;
    metadata.api_version.minor_version = frame.api != nullptr ? frame.api->api_version.minor_version : 1;
    metadata.traits = 0;
    return true;
  }
  return false;
}

}  // namespace
}  // namespace backplane::jax

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* backplane_xla_call(XLA_FFI_CallFrame* frame) {
  namespace own = backplane::jax;
  if (own::answer_metadata(*frame) || frame->stage != XLA_FFI_ExecutionStage_EXECUTE) return nullptr;
  try {
    own::run(*frame);
    return nullptr;
  } catch (const backplane::Error& error) {
    return own::error_of(*frame, error.code(), error.what());
  } catch (const std::exception& error) {
    return own::error_of(*frame, BP_ERROR_INTERNAL, error.what());
  }
}
