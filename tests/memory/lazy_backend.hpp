// A backend whose work runs only when somebody waits: streams, tickets, deferred errors, the vendor's streams and
// events. Its memory is the host's, which the core does not know.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "backplane/abi/device_extensions.h"
#include "host_backend.hpp"
#include "memory/process/plugin_record.hpp"
#include "null_backend.hpp"
#include "record/host_table.hpp"

namespace backplane::testing {

struct Work {
  uint64_t ticket;
  std::function<void()> run;
};

struct LazyStream {
  std::vector<Work> queue;
  uint64_t done = 0;
  uint64_t flushed = 0;
  bp_deferred_error error{};
  void run_until(uint64_t ticket) {
    while (!queue.empty() && queue.front().ticket <= ticket) {
      Work work = std::move(queue.front());
      queue.erase(queue.begin());
      work.run();
      done = work.ticket;
    }
    done = std::max(done, ticket);
  }
};

// An event of this vendor's API: a position on a stream.
struct LazyEvent {
  LazyStream* stream;
  uint64_t ticket;
};

struct LazyDevice {
  int stream_waits = 0;
  int events = 0;                                                                     // that are not released
  std::function<uint64_t(uint64_t)> stated = [](uint64_t ticket) { return ticket; };  // in errors
  bool tells_errors = true;
  std::set<void*> blocks;
};
inline LazyDevice lazy_device;

inline LazyStream& stream_of(bp_stream* s) { return *reinterpret_cast<LazyStream*>(s); }
inline char* at(void* data, uint64_t offset) { return static_cast<char*>(data) + offset; }

inline bp_backend_def lazy_definition() {
  bp_backend_def d = host_backend("lazy");
  d.flags = 0;
  d.allocate = [](void*, int32_t, uint64_t size, void** data) -> bp_status {
    lazy_device.blocks.insert(*data = std::malloc(size));
    return BP_OK;
  };
  d.deallocate = [](void*, int32_t, void* data, uint64_t) -> bp_status {
    lazy_device.blocks.erase(data);
    std::free(data);
    return BP_OK;
  };
  d.copy_from_host = [](void*, int32_t, bp_stream* s, uint64_t ticket, void* dst, uint64_t offset, const void* src,
                        uint64_t size) -> bp_status {
    auto bytes =
        std::make_shared<std::vector<char>>(static_cast<const char*>(src), static_cast<const char*>(src) + size);
    stream_of(s).queue.push_back({ticket, [=] { std::memcpy(at(dst, offset), bytes->data(), bytes->size()); }});
    return BP_OK;
  };
  d.copy_to_host = [](void*, int32_t, bp_stream*, void* dst, void* src, uint64_t offset, uint64_t size) -> bp_status {
    std::memcpy(dst, at(src, offset), size);
    return BP_OK;
  };
  d.copy = [](void*, int32_t, bp_stream* s, uint64_t ticket, void* dst, uint64_t dst_offset, void* src,
              uint64_t src_offset, uint64_t size) -> bp_status {
    stream_of(s).queue.push_back({ticket, [=] { std::memmove(at(dst, dst_offset), at(src, src_offset), size); }});
    return BP_OK;
  };
  d.stream_create = [](void*, int32_t, bp_stream** s) -> bp_status {
    *s = reinterpret_cast<bp_stream*>(new LazyStream);
    return BP_OK;
  };
  d.stream_destroy = [](void*, int32_t, bp_stream* s) { delete &stream_of(s); };
  d.flush = [](void*, int32_t, bp_stream* s, uint64_t ticket) -> bp_status {
    return stream_of(s).flushed = ticket, BP_OK;
  };
  d.completed = [](void*, int32_t, bp_stream* s, uint64_t* ticket) -> bp_status {
    return *ticket = stream_of(s).done, BP_OK;
  };
  d.wait = [](void*, int32_t, bp_stream* s, uint64_t ticket) -> bp_status {
    EXPECT_GE(stream_of(s).flushed, ticket) << "the core must flush before it waits";
    stream_of(s).run_until(ticket);
    return stream_of(s).error.code;
  };
  d.stream_wait = [](void*, int32_t, bp_stream* s, bp_stream* other, uint64_t ticket) -> bp_status {
    ++lazy_device.stream_waits;
    EXPECT_GE(stream_of(other).flushed, ticket) << "the core must flush before it orders streams";
    stream_of(s).queue.push_back({0, [other, ticket] { stream_of(other).run_until(ticket); }});
    return BP_OK;
  };
  static const bp_extension_events kEvents{
      BP_HEADER(bp_extension_events),
      [](void*, int32_t, bp_stream* s, uint64_t ticket, void* event) -> bp_status {
        const LazyEvent position = *static_cast<LazyEvent*>(event);
        stream_of(s).queue.push_back({ticket, [position] { position.stream->run_until(position.ticket); }});
        return BP_OK;
      },
      [](void*, int32_t, bp_stream* s, uint64_t ticket, void** event) -> bp_status {
        ++lazy_device.events;
        *event = new LazyEvent{&stream_of(s), ticket};
        return BP_OK;
      },
      [](void*, int32_t, void* event) {
        --lazy_device.events;
        delete static_cast<LazyEvent*>(event);
      }};
  d.extension = [](void*, const char* name, uint32_t) -> const void* {
    return std::strcmp(name, BP_EXTENSION_EVENTS) == 0 ? &kEvents : nullptr;
  };
  d.deferred_error = [](void*, int32_t, bp_stream* s, bp_deferred_error* out) -> bp_status {
    if (!lazy_device.tells_errors) return BP_ERROR_DEVICE;
    *out = stream_of(s).error;
    stream_of(s).error = {};
    return BP_OK;
  };
  return d;
}

// Doubles its flat float64 argument; 13 among the elements is bad data, 666 kills the device.
inline bp_status twice(const bp_frame* frame, const bp_value* args, int32_t, bp_value* outs, int32_t) {
  const bp_tensor in = *args[0].u.t, out = *outs[0].u.t;
  LazyStream* stream = &stream_of(frame->stream);
  uint64_t ticket = frame->ticket;
  stream->queue.push_back({ticket, [=] {
                             const auto* x = reinterpret_cast<const double*>(at(in.dl.data, in.dl.byte_offset));
                             auto* y = reinterpret_cast<double*>(at(out.dl.data, out.dl.byte_offset));
                             for (uint64_t i = 0; i < in.nbytes / sizeof(double); ++i) {
                               if (x[i] == 13 || x[i] == 666) {
                                 stream->error.ticket = lazy_device.stated(ticket);
                                 stream->error.code = x[i] == 13 ? BP_ERROR_DATA : BP_ERROR_DEVICE_LOST;
                                 std::strcpy(stream->error.message, "bp::negative: an unlucky element");
                               }
                               y[i] = 2 * x[i];
                             }
                           }});
  return BP_OK;
}

// Takes two blocks of scratch, and records nothing.
inline void* scratch_blocks[2];
inline bp_status with_scratch(const bp_frame* frame, const bp_value*, int32_t, bp_value*, int32_t) {
  for (void*& block : scratch_blocks)
    if (bp_status status = frame->host->scratch(frame, 4096, &block)) return status;
  return BP_OK;
}

inline bp_device lazy_backend() {
  static const bp_device id = [] {
    null_backend();
    auto* record = new bp_plugin_record;
    record->name = "lazy";
    record->index = 2;
    bp_backend_def backend = lazy_definition();
    EXPECT_EQ(core::host_table.register_backend(record, &backend), BP_OK) << core::host_table.get_error();
    bp_kernel_def kernel = kernel_row("bp::negative", "lazy", twice);  // any unary op will do
    kernel.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
    EXPECT_EQ(core::host_table.register_kernel(record, &kernel), BP_OK) << core::host_table.get_error();
    kernel = kernel_row("bp::exp", "lazy", with_scratch);
    kernel.dtypes = BP_DTYPE_BIT(BP_FLOAT64);
    EXPECT_EQ(core::host_table.register_kernel(record, &kernel), BP_OK) << core::host_table.get_error();
    return parse_device("lazy");
  }();
  return id;
}

inline Tensor lazy(std::initializer_list<double> v) {
  std::vector<int64_t> shape{static_cast<int64_t>(v.size())};
  return from_host(v.begin(), Shape(shape), {}, BP_FLOAT64, lazy_backend());
}
inline Tensor doubled(const Tensor& x) { return op("negative", {value(x)}); }

}  // namespace backplane::testing
