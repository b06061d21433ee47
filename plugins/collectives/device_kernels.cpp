// The ops' kernels on devices that the device provider serves. They decline calls that the provider does not take; the
// host runs those.
#include <algorithm>
#include <string>
#include <string_view>

#include "call.hpp"
#include "kernels.hpp"

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

uint32_t reduction_of(Text op) {
  static constexpr Text kNames[] = {"", "sum", "max", "min", "prod", "mean"};
  return static_cast<uint32_t>(std::find(std::begin(kNames), std::end(kNames), op) - std::begin(kNames));
}

// Describes a reduction to a device provider. Bools travel as bytes: their product and their minimum are the same.
void describe_reduction(bp_collective_call& call, Text op, bp_dtype dtype) {
  call.reduce = reduction_of(op);
  call.dtype = dtype == BP_BOOL ? bp_dtype{BP_UINT8} : dtype;
  if (dtype == BP_BOOL && call.reduce == BP_COLLECTIVE_PROD) call.reduce = BP_COLLECTIVE_MIN;
}

// `kOp`: the place of the argument `op`; -1: the op does not reduce.
template <uint32_t kKind, int kOp>
bp_status BP_CALL supports(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  std::string reason;
  const std::shared_ptr<World> world = World::find();
  bp_collective_call call{};
  call.header = BP_HEADER(bp_collective_call);
  call.kind = kKind;
  call.dtype = BP_UINT8;
  if constexpr (kOp >= 0)
    describe_reduction(call, {args[kOp].u.s, args[kOp].count}, static_cast<bp_dtype>(args[0].u.t->dtype));
  if (!world)
    reason = "this process is not connected to others";
  else if (world->takes_on_device(frame, call, reason))
    return BP_OK;
  frame->host->set_error(BP_ERROR_DEVICE, reason.c_str());
  return BP_ERROR_DEVICE;
}

class DeviceCall : public Call {
 public:
  DeviceCall(Context context, uint32_t kind, In x, Text group, Text site)
      : Call(context, kind, group, site), frame_(context.frame) {
    compares(*x.handle());
    request.notice.on_device = 1;
    request.call.dtype = BP_UINT8;
    request.call.in = x.data();
  }
  void reduces(Text op, bp_dtype dtype) {
    reduction(op, dtype);
    describe_reduction(request.call, op, dtype);
  }
  void run(const Out& out, uint64_t count) {
    request.call.out = out.data();
    request.call.count = count;
    world.run_on_device(frame_, members, request);
  }

 private:
  const bp_frame* frame_;
};

void all_reduce(Context context, In x, int64_t, Text op, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_ALL_REDUCE, x, group, site);
  call.reduces(op, x.dtype());
  call.run(out, size_of(x));
}

void reduce_scatter(Context context, In x, int64_t n, Text op, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_REDUCE_SCATTER, x, group, site);
  call.divides(n);
  call.reduces(op, x.dtype());
  call.run(out, size_of(out));
}

void all_gather(Context context, In x, int64_t n, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_ALL_GATHER, x, group, site);
  call.divides(n);
  call.run(out, bytes_of(x));
}

void all_to_all(Context context, In x, int64_t n, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_ALL_TO_ALL, x, group, site);
  call.divides(n);
  call.run(out, bytes_of(x) / static_cast<uint64_t>(n));
}

void broadcast(Context context, In x, int64_t root, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_BROADCAST, x, group, site);
  call.peer(root, "root");
  call.run(out, bytes_of(x));
}

void scatter(Context context, In x, int64_t n, int64_t root, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_SCATTER, x, group, site);
  call.divides(n);
  call.peer(root, "root");
  call.run(out, bytes_of(out));
}

void reduce(Context context, In x, int64_t, int64_t root, Text op, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_REDUCE, x, group, site);
  call.peer(root, "root");
  call.reduces(op, x.dtype());
  call.run(out, size_of(x));
}

void gather(Context context, In x, int64_t n, int64_t root, Text group, Text site, Out out) {
  DeviceCall call(context, BP_COLLECTIVE_GATHER, x, group, site);
  call.divides(n);
  call.peer(root, "root");
  call.run(out, bytes_of(x));
}

void sum_of_parts(Context context, In x, int64_t n, Text group, Text site, Out out) {
  all_reduce(context, x, n, "sum", group, site, out);
}

void join_parts(Context context, In x, int64_t n, int64_t, Text group, Text site, Out out) {
  all_gather(context, x, n, group, site, out);
}

// Sums have no argument `op`.
bp_status BP_CALL supports_sum(const bp_frame* frame, const bp_value* args, int32_t, bp_value*, int32_t) {
  bp_value with_op[2] = {args[0], {}};
  with_op[1].tag = BP_TAG_STRING;
  with_op[1].u.s = "sum";
  with_op[1].count = 3;
  return supports<BP_COLLECTIVE_ALL_REDUCE, 1>(frame, with_op, 2, nullptr, 0);
}

}  // namespace

void register_device_kernels(const plugin::Registrar& registrar) {
  using plugin::kernel;
  registrar.kernel(BP_KERNEL("collective::all_reduce", "*", kernel<all_reduce>,
                             .supports = (supports<BP_COLLECTIVE_ALL_REDUCE, 2>)));
  registrar.kernel(BP_KERNEL("collective::reduce_scatter", "*", kernel<reduce_scatter>,
                             .supports = (supports<BP_COLLECTIVE_REDUCE_SCATTER, 2>)));
  registrar.kernel(BP_KERNEL("collective::all_gather", "*", kernel<all_gather>,
                             .supports = (supports<BP_COLLECTIVE_ALL_GATHER, -1>)));
  registrar.kernel(BP_KERNEL("collective::all_to_all", "*", kernel<all_to_all>,
                             .supports = (supports<BP_COLLECTIVE_ALL_TO_ALL, -1>)));
  registrar.kernel(
      BP_KERNEL("collective::broadcast", "*", kernel<broadcast>, .supports = (supports<BP_COLLECTIVE_BROADCAST, -1>)));
  registrar.kernel(
      BP_KERNEL("collective::scatter", "*", kernel<scatter>, .supports = (supports<BP_COLLECTIVE_SCATTER, -1>)));
  registrar.kernel(
      BP_KERNEL("collective::reduce", "*", kernel<reduce>, .supports = (supports<BP_COLLECTIVE_REDUCE, 3>)));
  registrar.kernel(
      BP_KERNEL("collective::gather", "*", kernel<gather>, .supports = (supports<BP_COLLECTIVE_GATHER, -1>)));
  registrar.kernel(BP_KERNEL("collective::sum_of_parts", "*", kernel<sum_of_parts>, .supports = supports_sum));
  registrar.kernel(BP_KERNEL("collective::join_parts", "*", kernel<join_parts>,
                             .supports = (supports<BP_COLLECTIVE_ALL_GATHER, -1>)));
}

}  // namespace backplane::collectives
