// One call of an op on a device, from the arrays of a sample to arrays again.
//
// Inputs are drawn once and may then be called with on any device, in any layout. Tensors of a call lie in buffers
// whose gaps and ends hold a pattern; what the call must leave alone is compared afterwards.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "array.hpp"
#include "backplane/stream.hpp"
#include "registry.hpp"

namespace backplane::conformance {

struct Input {
  bool given = false;  // else the argument's default
  bool is_tensors = false;
  bool is_list = false;
  std::vector<std::optional<Array>> arrays;
  std::vector<std::string> layouts;  // as the sample asks
  bool promotes = false;
  std::optional<bp_generator_state> generator;
  nlohmann::json literal;
};
using Inputs = std::vector<Input>;  // by argument

// The arguments of the sample. `dtype`: of those that promote and take it; of other tensors, the widest in `computes`.
// `own_dtype`: where the sample states dtypes, they count. `row`: other numbers of the same kind.
Inputs draw_inputs(const Entry& entry, size_t sample, bp_dtype dtype, bp_dtype_mask computes, bool own_dtype,
                   size_t row = 0);
// The arrays of promoting arguments in the widest dtype of their kind that the op takes.
Inputs widened(const Entry& entry, const Inputs& inputs);

struct CallOptions {
  std::string layout{};        // of every tensor in place of the sample's: strided, transposed, offset, backward
  bool as_sampled = true;      // no layout stated: the sample's own
  bool checked = false;        // in checked mode (backplane/checked.hpp)
  const char* outs = "";       // "packed", "strided": results are written into buffers that the kit gives
  std::vector<size_t> into{};  // the arguments whose tensors the results are written into, never in checked mode
  const backplane::Stream* stream = nullptr;  // that the call is made on; arguments and results are of the usual one
};

struct CallResult {
  bool ok() const { return status == BP_OK; }
  bp_status status = BP_OK;
  std::string message;               // of a failure
  std::vector<Array> results;        // of all lists, one after another
  std::vector<std::string> touched;  // what the call changed that was not its to change
  CallCounts counts;                 // how it reached kernels
};

// From now on all calls run in checked mode, but for those that write into an argument.
void check_every_call();

// Runs the call and waits for its results. Never throws for what the op or the device reports.
CallResult run_call(const Entry& entry, const Inputs& inputs, bp_device device, const CallOptions& options = {});

// A tensor of the array's elements, laid out as a word of the samples says, in the midst of a patterned buffer.
struct Placed {
  bool is_untouched() const { return from_tensor(base) == before; }
  Tensor tensor, base;
  Array before;  // of base
};
// Elements [start, stop) of the axis by `step`, which may be negative.
Tensor sliced(const Tensor& base, int64_t axis, std::optional<int64_t> start, std::optional<int64_t> stop,
              int64_t step);
Placed place(const Array& array, const std::string& layout, bp_device device);

// The borrowed values of a call; valid while this lives.
class Arguments {
 public:
  Arguments(const Entry& entry, const Inputs& inputs, bp_device device, const CallOptions& options);
  const std::vector<bp_value>& values() const { return values_; }
  std::vector<bp_value>& values() { return values_; }
  // Names of the arguments whose buffers were changed; `but`: arguments that are to change.
  std::vector<std::string> changed(const Entry& entry, const std::vector<size_t>& but) const;
  struct Held {
    size_t argument;
    Placed placed;
  };
  std::deque<Held>& held() { return held_; }
  const std::deque<Held>& held() const { return held_; }

 private:
  bp_value tensors(size_t argument, const Input& input, bp_device device, const CallOptions& options);
  bp_value literal(const Argument& argument, const nlohmann::json& value);
  bp_value list(const nlohmann::json& items);

  std::vector<bp_value> values_;
  std::deque<Held> held_;
  std::deque<std::vector<bp_tensor*>> tensor_lists_;
  std::deque<std::vector<int64_t>> ints_;
  std::deque<std::vector<double>> floats_;
  std::deque<std::vector<uint8_t>> bools_;
  std::deque<std::vector<bp_value>> value_lists_;
  std::deque<std::string> texts_;
  std::deque<bp_generator_state> generators_;
};

// Calls the op and drops its results. Throws Error.
void call_once(const Entry& entry, const Arguments& arguments);

}  // namespace backplane::conformance
