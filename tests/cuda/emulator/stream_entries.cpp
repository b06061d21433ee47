// The entry points of libcuda.so.1 about streams and events: what orders work, and what waits for it.
#include <algorithm>

#include "entries.hpp"

namespace emulator {

std::shared_ptr<Stream> find_stream(const char* call, driver::Stream handle, const Context& context, int& failed) {
  auto& streams = Device::instance().streams;
  std::shared_ptr<Stream> found = streams.find(handle);
  if (!found) {
    failed = refuse_handle(call, streams, handle, "stream");
  } else if (found->device != context.device) {
    failed = refuse(call, "the stream is of another context than the current one", 400);
  } else if (found->capture && found->capture->broken) {
    failed = 901;
  } else {
    return found;
  }
  return nullptr;
}

int break_capture(const char* call, Capture& capture, int code) {
  capture.broken = true;
  return refuse(call, "not permitted here: it breaks a capture", code);
}

int check_not_capturing(const char* call) {
  for (const auto& [handle, stream] : Device::instance().streams.living()) {
    Capture* capture = stream->capture.get();
    if (!capture || capture->mode == driver::kCaptureRelaxed) continue;
    if (capture->mode == driver::kCaptureGlobal || capture->thread == std::this_thread::get_id())
      return break_capture(call, *capture, 900);
  }
  return 0;
}

namespace {

// An event that the host may ask about. Otherwise nullptr, and why.
std::shared_ptr<Event> find_event(const char* call, driver::Event handle, int& failed) {
  auto& events = Device::instance().events;
  std::shared_ptr<Event> found = events.find(handle);
  if (!found) {
    failed = refuse_handle(call, events, handle, "event");
  } else if (const auto capture = found->capture.lock()) {
    failed = break_capture(call, *capture, 907);
  } else {
    return found;
  }
  return nullptr;
}

int make_stream(const char* call, driver::Stream* stream, const Context& context, int priority) {
  if (const int refused = check_not_capturing(call)) return refused;
  auto made = std::make_shared<Stream>();
  made->device = context.device;
  made->priority = std::clamp(priority, kGreatestPriority, 0);
  *stream = static_cast<driver::Stream>(Device::instance().streams.add(std::move(made)));
  return 0;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

extern "C" {

int cuStreamCreate(driver::Stream* stream, unsigned) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamCreate);
  return make_stream("cuStreamCreate", stream, *context, 0);
}
int cuStreamCreateWithPriority(driver::Stream* stream, unsigned, int priority) {
  BP_EMULATOR_ENTER_CONTEXT(cuStreamCreateWithPriority);
  return make_stream("cuStreamCreateWithPriority", stream, *context, priority);
}
int cuStreamDestroy_v2(driver::Stream stream) {
  BP_EMULATOR_ENTER(cuStreamDestroy);
  auto& streams = Device::instance().streams;
  const auto on = streams.find(stream);
  if (!on) return refuse_handle("cuStreamDestroy", streams, stream, "stream");
  if (on->capture) return break_capture("cuStreamDestroy", *on->capture, 900);
  Device::instance().run([&] { return on->tasks.empty(); });
  streams.erase(stream);
  return 0;
}
int cuStreamGetCtx(driver::Stream stream, driver::Context* context) {
  BP_EMULATOR_ENTER(cuStreamGetCtx);
  const auto on = Device::instance().streams.find(stream);
  if (!on) return refuse_handle("cuStreamGetCtx", Device::instance().streams, stream, "stream");
  *context = reinterpret_cast<driver::Context>(&Device::instance().contexts[on->device]);
  return 0;
}
int cuStreamGetPriority(driver::Stream stream, int* priority) {
  BP_EMULATOR_ENTER_STREAM(cuStreamGetPriority, stream);
  *priority = on->priority;
  return 0;
}
int cuStreamSynchronize(driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuStreamSynchronize, stream);
  if (on->capture) return break_capture("cuStreamSynchronize", *on->capture, 900);
  Device::instance().run([&] { return on->tasks.empty(); });
  if (context->lost) return context->lost->code;
  return on->tasks.empty() ? 0 : refuse("cuStreamSynchronize", "the stream waits for what never comes", 702);
}
int cuStreamQuery(driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuStreamQuery, stream);
  if (on->capture) return break_capture("cuStreamQuery", *on->capture, 900);
  Device::instance().run_some();
  if (context->lost) return context->lost->code;
  return on->tasks.empty() ? 0 : driver::kNotReady;
}
int cuStreamWaitEvent(driver::Stream stream, driver::Event event, unsigned) {
  BP_EMULATOR_ENTER_STREAM(cuStreamWaitEvent, stream);
  auto& events = Device::instance().events;
  const auto held = events.find(event);
  if (!held) return refuse_handle("cuStreamWaitEvent", events, event, "event");
  const auto capture = held->capture.lock();
  if (capture && capture == on->capture) return 0;
  if (on->capture) return break_capture("cuStreamWaitEvent", *on->capture, 905);
  if (capture) return refuse("cuStreamWaitEvent", "a capture of several streams is not emulated", 801);
  Device::instance().wait_for(*on, held);
  return 0;
}
// Dropped once the context is lost, as the driver does.
int cuLaunchHostFunc(driver::Stream stream, driver::HostFunction function, void* argument) {
  BP_EMULATOR_ENTER_STREAM(cuLaunchHostFunc, stream);
  if (on->capture) return refuse("cuLaunchHostFunc", "a capture of the host's functions is not emulated", 801);
  Device::instance().record_on_host(*on, [=] { function(argument); });
  return 0;
}

