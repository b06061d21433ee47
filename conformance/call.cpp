// Running a call, and reading what it left behind. See call.hpp.
#include "call.hpp"

#include "backplane/checked.hpp"
#include "shared_cases.hpp"

namespace backplane::conformance {
namespace {

CallCounts since(const CallCounts& before) {
  const CallCounts now = call_counts();
  return {now.kernels - before.kernels, now.decompositions - before.decompositions,
          now.host_fallbacks - before.host_fallbacks, now.batch_loops - before.batch_loops};
}

// Buffers for the results, of the shapes and dtypes that the entry's rules give.
std::vector<Placed> make_outs(const Entry& entry, const std::vector<bp_value>& args, bp_device device,
                              const std::string& layout) {
  std::vector<Placed> outs;
  for (const InferredResult& result : infer(entry.op, args.data(), static_cast<int32_t>(args.size()))) {
    Array poison(result.dtype, result.shape);
    for (size_t i = 0; i < poison.count(); ++i) poison.set(i, {-55, 0});
    outs.push_back(place(poison, layout == "strided" && !result.shape.empty() ? "strided" : "offset", device));
  }
  return outs;
}

// Did a write reach beyond the result? With its elements as they came out, all else must be as it was.
void check_around(const Placed& out, size_t i, std::vector<std::string>& touched) {
  Array now = from_tensor(out.base);
  const Array result = from_tensor(out.tensor);
  const size_t step = out.before.shape.size() == 1 && out.tensor.is_contiguous() ? 1 : 2;
  const size_t first = step == 1 ? (now.count() - result.count()) / 2 : 0;
  for (size_t k = 0; k < result.count(); ++k) now.set(first + k * step, out.before.at(first + k * step));
  for (size_t k = 0; k < now.count(); ++k) {
    const Number a = now.at(k), b = out.before.at(k);
    if (a.re == b.re && a.im == b.im) continue;
    touched.push_back("result " + std::to_string(i) + ": written outside of it, " +
                      (k < first   ? std::to_string(first - k) + " elements before its start"
                       : step == 1 ? std::to_string(k - first - result.count() + 1) + " elements behind its end"
                                   : "into the gap behind element " + std::to_string(k / step)));
    return;
  }
}

bool every_call_checked = false;

class Checked {
 public:
  // Of a result that shares its memory with an argument, checked mode makes two.
  explicit Checked(const CallOptions& options)
      : before_(check_kernels(options.into.empty() && (options.checked || every_call_checked))) {}
  ~Checked() { check_kernels(before_); }
  Checked(const Checked&) = delete;

 private:
  bool before_;
};

// An op that is not a view must return new memory: a change of its result would change the argument.
void check_own_memory(const Entry& entry, const Arguments& arguments, const Tensor& result, size_t i,
                      std::vector<std::string>& touched) {
  if (entry.has("view") || entry.has("maybe_view") || entry.has("composite") || entry.exempt("alias")) return;
  for (const Arguments::Held& held : arguments.held())
    if (result.get()->storage == held.placed.tensor.get()->storage && held.placed.before.count() > 0)
      touched.push_back("result " + std::to_string(i) + ": is a view of argument " + entry.args[held.argument].name +
                        ", which the entry does not state. Fix: state `alias: " + entry.args[held.argument].name +
                        "` with `put`, or copy it");
}

void collect(const Entry& entry, const Arguments& arguments, std::vector<bp_value>& slots, CallResult& made) {
  // Adopted before anything is read, so that none is lost when a read fails.
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (entry.list_results[i])
      for (Tensor& tensor : take_list(slots[i])) tensors.push_back(std::move(tensor));
    else
      tensors.push_back(Tensor::adopt(slots[i].u.t));
  }
  for (const Tensor& tensor : tensors) {
    if (!tensor) continue;
    check_own_memory(entry, arguments, tensor, made.results.size(), made.touched);
    made.results.push_back(from_tensor(tensor));
  }
}

}  // namespace

void check_every_call() { every_call_checked = true; }

void call_once(const Entry& entry, const Arguments& arguments) {
  shared_cases::step();
  std::vector<bp_value> slots(entry.list_results.size());
  if (const bp_status status =
          call_packed(entry.op, arguments.values().data(), static_cast<int32_t>(arguments.values().size()),
                      slots.data(), static_cast<int32_t>(slots.size())))
    throw_last_error(status);
  for (size_t r = 0; r < slots.size(); ++r) {
    if (entry.list_results[r])
      take_list(slots[r]);
    else
      Tensor::adopt(slots[r].u.t);
  }
}

CallResult run_call(const Entry& entry, const Inputs& inputs, bp_device device, const CallOptions& options) {
  shared_cases::step();
  CallResult made;
  try {
    Arguments arguments(entry, inputs, device, options);
    std::vector<bp_value>& args = arguments.values();
    std::vector<bp_value> slots(entry.list_results.size());
    std::vector<Placed> outs;
    if (*options.outs) outs = make_outs(entry, args, device, options.outs);
    for (size_t i = 0; i < outs.size(); ++i) {
      slots[i] = value(outs[i].tensor);
      slots[i].flags = BP_VALUE_GIVEN;
    }
    for (size_t i = 0; i < options.into.size(); ++i) {
      slots[i] = args[options.into[i]];
      slots[i].flags = BP_VALUE_GIVEN;
    }
    const Checked checked(options);
    const CallCounts before = call_counts();
    std::optional<StreamScope> on;
    if (options.stream) on.emplace(*options.stream);
    if (const bp_status status = call_packed(entry.op, args.data(), static_cast<int32_t>(args.size()), slots.data(),
                                             static_cast<int32_t>(slots.size())))
      throw_last_error(status);
    on.reset();
    made.counts = since(before);
    for (size_t i = 0; i < options.into.size(); ++i) made.results.push_back(from_tensor(Tensor::share(slots[i].u.t)));
    if (options.into.empty() && outs.empty()) collect(entry, arguments, slots, made);
    for (size_t i = 0; i < outs.size(); ++i) {
      made.results.push_back(from_tensor(outs[i].tensor));
      check_around(outs[i], i, made.touched);
    }
    for (const std::string& name : arguments.changed(entry, options.into))
      made.touched.push_back("argument " + name + ": its buffer was written to");
    synchronize(device);
  } catch (const Error& error) {
    made.status = error.code();
    made.message = error.what();
  }
  return made;
}

}  // namespace backplane::conformance
