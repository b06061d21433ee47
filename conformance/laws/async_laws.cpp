#include "laws/async_laws.hpp"

#include <exception>
#include <future>
#include <utility>

#include "backplane/device.hpp"

namespace backplane::conformance {

void run_op_into(const char* op, std::initializer_list<bp_value> args, const Tensor& out) {
  bp_value slot = value(out);
  slot.flags = BP_VALUE_GIVEN;
  const bp_status status = call_packed(find_op(op), args.begin(), static_cast<int32_t>(args.size()), &slot, 1);
  if (status == BP_ERROR_NOT_IMPLEMENTED) throw NoKernel(Error(status, last_error()));
  if (status != BP_OK) throw_last_error(status);
}

Tensor floats(const std::vector<float>& values, bp_device device) {
  const auto count = static_cast<int64_t>(values.size());
  return from_host(values.data(), std::span(&count, 1), {}, BP_FLOAT32, device);
}

std::vector<float> read_floats(const Tensor& tensor) {
  std::vector<float> values(tensor.get()->nbytes / sizeof(float));
  to_host(tensor, values.data());
  return values;
}

Tensor late(Tensor x) {
  for (int i = 0; i < kLateSteps; ++i) x = run_op("bp::add", {value(x), value(1.0)});
  return x;
}

void expect_all(const Tensor& tensor, float expected, const char* what) {
  const std::vector<float> found = read_floats(tensor);
  for (size_t i = 0; i < found.size(); ++i)
    BP_CHECK(found[i] == expected, DATA, what, ": at (", i, ",) of (", found.size(), ",): found ", found[i],
             ", expected ", expected);
}

bool ends_in(int seconds, std::function<void()> task) {
  auto promise = std::make_shared<std::promise<void>>();
  std::future<void> over = promise->get_future();
  std::thread([promise, task = std::move(task)] {
    try {
      task();
      promise->set_value();
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (over.wait_for(std::chrono::seconds(seconds)) != std::future_status::ready) return false;
  over.get();
  return true;
}

HeldStream::HeldStream(const backplane::Stream& stream, int seconds) {
  stream.on_complete([state = state_, seconds] {
    for (int i = 0; i < 1000 * seconds && !state->go; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state->timed_out = !state->go;
  });
}

}  // namespace backplane::conformance
