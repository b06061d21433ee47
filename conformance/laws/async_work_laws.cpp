// Laws of work that outlives its call: mode async. Late errors reach the readers of data that was to be
// written; executables and constants stay until the work that uses them has ended.
#include <memory>

#include "backplane/device.hpp"
#include "backplane/graph.hpp"
#include "laws/async_laws.hpp"

namespace backplane::conformance {
namespace {

Tensor ones(int64_t count, bp_device device) {
  return floats(std::vector<float>(static_cast<size_t>(count), 1.0f), device);
}

// The element behind the last one of `x`.
Tensor out_of_range(const Tensor& x) {
  const int64_t one = 1, index = x.get()->dl.shape[0];
  const Tensor indices = from_host(&index, std::span(&one, 1), {}, BP_INT64, x.device());
  bp_tensor* const listed[] = {indices.get()};
  bp_value list{};
  list.tag = BP_TAG_TENSOR_LIST;
  list.count = 1;
  list.u.tensors = listed;
  return run_op("bp::index", {value(x), list});
}

void expect_data_error(const Tensor& spoiled, const char* what) {
  try {
    read_floats(spoiled);
  } catch (const Error& error) {
    const std::string text = error.what();
    BP_CHECK(error.code() == BP_ERROR_DATA && text.find("bp::index") != std::string::npos, DATA, what,
             ": found the error \"", text, "\", expected a DataError that names bp::index");
    return;
  }
  detail::fail(BP_ERROR_DATA, what, ": found a result, expected DataError");
}

// A device may refuse the call itself. One that fails late has spoiled what the call was to write, on each stream.
void failures_follow_what_was_written(bp_device device) {
  const backplane::Stream first(device), second(device);
  const Tensor x = ones(4, device);
  for (int round = 0; round < 4; ++round) {
    Tensor bad, next;
    try {
      {
        const StreamScope scope(first);
        late(ones(kLateCount, device));
        bad = out_of_range(x);
      }
      const StreamScope scope(second);
      next = run_op("bp::add", {value(bad), value(1.0)});
    } catch (const Error& error) {
      if (error.code() != BP_ERROR_DATA) throw;
      if (!bad) continue;
    }
    if (next) expect_data_error(next, "what a second stream computed from a result that the first failed to write");
    expect_data_error(bad, "what a call failed to write");
    run_op_into("bp::add", {value(ones(1, device)), value(1.0)}, bad);
    expect_all(bad, 2, "a result that failed, after it was written anew");
  }
}

// Until `release`, where the device can hold a stream.
class Pause {
 public:
  Pause(const Table& table, const backplane::Stream& stream) {
    if (table.extension<bp_extension_callbacks>(BP_EXTENSION_CALLBACKS)) held_ = std::make_unique<HeldStream>(stream);
  }
  void release() { held_.reset(); }

 private:
  std::unique_ptr<HeldStream> held_;
};

// Behind the work that fails stands some that does not. A reader on another stream learns of the failure by the ticket
// alone.
void failures_state_their_own_tickets(const Table& table) {
  const bp_device device = table.device();
  const backplane::Stream first(device), second(device);
  const Tensor x = ones(4, device);
  Tensor bad, next;
  Pause pause(table, first);
  try {
    {
      const StreamScope scope(first);
      late(ones(kLateCount, device));
      bad = out_of_range(x);
      run_op("bp::add", {value(x), value(2.0)});
    }
    const StreamScope scope(second);
    next = run_op("bp::add", {value(bad), value(1.0)});
  } catch (const Error& error) {
    if (error.code() != BP_ERROR_DATA) throw;
    if (!bad) return;
  }
  pause.release();
  const StreamScope scope(second);
  if (next) expect_data_error(next, "what a second stream computed from a failed result with other work behind it");
}

void executables_outlive_their_graphs(const Table& table) {
  const backplane::Stream first(table.device()), second(table.device());
  for (int round = 0; round < 8; ++round) {
    const Tensor x = ones(kLateCount, table.device());
    Tensor result;
    Pause pause(table, first);
    {
      const StreamScope scope(first);
      const Tensor inputs[] = {late(x)};
      const Graph graph = make_graph(
          [](std::span<const Tensor> in) {
            const Tensor turned = run_op("bp::negative", {value(in[0])});
            return std::vector<Tensor>{run_op("bp::multiply", {value(turned), value(2.0)})};
          },
          inputs);
      const StreamScope other(second);
      result = graph.call(inputs)[0];
    }
    pause.release();
    expect_all(result, -2.0f * (1 + kLateSteps), "a compiled graph that ended before its work");
  }
}

void constants_are_ordered_and_held(const Table& table) {
  const backplane::Stream first(table.device()), second(table.device());
  for (int round = 0; round < 8; ++round) {
    const Tensor x = ones(kLateCount, table.device());
    Tensor result;
    Pause pause(table, first);
    {
      Tensor constant;
      {
        const StreamScope scope(first);
        constant = late(x);
      }
      const Tensor inputs[] = {x};
      const Graph graph = make_graph(
          [&](std::span<const Tensor> in) {
            const Tensor sum = run_op("bp::add", {value(in[0]), value(constant)});
            return std::vector<Tensor>{run_op("bp::negative", {value(sum)})};
          },
          inputs);
      const StreamScope scope(second);
      result = graph.call(inputs)[0];
    }
    pause.release();
    expect_all(result, -static_cast<float>(2 + kLateSteps),
               "a compiled graph whose constant another stream had yet to write");
  }
}

}  // namespace

void add_work_laws(const Table& table, Laws& laws) {
  const auto add = [&](const char* row, const char* check, std::function<void()> law) {
    laws.push_back({row, check, {}, "streams"});
    if (!table.synchronous()) laws.back().holds = std::move(law);
  };
  add("(device) failures", "other streams", [&table] { failures_follow_what_was_written(table.device()); });
  add("(device) failures", "tickets", [&table] { failures_state_their_own_tickets(table); });
  add("(device) executables", "graphs", [&table] { executables_outlive_their_graphs(table); });
  add("(device) executables", "constants", [&table] { constants_are_ordered_and_held(table); });
}

}  // namespace backplane::conformance
