// The kernels of the simulated accelerator that do what a backend's author may well get wrong: one per fault.
#include "broken_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/loops.hpp"

bp_kernel_fn right_kernel = nullptr;

namespace {

using sim::Call;

// The loop with changed strides, for kernels that walk it wrongly.
template <class Change>
bp_status with_loop(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs,
                    Change change) {
  if (!frame->loop) return right_kernel(frame, args, n_args, outs, n_outs);
  bp_loop loop = *frame->loop;
  std::vector<int64_t> strides(loop.strides, loop.strides + loop.rank * loop.n_operands);
  change(loop, strides);
  loop.strides = strides.data();
  bp_frame changed = *frame;
  changed.loop = &loop;
  return right_kernel(&changed, args, n_args, outs, n_outs);
}

// A broadcast operand is taken for one element.
bp_status broadcast(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return with_loop(frame, args, n_args, outs, n_outs, [](const bp_loop& loop, std::vector<int64_t>& strides) {
    for (int32_t k = 1; k < loop.n_operands; ++k) {
      const auto first = strides.begin() + k * loop.rank;
      if (std::find(first, first + loop.rank, 0) != first + loop.rank) std::fill_n(first, loop.rank, 0);
    }
  });
}

// Operands are taken for dense ones.
bp_status stride(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return with_loop(frame, args, n_args, outs, n_outs, [&](const bp_loop& loop, std::vector<int64_t>& strides) {
    for (int32_t k = 1; k < loop.n_operands && loop.rank == 1; ++k)
      if (strides[static_cast<size_t>(k)])
        strides[static_cast<size_t>(k)] = backplane::plugin::kItemSize[frame->compute];
  });
}

// A loop ends after 65,535 steps, as in a driver that limits them.
bp_status long_line(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  if (!frame->loop) return right_kernel(frame, args, n_args, outs, n_outs);
  bp_loop loop = *frame->loop;
  std::vector<int64_t> sizes(loop.sizes, loop.sizes + loop.rank);
  for (int32_t d = 0; d < loop.rank; ++d)
    if (loop.strides[d] == 0) sizes[static_cast<size_t>(d)] = std::min<int64_t>(sizes[static_cast<size_t>(d)], 65535);
  loop.sizes = sizes.data();
  bp_frame changed = *frame;
  changed.loop = &loop;
  return right_kernel(&changed, args, n_args, outs, n_outs);
}

// The result is taken for a dense one.
bp_status dense_result(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return with_loop(frame, args, n_args, outs, n_outs, [&](const bp_loop& loop, std::vector<int64_t>& strides) {
    if (loop.rank == 1) strides[0] = backplane::plugin::kItemSize[outs[0].u.t->dtype];
  });
}

// Operands of two axes are taken for row-major ones.
bp_status row_major(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return with_loop(frame, args, n_args, outs, n_outs, [](const bp_loop& loop, std::vector<int64_t>& strides) {
    for (int32_t k = 1; loop.rank == 2 && k < loop.n_operands; ++k) {
      int64_t* stride = &strides[static_cast<size_t>(2 * k)];
      if (stride[0] > 0 && stride[0] < stride[1]) std::swap(stride[0], stride[1]);
    }
  });
}

// A stride that leads backward is taken for none.
bp_status no_negative_strides(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                              int32_t n_outs) {
  return with_loop(frame, args, n_args, outs, n_outs, [](const bp_loop&, std::vector<int64_t>& strides) {
    for (int64_t& stride : strides) stride = std::max<int64_t>(stride, 0);
  });
}

// Vectors of 16 bytes, for which every tensor is taken to be aligned.
bp_value aligned_down(const bp_value& slot, bp_tensor& tensor) {
  bp_value changed = slot;
  if (slot.tag != BP_TAG_TENSOR) return changed;
  tensor = *slot.u.t;
  tensor.dl.byte_offset &= ~uint64_t{15};
  changed.u.t = &tensor;
  return changed;
}
bp_status aligned_argument(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                           int32_t n_outs) {
  bp_tensor tensor;
  const bp_value changed = aligned_down(args[0], tensor);
  return right_kernel(frame, frame->loop ? args : &changed, n_args, outs, n_outs);
}
bp_status aligned_result(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  bp_tensor tensor;
  bp_value changed = aligned_down(outs[0], tensor);
  return right_kernel(frame, args, n_args, &changed, n_outs);
}

// A flat call that writes `more` elements beyond the result's.
bp_status flat_count(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs,
                     int64_t more) {
  bp_tensor out = *outs[0].u.t;
  const auto item = static_cast<int64_t>(backplane::plugin::kItemSize[out.dtype]);
  if (frame->loop || static_cast<int64_t>(out.nbytes) < 16 * item)
    return right_kernel(frame, args, n_args, outs, n_outs);
  out.nbytes += static_cast<uint64_t>(more * item);
  bp_value changed = outs[0];
  changed.u.t = &out;
  return right_kernel(frame, args, n_args, &changed, n_outs);
}
bp_status tail(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return flat_count(frame, args, n_args, outs, n_outs, -1);
}
bp_status past_end(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return flat_count(frame, args, n_args, outs, n_outs, 1);
}

// Elements behind the first 2^16 are left as they are.
bp_status first_items(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  constexpr int64_t kItems = 1 << 16;
  const bp_tensor& out = *outs[0].u.t;
  const auto count = static_cast<int64_t>(out.nbytes / backplane::plugin::kItemSize[out.dtype]);
  return count > kItems ? flat_count(frame, args, n_args, outs, n_outs, kItems - count)
                        : right_kernel(frame, args, n_args, outs, n_outs);
}

// Kernels reach the first 16 MiB of a block alone.
bp_status bound_in_part(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  return outs[0].u.t->dl.byte_offset < 16 << 20 ? right_kernel(frame, args, n_args, outs, n_outs) : BP_OK;
}

// Integers of 64 bits are read and written as if they had 32.
void xor_of_low_words(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_MASK_INTEGER>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      sim::map_two<T, T>(loop, [](T x, T y) { return static_cast<T>(static_cast<int32_t>(x ^ y)); });
    });
  });
}

