// The ops' kernels: what each op means for a provider. Half floats reduce in float32; data that only moves moves as
// bytes.
#include "kernels.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "backplane/plugin/kernel.hpp"
#include "world.hpp"

namespace backplane::collectives {
namespace {

using plugin::bfloat16;
using plugin::ConstTensor;
using plugin::Context;
using plugin::float16;
using plugin::MutTensor;
using Text = std::string_view;

constexpr uint32_t kMean = 5;  // of notices; a provider sums

std::string_view plain_name(const char* name) {
  const std::string_view text = name;
  const size_t at = text.rfind("::");
  return at == std::string_view::npos ? text : text.substr(at + 2);
}

struct Call {
  Call(Context call, uint32_t kind, Text group, Text site)
      : host(call.host()), world(World::current()), members(world.group(std::string(group), host)) {
    request.call.header = BP_HEADER(bp_collective_call);
    request.call.kind = request.notice.kind = kind;
    const std::string_view name = plain_name(call.op_name()).substr(0, sizeof request.notice.op - 1);
    std::copy(name.begin(), name.end(), request.notice.op);
    request.notice.set_site(site);
  }

  // The tensor whose dtype and shape the ranks compare.
  void compares(const bp_tensor& tensor) {
    Notice& notice = request.notice;
    notice.dtype = tensor.dtype;
    notice.ndim = tensor.dl.ndim;
    notice.elements = tensor.nbytes;
    std::copy_n(tensor.dl.shape, std::min(notice.ndim, kMostDims), notice.shape);
  }
  void peer(int64_t place, const char* argument) {
    BP_CHECK(place >= 0 && place < members.size(), VALUE, request.notice.op, ": argument ", argument, ": found ", place,
             ", expected a rank of the group, from 0 to ", members.size() - 1);
    request.call.peer = request.notice.peer = static_cast<int32_t>(place);
  }
  bool is_peer() const { return members.place == request.call.peer; }
  void divides(int64_t n) const {
    BP_CHECK(n == members.size(), VALUE, request.notice.op, ": argument n: found ", n, ", expected ", members.size(),
             ", the number of ranks in group ", members.name,
             "; a graph that was made for another number of ranks has to be made again");
  }
  void move(const void* in, void* out, uint64_t bytes) {
    request.call.dtype = BP_UINT8;
    request.call.in = in;
    request.call.out = out;
    request.call.count = bytes;
    world.run(host, members, request);
  }
  void reduction(Text op, bp_dtype dtype);
  void reduce(const void* in, void* out, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype);

