// Runs a program, and beside it the same steps on the host, one after another.
#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "backplane/device.hpp"
#include "backplane/graph.hpp"
#include "backplane/ops.hpp"
#include "backplane/stream.hpp"
#include "memory/devices/device.hpp"
#include "program.hpp"
#include "unkind/extension.h"

namespace fuzz {
namespace {

using namespace backplane;
using Numbers = std::vector<int32_t>;

constexpr double kHangSeconds = 0.05;  // after which a device that hangs is lost

struct Wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

uint32_t bits(int32_t x) { return static_cast<uint32_t>(x); }
int32_t plus(int32_t x, int32_t y) { return static_cast<int32_t>(bits(x) + bits(y)); }
int32_t times(int32_t x, int32_t y) { return static_cast<int32_t>(bits(x) * bits(y)); }
template <class F>
Numbers each(const Numbers& a, const Numbers& b, F f) {
  Numbers made(a.size());
  std::transform(a.begin(), a.end(), b.begin(), made.begin(), f);
  return made;
}

// A tensor, its expected elements, and its place. Registers and recordings share cells.
struct Cell {
  Tensor tensor;
  Numbers expected;
  int device;
  bool undefined = false;  // a call that failed was to write it
};
using CellRef = std::shared_ptr<Cell>;

struct Recorded {
  Recording recording;
  CellRef target, source;
};

class Lane {
 public:
  Lane(const Program& program, int number) : program_(program), number_(number) {
    for (int d = 0; d < kDevices; ++d) {
      devices_[d] = parse_device(program.backend + ":" + std::to_string(d));
      make_streams(d);
    }
  }

  void run() {
    for (const Step& step : program_.steps)
      if (step.lane == number_) attempt(step);
    for (CellRef& cell : registers_) guarded([&] { read(cell); });
  }

 private:
  // A device without memory refuses the call, and a lost one all calls. Reads of a result that failed raise, on every
  // device.
  template <class F>
  bool guarded(F f) {
    try {
      f();
      return true;
    } catch (const Error& error) {
      if (error.code() == BP_ERROR_DEVICE_LOST && program_.loses()) {
        recover();
        return false;
      }
      if (error.code() == BP_ERROR_DATA && (program_.loses() || program_.plans("fail"))) return false;
      if (error.code() == BP_ERROR_MEMORY && program_.plans("oom")) return false;
      throw;
    }
  }

  void attempt(const Step& step) {
    const CellRef written = registers_[step.r];
    if (guarded([&] { perform(step); })) return;
    // What the call would have written in place may be half written.
    if (written && (step.op == Op::kInto || step.op == Op::kInplace || step.op == Op::kCapture))
      written->undefined = true;
    if (step.op == Op::kReplay && recordings_[step.slot % kRecordings])
      recordings_[step.slot % kRecordings]->target->undefined = true;
  }

  void recover() {
    static std::mutex one;
    std::lock_guard lock(one);
    for (auto& recorded : recordings_) recorded.reset();
    for (CellRef& cell : registers_) cell.reset();
    for (Event& event : events_) event = {};
    for (int d = 0; d < kDevices; ++d) {
      try {
        synchronize(devices_[d]);
      } catch (const Error& error) {
        if (error.code() == BP_ERROR_DEVICE_LOST) reset_device(devices_[d]);
      }
      make_streams(d);
    }
  }

  void make_streams(int d) {
    try {
      for (int s = 1; s < kStreams; ++s) streams_[d][s] = Stream(devices_[d]);
      streams_[d][0] = Stream::current(devices_[d]);
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_DEVICE_LOST) throw;
    }
  }

  static const Numbers& value_of(const CellRef& cell) { return cell->expected; }
  bool usable(const CellRef& cell) const { return cell && !cell->undefined; }
  bool together(const CellRef& a, const CellRef& b) const { return usable(a) && usable(b) && a->device == b->device; }
  Numbers made_of(int32_t number) const {
    Numbers values(static_cast<size_t>(program_.size));
    for (size_t i = 0; i < values.size(); ++i) values[i] = plus(number, static_cast<int32_t>(i * 7));
    return values;
  }
  Tensor from(const Numbers& values, bp_device device) const {
    return from_host(values.data(), std::span(&program_.size, 1), {}, BP_INT32, device);
  }
  void keep(const Step& step, Tensor tensor, Numbers expected, int device) {
    registers_[step.r] = std::make_shared<Cell>(Cell{std::move(tensor), std::move(expected), device});
  }
  Stream& stream_at(int device, int number) {
    Stream& stream = streams_[device][number];
    if (!stream) throw Error(BP_ERROR_DEVICE_LOST, "the device was lost before it had a stream");
    return stream;
  }
  Stream& stream_of(const Step& step, int device) { return stream_at(device, step.stream); }

