#include "call.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <memory>
#include <string>

namespace backplane::collectives {
namespace {

using plugin::bfloat16;
using plugin::float16;

constexpr uint32_t kMean = 5;  // of notices; a provider sums

std::string_view plain_name(const char* name) {
  const std::string_view text = name;
  const size_t at = text.rfind("::");
  return at == std::string_view::npos ? text : text.substr(at + 2);
}

template <class T>
void divide(void* data, uint64_t n, int32_t by) {
  T* values = static_cast<T*>(data);
  for (uint64_t i = 0; i < n; ++i) values[i] /= static_cast<T>(by);
}

template <class Half>
std::vector<float> widened(const void* in, uint64_t n) {
  const Half* from = static_cast<const Half*>(in);
  std::vector<float> wide(n);
  for (uint64_t i = 0; i < n; ++i) wide[i] = static_cast<float>(from[i]);
  return wide;
}

template <class Half>
void narrow(const float* from, uint64_t n, void* out) {
  Half* to = static_cast<Half*>(out);
  for (uint64_t i = 0; i < n; ++i) to[i] = Half(from[i]);
}

bool is_half(bp_dtype dtype) { return dtype == BP_FLOAT16 || dtype == BP_BFLOAT16; }

// From what the provider gave to the op's result, which may lie in the same place. `parts`: of a mean; 0: of none.
void give(void* reduced, void* out, uint64_t n, bp_dtype dtype, int32_t parts) {
  if (parts != 0 && (dtype == BP_FLOAT32 || is_half(dtype))) divide<float>(reduced, n, parts);
  if (parts != 0 && dtype == BP_FLOAT64) divide<double>(reduced, n, parts);
  if (parts != 0 && dtype == BP_COMPLEX64) divide<std::complex<float>>(reduced, n, parts);
  if (parts != 0 && dtype == BP_COMPLEX128) divide<std::complex<double>>(reduced, n, parts);
  if (is_half(dtype))
    dtype == BP_BFLOAT16 ? narrow<bfloat16>(static_cast<float*>(reduced), n, out)
                         : narrow<float16>(static_cast<float*>(reduced), n, out);
  else if (reduced != out)
    std::memcpy(out, reduced, n * static_cast<uint64_t>(plugin::kItemSize[dtype]));
}

}  // namespace

Call::Call(plugin::Context call, uint32_t kind, std::string_view group, std::string_view site)
    : host(call.host()), world(World::current()), members(world.group(std::string(group), host)) {
  request.call.header = BP_HEADER(bp_collective_call);
  request.call.kind = request.notice.kind = kind;
  const std::string_view name = plain_name(call.op_name()).substr(0, sizeof request.notice.op - 1);
  std::copy(name.begin(), name.end(), request.notice.op);
  request.notice.set_site(site);
}

void Call::compares(const bp_tensor& tensor) {
  Notice& notice = request.notice;
  notice.dtype = tensor.dtype;
  notice.ndim = tensor.dl.ndim;
  notice.elements = tensor.nbytes;
  std::copy_n(tensor.dl.shape, std::min(notice.ndim, kMostDims), notice.shape);
}

void Call::peer(int64_t place, const char* argument) {
  BP_CHECK(place >= 0 && place < members.size(), VALUE, request.notice.op, ": argument ", argument, ": found ", place,
           ", expected a rank of the group, from 0 to ", members.size() - 1);
  request.call.peer = request.notice.peer = static_cast<int32_t>(place);
}

void Call::divides(int64_t n) const {
  BP_CHECK(n == members.size(), VALUE, request.notice.op, ": argument n: found ", n, ", expected ", members.size(),
           ", the number of ranks in group ", members.name,
           "; a graph that was made for another number of ranks has to be made again");
}

void Call::move(const void* in, void* out, uint64_t bytes) {
  request.call.dtype = BP_UINT8;
  request.call.in = in;
  request.call.out = out;
  request.call.count = bytes;
  world.run(host, members, request);
}

void Call::reduction(std::string_view op, bp_dtype dtype) {
  static constexpr std::string_view kNames[] = {"", "sum", "max", "min", "prod", "mean"};
  const auto found = std::find(std::begin(kNames) + 1, std::end(kNames), op);
  BP_CHECK(found != std::end(kNames), VALUE, request.notice.op, ": argument op: found '", op,
           "', expected 'sum', 'mean', 'max', 'min' or 'prod'");
  request.notice.reduce = static_cast<uint32_t>(found - std::begin(kNames));
  mean = request.notice.reduce == kMean;
  request.call.reduce = mean ? uint32_t{BP_COLLECTIVE_SUM} : request.notice.reduce;
  const bp_dtype_mask bit = BP_DTYPE_BIT(dtype);
  constexpr bp_dtype_mask kComplex = BP_DTYPE_BIT(BP_COMPLEX64) | BP_DTYPE_BIT(BP_COMPLEX128);
  const bool orders = op == "max" || op == "min";
  BP_CHECK(!(orders && (bit & kComplex)), DTYPE, request.notice.op, ": argument x: found ", plugin::dtype_name(dtype),
           ", expected a real dtype: complex numbers have no ", op);
  BP_CHECK(!(dtype == BP_BOOL && (op == "sum" || mean)), DTYPE, request.notice.op,
           ": argument x: found bool, expected numbers for op '", op, "'; cast it first");
  BP_CHECK(!mean || (bit & (kComplex | BP_MASK_FLOATING)), DTYPE, request.notice.op, ": argument x: found ",
           plugin::dtype_name(dtype), ", expected a floating or complex dtype for op 'mean'; cast it first");
}

// What the provider reduces: halves in float32, which are the result; others as they are, and the result is empty.
std::vector<float> Call::operand(const void* in, uint64_t n, bp_dtype dtype) {
  request.call.dtype = is_half(dtype) ? bp_dtype{BP_FLOAT32} : dtype == BP_BOOL ? bp_dtype{BP_UINT8} : dtype;
  // Of bools 0 and 1 the least is `and`, and so is the product.
  if (dtype == BP_BOOL && request.call.reduce == BP_COLLECTIVE_PROD) request.call.reduce = BP_COLLECTIVE_MIN;
  if (!is_half(dtype)) return {};
  return dtype == BP_BFLOAT16 ? widened<bfloat16>(in, n) : widened<float16>(in, n);
}

void Call::reduce(const void* in, void* out, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype) {
  const std::vector<float> wide = operand(in, n_in, dtype);
  std::vector<float> result(is_half(dtype) ? std::max(n_out, uint64_t{1}) : 0);
  request.call.count = count;
  request.call.in = is_half(dtype) ? wide.data() : in;
  request.call.out = is_half(dtype) ? result.data() : out;
  world.run(host, members, request);
  give(request.call.out, out, n_out, dtype, mean ? members.size() : 0);
}

int64_t Call::begin_reduce(const void* in, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype) {
  auto pending = std::make_unique<Pending>();
  const std::vector<float> wide = operand(in, n_in, dtype);
  const auto item = static_cast<uint64_t>(plugin::kItemSize[request.call.dtype]);
  const char* from = static_cast<const char*>(is_half(dtype) ? wide.data() : in);
  pending->in.assign(from, from + n_in * item);
  pending->out.resize(n_out * item);
  request.call.count = count;
  request.call.in = pending->in.data();
  request.call.out = pending->out.data();
  pending->request = request;
  pending->complete = [reduced = pending->out.data(), n_out, dtype, parts = mean ? members.size() : 0](void* to) {
    give(reduced, to, n_out, dtype, parts);
  };
  return world.begin(host, members, std::move(pending));
}

int64_t Call::begin_move(const void* in, uint64_t n_in, uint64_t n_out, uint64_t bytes) {
  auto pending = std::make_unique<Pending>();
  const char* from = static_cast<const char*>(in);
  pending->in.assign(from, from + n_in);
  pending->out.resize(n_out);
  request.call.dtype = BP_UINT8;
  request.call.count = bytes;
  request.call.in = pending->in.data();
  request.call.out = pending->out.data();
  pending->request = request;
  pending->complete = [moved = pending->out.data(), n_out](void* to) { std::memcpy(to, moved, n_out); };
  return world.begin(host, members, std::move(pending));
}

}  // namespace backplane::collectives