int cuEventCreate(driver::Event* event, unsigned flags) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventCreate);
  auto made = std::make_shared<Event>();
  made->device = context->device;
  made->timed = !(flags & driver::kEventDisableTiming);
  *event = static_cast<driver::Event>(Device::instance().events.add(std::move(made)));
  return 0;
}
int cuEventDestroy_v2(driver::Event event) {
  BP_EMULATOR_ENTER(cuEventDestroy);
  auto& events = Device::instance().events;
  if (!events.find(event)) return refuse_handle("cuEventDestroy", events, event, "event");
  events.erase(event);
  return 0;
}
int cuEventRecord(driver::Event event, driver::Stream stream) {
  BP_EMULATOR_ENTER_STREAM(cuEventRecord, stream);
  auto& events = Device::instance().events;
  const auto held = events.find(event);
  if (!held) return refuse_handle("cuEventRecord", events, event, "event");
  if (held->device != on->device)
    return refuse("cuEventRecord", "the event is of another context than the stream", 400);
  held->capture = on->capture;
  if (on->capture) return 0;
  const uint64_t recording = ++held->recorded;
  Device::instance().record(*on, [held, recording] {
    held->done = std::max(held->done, recording);
    held->time = std::chrono::steady_clock::now();
  });
  return 0;
}
int cuEventQuery(driver::Event event) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventQuery);
  int failed = 0;
  const auto held = find_event("cuEventQuery", event, failed);
  if (!held) return failed;
  Device::instance().run_some();
  if (context->lost) return context->lost->code;
  return held->done == held->recorded ? 0 : driver::kNotReady;
}
int cuEventSynchronize(driver::Event event) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventSynchronize);
  int failed = 0;
  const auto held = find_event("cuEventSynchronize", event, failed);
  if (!held) return failed;
  const uint64_t recording = held->recorded;
  const Context& its = Device::instance().contexts[held->device];
  Device::instance().run([&] { return held->done >= recording || context->lost || its.lost; });
  if (context->lost || its.lost) return (context->lost ? *context : its).lost->code;
  return held->done >= recording ? 0 : refuse("cuEventSynchronize", "the event waits for what never comes", 702);
}
int cuEventElapsedTime(float* milliseconds, driver::Event start, driver::Event end) {
  BP_EMULATOR_ENTER_CONTEXT(cuEventElapsedTime);
  std::shared_ptr<Event> held[2];
  const driver::Event handles[2] = {start, end};
  for (int k = 0; k < 2; ++k) {
    int failed = 0;
    held[k] = find_event("cuEventElapsedTime", handles[k], failed);
    if (!held[k]) return failed;
    if (!held[k]->timed) return refuse("cuEventElapsedTime", "the event keeps no time", 400);
    if (held[k]->recorded == 0) return refuse("cuEventElapsedTime", "the event was not recorded", 400);
    if (held[k]->device != context->device) return refuse("cuEventElapsedTime", "the event is of another context", 400);
  }
  for (const auto& one : held)
    if (one->done != one->recorded) return driver::kNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(held[1]->time - held[0]->time).count();
  return 0;
}

}  // extern "C"