  void compare(const Numbers& found, const Numbers& expected, const char* what) const {
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i] != expected[i])
        throw Wrong(std::string(what) + ": element " + std::to_string(i) + " is " + std::to_string(found[i]) +
                    ", expected " + std::to_string(expected[i]));
  }
  void read(const CellRef& cell) {
    if (!usable(cell)) return;
    Numbers found(cell->expected.size());
    to_host(cell->tensor, found.data());
    compare(found, cell->expected, "a read");
  }

  void perform(const Step& step) {
    switch (step.op) {
      case Op::kMake:
      case Op::kFull:
      case Op::kPinned:
        return make(step);
      case Op::kRecord:
      case Op::kWaitEvent:
      case Op::kSyncEvent:
      case Op::kQueryEvent:
      case Op::kWaitStream:
      case Op::kSync:
      case Op::kNewStream:
      case Op::kEmptyCache:
        return order(step);
      case Op::kCapture:
        return capture(step);
      case Op::kReplay:
        return replay(step);
      default:
        return compute(step);
    }
  }

  void make(const Step& step) {
    const int d = step.device;
    const StreamScope scope(stream_of(step, d));
    if (step.op == Op::kFull)
      return keep(step, full({program_.size}, int64_t{step.number}, BP_INT32, devices_[d]),
                  Numbers(static_cast<size_t>(program_.size), step.number), d);
    Numbers values = made_of(step.number);
    if (step.op == Op::kMake) return keep(step, from(values, devices_[d]), values, d);
    const Tensor pinned = pin(from(values, parse_device("cpu")), devices_[d]);
    keep(step, to_device(pinned, devices_[d], true), values, d);
  }

  void order(const Step& step) {
    Stream& stream = stream_at(step.device, step.stream);
    Stream& other = stream_at(step.other_device, step.other_stream);
    Event& event = events_[step.slot];
    switch (step.op) {
      case Op::kRecord:
        event = stream.record();
        break;
      case Op::kWaitEvent:
        stream.wait(event);
        break;
      case Op::kSyncEvent:
        event.synchronize();
        break;
      case Op::kQueryEvent:
        event.query();
        break;
      case Op::kWaitStream:
        stream.wait(other);
        break;
      case Op::kSync:
        stream.synchronize();
        break;
      case Op::kNewStream:
        if (step.stream) stream = Stream(devices_[step.device], step.number % 3 - 1);
        break;
      default:
        empty_cache(devices_[step.device]);
    }
  }

  void compute(const Step& step) {
    CellRef &r = registers_[step.r], a = registers_[step.a], b = registers_[step.b];
    if (step.op == Op::kDrop) return r.reset();
    if (step.op == Op::kRead) return read(r);
    if (!usable(a)) return;
    const int d = a->device;
    const StreamScope scope(stream_of(step, d));
    const Numbers sum = usable(b) ? each(value_of(a), value_of(b), plus) : Numbers();
    switch (step.op) {
      case Op::kAdd:
        if (together(a, b)) keep(step, add(a->tensor, b->tensor), sum, d);
        break;
      case Op::kScale: {
        Numbers scaled = value_of(a);
        for (int32_t& x : scaled) x = times(x, step.number);
        keep(step, multiply(a->tensor, int64_t{step.number}), scaled, d);
        break;
      }
      case Op::kInto:
        if (together(a, b) && together(a, r)) write(r, "bp::add", a, b, sum);
        break;
      case Op::kInplace:
        if (together(a, r)) change(r, "bp::add", value(a->tensor), each(value_of(r), value_of(a), plus));
        break;
      case Op::kCopy:
        if (step.other_device == d)
          registers_[step.r] = a;  // the very tensor
        else
          keep(step, to_device(a->tensor, devices_[step.other_device]), value_of(a), step.other_device);
        break;
      case Op::kCallback:
        stream_of(step, d).on_complete([cell = std::exchange(registers_[step.a], nullptr)]() mutable { cell.reset(); });
        break;
      case Op::kPinnedBack: {
        const Tensor host = to_device(a->tensor, parse_device("cpu"), true);
        stream_of(step, d).synchronize();
        Numbers found(a->expected.size());
        to_host(host, found.data());
        compare(found, a->expected, "a copy to pinned memory");
        break;
      }
      case Op::kCompiled:
        if (together(a, b)) keep(step, compiled(d, a, b), each(each(sum, value_of(a), times), value_of(b), plus), d);
        break;
      default:
        break;
    }
  }

  void write(CellRef& r, const char* op, const CellRef& a, const CellRef& b, const Numbers& expected) {
    bp_value slot = value(r->tensor);
    slot.flags = BP_VALUE_GIVEN;
    const bp_value args[] = {value(a->tensor), value(b->tensor)};
    if (const bp_status status = call_packed(find_op(op), args, 2, &slot, 1)) throw_last_error(status);
    r->expected = expected;
  }
  void change(CellRef& r, const char* op, const bp_value& by, const Numbers& expected) {
    const bp_value args[] = {value(r->tensor), by};
    if (const bp_status status = call_inplace(find_op(op), args, 2)) throw_last_error(status);
    r->expected = expected;
  }

  Tensor compiled(int d, const CellRef& a, const CellRef& b) {
    Graph& graph = graphs_[d];
    const Tensor inputs[] = {a->tensor, b->tensor};
    if (!graph)
      graph = make_graph(
          [](std::span<const Tensor> x) { return std::vector<Tensor>{add(multiply(add(x[0], x[1]), x[0]), x[1])}; },
          inputs);
    return graph.call(inputs)[0];
  }

  void capture(const Step& step) {
    CellRef r = registers_[step.r], a = registers_[step.a];
    if (!together(r, a) || r == a) return;
    auto& place = recordings_[step.slot % kRecordings];
    place.reset();
    Recording recording(devices_[r->device]);
    const bp_value args[] = {value(r->tensor), value(a->tensor)}, by[] = {value(r->tensor), value(int64_t{3})};
    bp_status status = call_inplace(find_op("bp::add"), args, 2);
    if (status == BP_OK) status = call_inplace(find_op("bp::multiply"), by, 2);
    if (status != BP_OK) throw_last_error(status);
    recording.end();
    place = Recorded{recording, r, a};
  }
  void replay(const Step& step) {
    const auto& recorded = recordings_[step.slot % kRecordings];
    if (!recorded || !usable(recorded->target) || !usable(recorded->source)) return;
    recorded->recording.replay(stream_at(recorded->target->device, step.stream));
    Numbers& target = recorded->target->expected;
    target = each(target, value_of(recorded->source), [](int32_t x, int32_t y) { return times(plus(x, y), 3); });
  }

  const Program& program_;
  const int number_;
  bp_device devices_[kDevices];
  Stream streams_[kDevices][kStreams];
  CellRef registers_[kRegisters];
  Event events_[kEvents];
  std::optional<Recorded> recordings_[kRecordings];
  Graph graphs_[kDevices];
};