void maximum_without_nan(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_MASK_FLOATING>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] { sim::map_two<T, T>(loop, [](T x, T y) { return x > y ? x : y; }); });
  });
}

void exp_in_half_precision(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_MASK_FLOATING>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      sim::map_one<T, T>(loop, [](T x) {
        const float rounded = backplane::plugin::float16(std::exp(static_cast<float>(x)));
        return static_cast<T>(rounded);
      });
    });
  });
}

// Shows in the derivative of sin, not in sin.
void cos_in_single_precision(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT64)>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      sim::map_one<T, T>(loop, [](T x) { return static_cast<T>(static_cast<float>(std::cos(x))); });
    });
  });
}

void less_in_bytes(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_MASK_FLOATING>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop()] {
      sim::map_two<uint8_t, T>(loop, [](T x, T y) { return x < y ? uint8_t{0xff} : uint8_t{0}; });
    });
  });
}

bp_status empty(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  if (outs[0].u.t->nbytes) return right_kernel(frame, args, n_args, outs, n_outs);
  frame->host->set_error(BP_ERROR_VALUE, "there is nothing to launch");
  return BP_ERROR_VALUE;
}

bp_status no_message(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { return BP_ERROR_DEVICE; }

bp_status leak(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  frame->host->retain(outs[0].u.t);
  return right_kernel(frame, args, n_args, outs, n_outs);
}

// Computes into the result, then into the argument too.
bp_status writes_argument(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  const bp_status status = right_kernel(frame, args, n_args, outs, n_outs);
  if (status != BP_OK || frame->loop || args[0].tag != BP_TAG_TENSOR) return status;
  bp_value into = args[0];
  into.flags = BP_VALUE_GIVEN;
  return right_kernel(frame, args, n_args, &into, 1);
}

// The argument of the first call of a size is taken for that of all: "the weights do not change".
bp_status argument_kept(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  static std::map<uint64_t, bp_tensor> kept;
  if (frame->loop || args[0].tag != BP_TAG_TENSOR) return right_kernel(frame, args, n_args, outs, n_outs);
  bp_tensor tensor = *args[0].u.t;
  const bp_tensor& first = kept.emplace(tensor.nbytes, tensor).first->second;
  tensor.dl.data = first.dl.data;
  tensor.dl.byte_offset = first.dl.byte_offset;
  bp_value changed = args[0];
  changed.u.t = &tensor;
  return right_kernel(frame, &changed, n_args, outs, n_outs);
}

// Computes into the argument of the call before, as if it were its own by now.
bp_status argument_reused(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  static bp_tensor before{};
  const bp_status status = right_kernel(frame, args, n_args, outs, n_outs);
  if (status != BP_OK || frame->loop || args[0].tag != BP_TAG_TENSOR) return status;
  const bp_tensor last = std::exchange(before, *args[0].u.t);
  if (last.nbytes != before.nbytes || last.dtype != before.dtype) return status;
  bp_tensor into = before;
  into.dl.data = last.dl.data;
  into.dl.byte_offset = last.dl.byte_offset;
  bp_value changed = outs[0];
  changed.u.t = &into;
  return right_kernel(frame, args, n_args, &changed, 1);
}

bp_status argument_released(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs,
                            int32_t n_outs) {
  const bp_status status = right_kernel(frame, args, n_args, outs, n_outs);
  if (args[0].tag == BP_TAG_TENSOR) frame->host->release(args[0].u.t);
  return status;
}

// No fault: the argument of the call before is held until then.
bp_status argument_held(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  static bp_tensor* held = nullptr;
  if (args[0].tag != BP_TAG_TENSOR) return right_kernel(frame, args, n_args, outs, n_outs);
  frame->host->retain(args[0].u.t);
  if (bp_tensor* before = std::exchange(held, args[0].u.t)) frame->host->release(before);
  return right_kernel(frame, args, n_args, outs, n_outs);
}

// Keeps a parameter of its work at one place for all streams: the host writes it there when it records a call, the
// queue reads it when it runs the call. Queues often wait for each other, hosts do not: each run waits for a moment, in
// which the next host records, so that this is found on a machine whose threads seldom run at a time, too.
void atan_by_way_of_one_place(const Call& call) {
  static std::atomic<int> recorded, place;
  const int mine = ++recorded;
  place = mine;
  backplane::plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(
      call.compute(), [&]<class T>() {
        call.record([loop = call.loop(), mine] {
          for (int turn = 0; turn < 20 && place == mine; ++turn)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          const T error = static_cast<T>(place - mine);
          sim::map_one<T, T>(loop, [error](T x) { return std::atan(x) + error; });
        });
      });
}

// "The result is overwritten anyway": and so is the argument that it shares its memory with.
void negative_over_zeros(const Call& call) {
  backplane::plugin::dispatch_dtype<BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)>(
      call.compute(), [&]<class T>() {
        call.record([loop = call.loop()] {
          sim::map_one<T, T>(loop, [](T) { return T(0); });
          sim::map_one<T, T>(loop, [](T x) { return static_cast<T>(-x); });
        });
      });
}

