// The ops' kernels: what each op means for a provider.
#include "kernels.hpp"

#include <algorithm>
#include <string_view>

#include "backplane/plugin/kernel.hpp"
#include "call.hpp"

namespace backplane::collectives {
namespace {

using plugin::ConstTensor;
using plugin::Context;
using plugin::MutTensor;
using Text = std::string_view;

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

using Number = MutTensor<int64_t>;

void all_reduce_start(Context context, In x, int64_t, Text op, Text group, Text site, Number out) {
  Call call(context, BP_COLLECTIVE_ALL_REDUCE, group, site);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  out.data()[0] = call.begin_reduce(x.data(), size_of(x), size_of(x), size_of(x), x.dtype());
}

void all_gather_start(Context context, In x, int64_t n, Text group, Text site, Number out) {
  Call call(context, BP_COLLECTIVE_ALL_GATHER, group, site);
  call.divides(n);
  call.compares(*x.handle());
  out.data()[0] = call.begin_move(x.data(), bytes_of(x), bytes_of(x) * static_cast<uint64_t>(n), bytes_of(x));
}

void reduce_scatter_start(Context context, In x, int64_t n, Text op, Text group, Text site, Number out) {
  Call call(context, BP_COLLECTIVE_REDUCE_SCATTER, group, site);
  call.divides(n);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  const uint64_t block = size_of(x) / static_cast<uint64_t>(n);
  out.data()[0] = call.begin_reduce(x.data(), size_of(x), block, block, x.dtype());
}

void all_reduce_finish(Context context, ConstTensor<int64_t> begun, In x, int64_t n, Text op, Text group, Text site,
                       Out out) {
  if (begun.data()[0] == 0) return all_reduce(context, x, n, op, group, site, out);
  Call call(context, BP_COLLECTIVE_ALL_REDUCE, group, site);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  call.world.end(call.host, begun.data()[0], call.request.notice, out.data());
}

void all_gather_finish(Context context, ConstTensor<int64_t> begun, In x, int64_t n, Text group, Text site, Out out) {
  if (begun.data()[0] == 0) return all_gather(context, x, n, group, site, out);
  Call call(context, BP_COLLECTIVE_ALL_GATHER, group, site);
  call.compares(*x.handle());
  call.world.end(call.host, begun.data()[0], call.request.notice, out.data());
}

void reduce_scatter_finish(Context context, ConstTensor<int64_t> begun, In x, int64_t n, Text op, Text group, Text site,
                           Out out) {
  if (begun.data()[0] == 0) return reduce_scatter(context, x, n, op, group, site, out);
  Call call(context, BP_COLLECTIVE_REDUCE_SCATTER, group, site);
  call.compares(*x.handle());
  call.reduction(op, x.dtype());
  call.world.end(call.host, begun.data()[0], call.request.notice, out.data());
}

void sum_of_parts(Context context, In x, int64_t n, Text group, Text site, Out out) {
  all_reduce(context, x, n, "sum", group, site, out);
}

void join_parts(Context context, In x, int64_t n, int64_t, Text group, Text site, Out out) {
  all_gather(context, x, n, group, site, out);
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

void join(Context, Text provider, int64_t rank, int64_t size, Text world, double timeout, Text devices,
          MutTensor<int64_t> out) {
  BP_CHECK(size >= 1 && rank >= 0 && rank < size, VALUE, "join: found rank ", rank, " of ", size);
  const std::shared_ptr<World> made = World::join(std::string(provider), static_cast<int32_t>(rank),
                                                  static_cast<int32_t>(size), std::string(world), std::string(devices));
  made->timeout = timeout;
  out.data()[0] = made->rank();
  out.data()[1] = made->size();
}

// `inquire`: 1 where this rank has raised the failure already.
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
    result = world->inquire();
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
  registrar.kernel(BP_KERNEL("collective::all_reduce_start", "cpu", kernel<all_reduce_start>));
  registrar.kernel(BP_KERNEL("collective::all_reduce_finish", "cpu", kernel<all_reduce_finish>));
  registrar.kernel(BP_KERNEL("collective::all_gather_start", "cpu", kernel<all_gather_start>));
  registrar.kernel(BP_KERNEL("collective::all_gather_finish", "cpu", kernel<all_gather_finish>));
  registrar.kernel(BP_KERNEL("collective::reduce_scatter_start", "cpu", kernel<reduce_scatter_start>));
  registrar.kernel(BP_KERNEL("collective::reduce_scatter_finish", "cpu", kernel<reduce_scatter_finish>));
  registrar.kernel(BP_KERNEL("collective::sum_of_parts", "cpu", kernel<sum_of_parts>));
  registrar.kernel(BP_KERNEL("collective::join_parts", "cpu", kernel<join_parts>));
  registrar.kernel(BP_KERNEL("collective::gather", "cpu", kernel<gather>));
  registrar.kernel(BP_KERNEL("collective::scatter", "cpu", kernel<scatter>));
  registrar.kernel(BP_KERNEL("collective::all_to_all", "cpu", kernel<all_to_all>));
  registrar.kernel(BP_KERNEL("collective::broadcast", "cpu", kernel<broadcast>));
  registrar.kernel(BP_KERNEL("collective::send", "cpu", kernel<send>));
  registrar.kernel(BP_KERNEL("collective::recv", "cpu", kernel<recv>));
  registrar.kernel(BP_KERNEL("collective::barrier", "cpu", kernel<barrier>));
  registrar.kernel(BP_KERNEL("collective::barrier", "*", kernel<barrier>));  // its result has no elements
  registrar.kernel(BP_KERNEL("collective::join", "cpu", kernel<join>));
  registrar.kernel(BP_KERNEL("collective::control", "cpu", kernel<control>));
  register_device_kernels(registrar);
}

}  // namespace backplane::collectives