// Throws what a lane threw.
void run_lanes(const Program& program) {
  std::vector<std::exception_ptr> thrown(static_cast<size_t>(program.lanes));
  const auto run = [&](int lane) {
    try {
      Lane(program, lane).run();
    } catch (...) {
      thrown[static_cast<size_t>(lane)] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (int lane = 1; lane < program.lanes; ++lane) threads.emplace_back(run, lane);
  run(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& one : thrown)
    if (one) std::rethrow_exception(one);
}

// Devices that are as new. Where one is reset all are: the others may have queued waits for its work.
void begin(const Program& program, const unkind_extension& unkind, void* context) {
  static std::set<std::string> lossy_backends;
  bool lossy = lossy_backends.erase(program.backend) != 0;
  unkind.plan(context, "");
  std::vector<bp_device> devices;
  for (int d = 0; d < kDevices; ++d) devices.push_back(parse_device(program.backend + ":" + std::to_string(d)));
  for (const bp_device device : devices) {
    try {
      synchronize(device);
    } catch (const Error&) {
      lossy = true;
    }
  }
  for (const bp_device device : devices) {
    if (lossy) reset_device(device);
    set_wait_timeout(device, program.plans("hang") ? std::optional(kHangSeconds) : std::nullopt);
  }
  if (program.loses()) lossy_backends.insert(program.backend);
  if (unkind.plan(context, program.plan.c_str()) != BP_OK) throw Wrong("the plan was refused: " + program.plan);
}

}  // namespace

std::string run_program(const Program& program) {
  const bp_backend_def& def = core::find_backend(program.backend)->def;
  const auto& unkind = *static_cast<const unkind_extension*>(def.extension(def.context, UNKIND_EXTENSION, 1));
  std::string wrong;
  try {
    begin(program, unkind, def.context);
    run_lanes(program);
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  char text[512];
  if (unkind.findings(def.context, text, sizeof text) != 0) wrong += (wrong.empty() ? "" : "; ") + std::string(text);
  return wrong;
}

}  // namespace fuzz