bp_status segfault(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) {
  std::raise(SIGSEGV);
  return BP_OK;
}
bp_status aborts(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { std::abort(); }

// Fails in memory that begins where its block does: checked mode, and results of the kit, begin elsewhere.
bp_status behind_margins(const bp_frame* frame, const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  const bp_tensor& out = *outs[0].u.t;
  if (out.dl.byte_offset != 0 || out.nbytes <= 16) return right_kernel(frame, args, n_args, outs, n_outs);
  frame->host->set_error(BP_ERROR_DATA, "broken: found no margin");
  return BP_ERROR_DATA;
}

// A device that fails, and of one element does not even say so.
bp_status without_power(const bp_frame* frame, const bp_value*, int32_t, bp_value* outs, int32_t) {
  if (outs[0].u.t->nbytes <= 16) return BP_OK;
  frame->host->set_error(BP_ERROR_DEVICE, "broken: the device has no power");
  return BP_ERROR_DEVICE;
}

// The queue never comes to the end of the call.
void sqrt_without_an_end(const Call& call) {
  call.record([] {
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  });
}

// Computes in scratch memory, which it asks for in its first call alone.
void negative_in_scratch(const Call& call) {
  static char* kept = nullptr;
  constexpr uint64_t kSize = 1 << 16;
  if (!kept) kept = call.scratch(kSize);
  backplane::plugin::dispatch_dtype<BP_MASK_FLOATING>(call.compute(), [&]<class T>() {
    call.record([loop = call.loop(), memory = kept] {
      sim::map_one<T, T>(loop, [memory](T x) {
        std::memcpy(memory, &x, sizeof x);
        T read;
        std::memcpy(&read, memory, sizeof read);
        return static_cast<T>(-read);
      });
    });
  });
}

const std::map<std::string, KernelFault> kKernelFaults = {
    {"broadcast", {"bp::add", broadcast}},
    {"stride", {"bp::subtract", stride}},
    {"long_line", {"bp::sum", long_line}},
    {"bound_in_part", {"bp::add", bound_in_part}},
    {"tail", {"bp::multiply", tail}},
    {"first_items", {"bp::tanh", first_items}},
    {"low_words", {"bp::bitwise_xor", sim::kernel<xor_of_low_words>, BP_MASK_INTEGER}},
    {"long_minimum", {"bp::min", long_line}},
    {"tail_of_batches", {"bp::floor", tail}},
    {"broadcast_of_tangents", {"bp::add", broadcast}},
    {"in_place",
     {"bp::negative", sim::kernel<negative_over_zeros>, BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64),
      BP_KERNEL_INPLACE}},
    {"segfault", {"bp::negative", segfault}},
    {"abort", {"bp::negative", aborts}},
    {"hangs", {"bp::sqrt", sim::kernel<sqrt_without_an_end>, BP_DTYPE_BIT(BP_FLOAT64)}},
    {"behind_margins", {"bp::erf", behind_margins}},
    {"without_power", {"bp::sign", without_power}},
    {"past_end", {"bp::negative", past_end}},
    {"nan", {"bp::maximum", sim::kernel<maximum_without_nan>, BP_MASK_FLOATING}},
    {"promotion", {"bp::atan2", nullptr, BP_MASK_ANY, BP_KERNEL_CASTS}},
    {"accuracy", {"bp::exp", sim::kernel<exp_in_half_precision>, BP_MASK_FLOATING}},
    {"derivative", {"bp::cos", sim::kernel<cos_in_single_precision>, BP_DTYPE_BIT(BP_FLOAT64)}},
    {"bool_bytes", {"bp::less", sim::kernel<less_in_bytes>, BP_MASK_FLOATING}},
    {"empty", {"bp::sin", empty}},
    {"no_message", {"bp::tanh", no_message}},
    {"leak", {"bp::floor", leak}},
    {"writes_argument", {"bp::ceil", writes_argument}},
    {"scratch_kept", {"bp::negative", sim::kernel<negative_in_scratch>, BP_MASK_FLOATING}},
    {"dense_result", {"bp::expm1", dense_result}},
    {"row_major", {"bp::log", row_major}},
    {"no_negative_strides", {"bp::trunc", no_negative_strides}},
    {"aligned_argument", {"bp::cos", aligned_argument}},
    {"aligned_result", {"bp::log1p", aligned_result}},
    {"argument_kept", {"bp::round", argument_kept}},
    {"argument_reused", {"bp::round", argument_reused}},
    {"argument_held", {"bp::round", argument_held}},
    {"argument_released", {"bp::round", argument_released}},
    {"one_place",
     {"bp::atan", sim::kernel<atan_by_way_of_one_place>, BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64)}},
};

}  // namespace

const KernelFault* kernel_fault(const std::string& name) {
  const auto found = kKernelFaults.find(name);
  return found == kKernelFaults.end() ? nullptr : &found->second;
}