  const bp_host* host;
  World& world;
  Group& members;
  Request request;
  bool mean = false;
};

void Call::reduction(Text op, bp_dtype dtype) {
  static constexpr Text kNames[] = {"", "sum", "max", "min", "prod", "mean"};
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
void narrow(const std::vector<float>& from, void* out) {
  Half* to = static_cast<Half*>(out);
  for (size_t i = 0; i < from.size(); ++i) to[i] = Half(from[i]);
}

// `n_in`, `n_out`: elements of this rank's operand and result; n_out is 0 where it gets none.
void Call::reduce(const void* in, void* out, uint64_t n_in, uint64_t n_out, uint64_t count, bp_dtype dtype) {
  request.call.count = count;
  const int32_t n = members.size();
  if (dtype == BP_FLOAT16 || dtype == BP_BFLOAT16) {
    const bool is_brain = dtype == BP_BFLOAT16;
    const std::vector<float> wide = is_brain ? widened<bfloat16>(in, n_in) : widened<float16>(in, n_in);
    std::vector<float> result(std::max(n_out, uint64_t{1}));
    request.call.dtype = BP_FLOAT32;
    request.call.in = wide.data();
    request.call.out = result.data();
    world.run(host, members, request);
    result.resize(n_out);
    if (mean) divide<float>(result.data(), n_out, n);
    is_brain ? narrow<bfloat16>(result, out) : narrow<float16>(result, out);
    return;
  }
  request.call.dtype = dtype == BP_BOOL ? bp_dtype{BP_UINT8} : dtype;
  // Of bools 0 and 1 the least is `and`, and so is the product.
  if (dtype == BP_BOOL && request.call.reduce == BP_COLLECTIVE_PROD) request.call.reduce = BP_COLLECTIVE_MIN;
  request.call.in = in;
  request.call.out = out;
  world.run(host, members, request);
  if (!mean) return;
  if (dtype == BP_FLOAT32) divide<float>(out, n_out, n);
  if (dtype == BP_FLOAT64) divide<double>(out, n_out, n);
  if (dtype == BP_COMPLEX64) divide<std::complex<float>>(out, n_out, n);
  if (dtype == BP_COMPLEX128) divide<std::complex<double>>(out, n_out, n);
}

using In = ConstTensor<void>;
using Out = MutTensor<void>;

uint64_t bytes_of(const auto& tensor) { return tensor.handle()->nbytes; }
uint64_t size_of(const auto& tensor) { return static_cast<uint64_t>(tensor.size()); }
void clear(const Out& out) { std::fill_n(static_cast<char*>(out.data()), bytes_of(out), char{0}); }

void all_reduce(Context context, In x, int64_t, Text op, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_ALL_REDUCE, group, site);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  call.reduce(x.data(), out.data(), size_of(x), size_of(out), size_of(x), x.dtype());
}

void reduce_scatter(Context context, In x, int64_t n, Text op, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_REDUCE_SCATTER, group, site);
  call.divides(n);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  call.reduce(x.data(), out.data(), size_of(x), size_of(out), size_of(out), x.dtype());
}

void reduce(Context context, In x, int64_t, int64_t root, Text op, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_REDUCE, group, site);
  call.peer(root, "root");
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  if (!call.is_peer()) clear(out);
  call.reduce(x.data(), out.data(), size_of(x), call.is_peer() ? size_of(out) : 0, size_of(x), x.dtype());
}

void all_gather(Context context, In x, int64_t n, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_ALL_GATHER, group, site);
  call.divides(n);
  call.compares(*x.handle());
  call.move(x.data(), out.data(), bytes_of(x));
}

void sum_of_parts(Context context, In x, int64_t n, Text group, Text site, Out out) {
  all_reduce(context, x, n, "sum", group, site, out);
}

void join_parts(Context context, In x, int64_t n, int64_t, Text group, Text site, Out out) {
  all_gather(context, x, n, group, site, out);
}

void to_parts(Context, In x, int64_t, Text, Text, Out out) {
  std::copy_n(static_cast<const char*>(x.data()), bytes_of(x), static_cast<char*>(out.data()));
}

void gather(Context context, In x, int64_t n, int64_t root, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_GATHER, group, site);
  call.divides(n);
  call.peer(root, "root");
  call.compares(*x.handle());
  if (!call.is_peer()) clear(out);
  call.move(x.data(), out.data(), bytes_of(x));
}

void scatter(Context context, In x, int64_t n, int64_t root, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_SCATTER, group, site);
  call.divides(n);
  call.peer(root, "root");
  call.compares(*x.handle());
  call.move(x.data(), out.data(), bytes_of(out));
}

void all_to_all(Context context, In x, int64_t n, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_ALL_TO_ALL, group, site);
  call.divides(n);
  call.compares(*x.handle());
  call.move(x.data(), out.data(), bytes_of(x) / static_cast<uint64_t>(n));
}

void broadcast(Context context, In x, int64_t root, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_BROADCAST, group, site);
  call.peer(root, "root");
  call.compares(*x.handle());
  call.move(x.data(), out.data(), bytes_of(x));
}

void send(Context context, In x, int64_t dest, Text group, Text site, Out) {
  Call call(context, BP_COLLECTIVE_SEND, group, site);
  call.peer(dest, "dest");
  BP_CHECK(!call.is_peer(), VALUE, "send: argument dest: found ", dest, ", which is this rank; expected another one");
  call.compares(*x.handle());
  call.move(x.data(), nullptr, bytes_of(x));
}

