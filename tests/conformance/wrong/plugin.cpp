// Registers the ops of ops.yaml, and kernels with a mistake for some of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "backplane/plugin.hpp"
#include "wrong_records.h"

namespace {

using namespace backplane::plugin;

void copy(const bp_tensor& from, const bp_tensor& to) {
  std::memcpy(static_cast<char*>(to.dl.data) + to.dl.byte_offset,
              static_cast<const char*>(from.dl.data) + from.dl.byte_offset, to.nbytes);
}

bp_status same_memory(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor& x = *args[0].u.t;
  bp_tensor* view = nullptr;
  const bp_status status =
      frame->host->make_view(frame, args[0].u.t, x.dl.ndim, x.dl.shape, x.dl.strides, x.dl.byte_offset, &view);
  if (status != BP_OK) return status;
  outs[0].tag = BP_TAG_TENSOR;
  outs[0].u.t = view;
  return BP_OK;
}

bp_status kept_float64(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  if (frame->compute == BP_FLOAT64) frame->host->retain(args[0].u.t);
  copy(*args[0].u.t, *outs[0].u.t);
  return BP_OK;
}

struct Copied {
  const float* from;
  float* to;
  int64_t size;
};

bp_status copy_piece(void* context, int64_t begin, int64_t end, int32_t) {
  const auto& job = *static_cast<const Copied*>(context);
  for (int64_t i = begin; i < std::min(end + 1, job.size); ++i) job.to[i] = job.from[i];
  return BP_OK;
}

bp_status raced(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor &x = *args[0].u.t, &out = *outs[0].u.t;
  Copied job{reinterpret_cast<const float*>(static_cast<const char*>(x.dl.data) + x.dl.byte_offset),
             reinterpret_cast<float*>(static_cast<char*>(out.dl.data) + out.dl.byte_offset),
             static_cast<int64_t>(out.nbytes / sizeof(float))};
  return frame->host->parallel_for(0, job.size, 1, copy_piece, &job);
}

struct LostNans {
  template <class T>
  static void run(ConstTensor<T> x, double by, MutTensor<T> out) {
    for (int64_t i = 0; i < out.size(); ++i)
      out.data()[i] = std::isnan(x.data()[i]) ? T(0) : x.data()[i] * static_cast<T>(by);
  }
};
constexpr bp_dtype_mask kFloats = BP_DTYPE_BIT(BP_FLOAT32) | BP_DTYPE_BIT(BP_FLOAT64);

bp_status ends_the_process(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { std::exit(0); }
bp_status ends_the_process_at_once(const bp_frame*, const bp_value*, int32_t, bp_value*, int32_t) { std::_Exit(0); }

bp_status crashes_in_the_reference(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  if (frame->compute == BP_FLOAT64) std::raise(SIGSEGV);
  copy(*args[0].u.t, *outs[0].u.t);
  return BP_OK;
}

void tail_of_a_line(ConstTensor<float> x, MutTensor<float> out) {
  const int64_t n = out.size(), whole = n > 16 ? n - n % 4 : n;
  for (int64_t i = 0; i < n; ++i) out.data()[i] = i < whole ? 2 * x.data()[i] : 0;
}

bp_status nothing_refused(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor &x = *args[0].u.t, &out = *outs[0].u.t;
  if (out.nbytes == 0) {
    frame->host->set_error(BP_ERROR_VALUE, "nothing to do");
    return BP_ERROR_VALUE;
  }
  const auto* from = reinterpret_cast<const float*>(static_cast<const char*>(x.dl.data) + x.dl.byte_offset);
  auto* to = reinterpret_cast<float*>(static_cast<char*>(out.dl.data) + out.dl.byte_offset);
  for (size_t i = 0; i < out.nbytes / sizeof(float); ++i) to[i] = 2 * from[i];
  return BP_OK;
}

void through_double(ConstTensor<int64_t> x, MutTensor<int64_t> out) {
  for (int64_t i = 0; i < out.size(); ++i) out.data()[i] = static_cast<int64_t>(static_cast<double>(x.data()[i]) + 1);
}

void greatest(ConstTensor<double> x, MutTensor<double> out) {
  double most = x.data()[0];
  for (int64_t i = 1; i < x.size(); ++i) most = std::fmax(most, x.data()[i]);
  out.data()[0] = most;
}

void order_in_place(ConstTensor<float> p, ConstTensor<float> g, ConstTensor<float> m, MutTensor<float> new_p,
                    MutTensor<float> new_m) {
  for (int64_t i = 0; i < p.size(); ++i) {
    new_m.data()[i] = m.data()[i] / 2 + g.data()[i];
    new_p.data()[i] = p.data()[i] - (m.data()[i] / 2 + g.data()[i]);
  }
}

void lost_nans(ConstTensor<double> x, double by, MutTensor<double> out) {
  for (int64_t i = 0; i < out.size(); ++i) out.data()[i] = std::isnan(x.data()[i]) ? 0 : x.data()[i] * by;
}

void read_beyond(ConstTensor<float> x, MutTensor<float> out) {
  const int64_t n = out.size();
  for (int64_t i = 0; i < n; ++i) out.data()[i] = x.data()[i] + (i + 1 == n ? 0 * x.data()[n] : 0);
}

// The result, in a buffer that all calls share.
void one_buffer(ConstTensor<float> x, double by, MutTensor<float> out) {
  static std::array<float, 1 << 18> buffer;
  const int64_t n = std::min<int64_t>(out.size(), int64_t{1} << 18);
  for (int64_t i = 0; i < n; ++i) buffer[static_cast<size_t>(i)] = x.data()[i] * static_cast<float>(by);
  for (int64_t i = 0; i < n; ++i) out.data()[i] = buffer[static_cast<size_t>(i)];
}

// The same for few elements; volatile, for a compiler may see that the calling thread has the values. Threads change
// places between the loops, which take too little time for them to meet by chance.
void few_in_one_buffer(ConstTensor<float> x, double by, MutTensor<float> out) {
  static volatile float buffer[8];
  const int64_t n = std::min<int64_t>(out.size(), 8);
  for (int64_t i = 0; i < n; ++i) buffer[i] = x.data()[i] * static_cast<float>(by);
  std::this_thread::yield();
  for (int64_t i = 0; i < n; ++i) out.data()[i] = buffer[i];
}

void register_all(const Registrar& registrar) {
  for (uint32_t i = 0; i < wrong_op_count; ++i) registrar.op(*wrong_ops[i]);
  registrar.kernel(BP_KERNEL("wrong::same_memory", "cpu", same_memory, .flags = BP_KERNEL_OWN_RESULTS));
  registrar.kernel(BP_KERNEL("wrong::kept_float64", "cpu", kept_float64));
  registrar.kernel(BP_KERNEL("wrong::raced", "cpu", raced));
  registrar.kernel(BP_KERNEL("wrong::lost_nans", "cpu", kernel<lost_nans>));
  registrar.kernel(BP_KERNEL("wrong::read_beyond", "cpu", kernel<read_beyond>));
  registrar.kernel(BP_KERNEL("wrong::one_buffer", "cpu", kernel<one_buffer>));
  registrar.kernel(
      BP_KERNEL("wrong::lost_nans_in_all", "cpu", (kernel_by_dtype<LostNans, kFloats>), .dtypes = kFloats));
  registrar.kernel(BP_KERNEL("wrong::tail_of_a_line", "cpu", kernel<tail_of_a_line>));
  registrar.kernel(BP_KERNEL("wrong::nothing_refused", "cpu", nothing_refused));
  registrar.kernel(BP_KERNEL("wrong::through_double", "cpu", kernel<through_double>));
  registrar.kernel(BP_KERNEL("wrong::greatest", "cpu", kernel<greatest>));
  registrar.kernel(BP_KERNEL("wrong::ends_the_process", "cpu", ends_the_process));
  registrar.kernel(BP_KERNEL("wrong::ends_the_process_at_once", "cpu", ends_the_process_at_once));
  registrar.kernel(BP_KERNEL("wrong::crashes_in_the_reference", "cpu", crashes_in_the_reference));
  registrar.kernel(BP_KERNEL("wrong::order_in_place", "cpu", kernel<order_in_place>, .flags = BP_KERNEL_INPLACE));
  registrar.kernel(BP_KERNEL("wrong::few_in_one_buffer", "cpu", kernel<few_in_one_buffer>));
}

}  // namespace

BP_DEFINE_PLUGIN(BP_PLUGIN_NAME, "0.1.0", register_all)
