// The simulated accelerator with one fault, which the environment variable BROKEN_FAULT names; without it, without one.
//
// Each fault is one that a backend's author may well make. The kit has to find it: see test_faults.py.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "broken_extensions.hpp"
#include "device.hpp"
#include "kernels/kernels.hpp"
#include "kernels/loops.hpp"

namespace {

using sim::Call;

// What the faulty kernel and the faulty table call: the right ones.
bp_kernel_fn right_kernel = nullptr;
bp_backend_def right{};

// ---- kernels ----

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

struct KernelFault {
  const char* op;
  bp_kernel_fn fn;
  bp_dtype_mask only = BP_MASK_ANY;
  uint32_t more_flags = 0;
};
const std::map<std::string, KernelFault> kKernelFaults = {
    {"broadcast", {"bp::add", broadcast}},
    {"stride", {"bp::subtract", stride}},
    {"tail", {"bp::multiply", tail}},
    {"past_end", {"bp::negative", past_end}},
    {"nan", {"bp::maximum", sim::kernel<maximum_without_nan>, BP_MASK_FLOATING}},
    {"promotion", {"bp::atan2", nullptr, BP_MASK_ANY, BP_KERNEL_CASTS}},
    {"accuracy", {"bp::exp", sim::kernel<exp_in_half_precision>, BP_MASK_FLOATING}},
    {"bool_bytes", {"bp::less", sim::kernel<less_in_bytes>, BP_MASK_FLOATING}},
    {"empty", {"bp::sin", empty}},
    {"no_message", {"bp::tanh", no_message}},
    {"leak", {"bp::floor", leak}},
    {"writes_argument", {"bp::ceil", writes_argument}},
    {"scratch_kept", {"bp::negative", sim::kernel<negative_in_scratch>, BP_MASK_FLOATING}},
};

// ---- the table ----

bp_status no_stream_wait(void*, int32_t, bp_stream*, bp_stream*, uint64_t) { return BP_OK; }
bp_status no_deferred_error(void*, int32_t, bp_stream*, bp_deferred_error*) { return BP_OK; }
bp_status silent_wait(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket) {
  right.wait(context, ordinal, stream, ticket);
  return BP_OK;
}
bp_status falling_completed(void* context, int32_t ordinal, bp_stream* stream, uint64_t* ticket) {
  static thread_local unsigned calls = 0;
  const bp_status status = right.completed(context, ordinal, stream, ticket);
  if (++calls % 2 && *ticket > 0) --*ticket;
  return status;
}
bp_status no_deallocate(void*, int32_t, void*, uint64_t) { return BP_OK; }
bp_status null_memory(void* context, int32_t ordinal, uint64_t size, void** data) {
  if (right.allocate(context, ordinal, size, data) != BP_OK) *data = nullptr;
  return BP_OK;
}
bp_status copy_to_start(void* context, int32_t ordinal, bp_stream* stream, uint64_t ticket, void* dst, uint64_t,
                        void* src, uint64_t src_offset, uint64_t size) {
  return right.copy(context, ordinal, stream, ticket, dst, 0, src, src_offset, size);
}

const std::map<std::string, std::function<void(bp_backend_def&)>> kTableFaults = {
    {"stream_wait", [](bp_backend_def& def) { def.stream_wait = no_stream_wait; }},
    {"lost_error",
     [](bp_backend_def& def) {
       def.wait = silent_wait;
       def.deferred_error = no_deferred_error;
     }},
    {"completed_falls", [](bp_backend_def& def) { def.completed = falling_completed; }},
    {"deallocate", [](bp_backend_def& def) { def.deallocate = no_deallocate; }},
    {"null_memory", [](bp_backend_def& def) { def.allocate = null_memory; }},
    {"copy_offset", [](bp_backend_def& def) { def.copy = copy_to_start; }},
};

// ---- registration ----

const bp_host* right_host = nullptr;

bp_status register_backend(bp_plugin_record* record, const bp_backend_def* def) {
  right = *def;
  bp_backend_def faulty = *def;
  if (const auto found = kTableFaults.find(fault()); found != kTableFaults.end()) found->second(faulty);
  break_extensions(right, faulty);
  return right_host->register_backend(record, &faulty);
}

void register_row(const backplane::plugin::Registrar& registrar, sim::Backend& backend, const sim::Table& table,
                  sim::Row row) {
  const auto add = [&](const sim::Row& one) {
    registrar.kernel(backplane::plugin::kernel_row(one.op, backend.name(), one.fn, table.file, one.line,
                                                   {.dtypes = one.dtypes, .flags = one.flags, .context = &backend}));
  };
  const auto found = kKernelFaults.find(fault());
  if (found == kKernelFaults.end() || std::strcmp(found->second.op, row.op) != 0) return add(row);
  const KernelFault& faulty = found->second;
  right_kernel = row.fn;
  sim::Row rest = row;
  rest.dtypes &= ~faulty.only;
  if (faulty.fn) row.fn = faulty.fn;
  row.dtypes &= faulty.only;
  row.flags |= faulty.more_flags;
  add(row);
  if (rest.dtypes) add(rest);
}

void register_all(const backplane::plugin::Registrar& registrar) {
  static auto* const backend =
      new sim::Backend("broken", needs_handles() ? sim::Addressing::kHandle : sim::Addressing::kProtected, 1);
  right_host = registrar.host();
  static bp_host host;  // the backend keeps it
  host = *right_host;
  host.register_backend = register_backend;
  backend->register_on(backplane::plugin::Registrar(&host, registrar.record()));
  for (const sim::Table& table : sim::all_kernels())
    for (const sim::Row& row : table.rows) register_row(registrar, *backend, table, row);
}

}  // namespace

BP_DEFINE_PLUGIN("broken", "1.0", register_all)