void recv(Context context, In like, int64_t source, Text group, Text site, Out out) {
  Call call(context, BP_COLLECTIVE_RECV, group, site);
  call.peer(source, "source");
  BP_CHECK(!call.is_peer(), VALUE, "recv: argument source: found ", source,
           ", which is this rank; expected another one");
  call.compares(*like.handle());
  call.move(nullptr, out.data(), bytes_of(out));
}

void barrier(Context context, Text group, Text site, Out) {
  Call call(context, BP_COLLECTIVE_BARRIER, group, site);
  call.request.notice.ndim = -1;
  call.move(nullptr, nullptr, 1);
}

void join(Context, Text provider, int64_t rank, int64_t size, Text world, double timeout, MutTensor<int64_t> out) {
  BP_CHECK(size >= 1 && rank >= 0 && rank < size, VALUE, "join: found rank ", rank, " of ", size);
  const std::shared_ptr<World> made =
      World::join(std::string(provider), static_cast<int32_t>(rank), static_cast<int32_t>(size), std::string(world));
  made->timeout = timeout;
  out.data()[0] = made->rank();
  out.data()[1] = made->size();
}

// The rank that a lost rank is, -1 for none, in `inquire`.
void control(Context, Text what, double value, MutTensor<double> out) {
  double& result = out.data()[0];
  result = 0;
  const std::shared_ptr<World> world = World::find();
  if (what == "failed") {
    result = world && world->has_failed();
    return;
  }
  BP_CHECK(world, DEVICE, "this process is not connected to others; call bp.distributed.init() first");
  if (what == "timeout") {
    result = world->timeout;
    if (value > 0) world->timeout = value;
  } else if (what == "inquire") {
    const std::string lost = world->lost_ranks();
    BP_CHECK(lost.empty(), DEVICE, lost, " was lost: its process has ended");
  } else if (what == "leave") {
    world->leave();
    World::forget(*world);
  } else if (what == "abort") {
    world->abort();
  }
}

}  // namespace

void register_kernels(const plugin::Registrar& registrar) {
  using plugin::kernel;
  registrar.kernel(BP_KERNEL("collective::all_reduce", "cpu", kernel<all_reduce>));
  registrar.kernel(BP_KERNEL("collective::reduce_scatter", "cpu", kernel<reduce_scatter>));
  registrar.kernel(BP_KERNEL("collective::reduce", "cpu", kernel<reduce>));
  registrar.kernel(BP_KERNEL("collective::all_gather", "cpu", kernel<all_gather>));
  registrar.kernel(BP_KERNEL("collective::sum_of_parts", "cpu", kernel<sum_of_parts>));
  registrar.kernel(BP_KERNEL("collective::join_parts", "cpu", kernel<join_parts>));
  registrar.kernel(BP_KERNEL("collective::to_parts", "cpu", kernel<to_parts>));
  registrar.kernel(BP_KERNEL("collective::gather", "cpu", kernel<gather>));
  registrar.kernel(BP_KERNEL("collective::scatter", "cpu", kernel<scatter>));
  registrar.kernel(BP_KERNEL("collective::all_to_all", "cpu", kernel<all_to_all>));
  registrar.kernel(BP_KERNEL("collective::broadcast", "cpu", kernel<broadcast>));
  registrar.kernel(BP_KERNEL("collective::send", "cpu", kernel<send>));
  registrar.kernel(BP_KERNEL("collective::recv", "cpu", kernel<recv>));
  registrar.kernel(BP_KERNEL("collective::barrier", "cpu", kernel<barrier>));
  registrar.kernel(BP_KERNEL("collective::join", "cpu", kernel<join>));
  registrar.kernel(BP_KERNEL("collective::control", "cpu", kernel<control>));
}

}  // namespace backplane::collectives
