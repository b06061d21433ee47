// Mode stress, one op at a time: several threads call the op at once, each with numbers of its own.
//
// A kernel that works in a static buffer, or keeps an attribute in a static variable, is right until the calls of two
// threads overlap. So all threads call the same op, in many elements where its samples allow that, and each result must
// have the bytes that the same call gave alone.
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include "compare.hpp"
#include "running.hpp"
#include "same_op.hpp"
#include "trial.hpp"

namespace backplane::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned kThreads = 4;
constexpr size_t kElements = size_t{1} << 17;  // calls of this size overlap on two processors, and often on one
constexpr size_t kFewElements = size_t{1} << 14;
// Time per op, and the least number of calls of each thread: a busy machine runs one thread at a time for milliseconds,
// and short calls seldom overlap. Backplane's own ops are many and get less.
constexpr auto kTime = std::chrono::milliseconds(40), kTimeOfFew = std::chrono::milliseconds(200);
constexpr auto kTimeOfBase = std::chrono::milliseconds(8);
constexpr size_t kCalls = 20;

// The sample with the most elements among those that succeed, or the number of samples if no sample has tensors.
size_t largest_sample(const Entry& entry) {
  size_t found = entry.samples.size(), most = 0;
  for (size_t i = 0; i < entry.samples.size(); ++i) {
    const Sample& sample = entry.samples[i];
    if (!sample.error.empty() || !sample.varies.empty()) continue;
    size_t count = 0;
    for (const auto& [name, value] : sample.values)
      for (const auto& tensor : value.tensors) count += tensor ? count_of(tensor->shape) : 0;
    if (count > most) {
      most = count;
      found = i;
    }
  }
  return found;
}

// Elementwise: the elements again and again, from another one on in each thread. The operands of one shape move alike,
// so that elements that belong together stay together.
void lengthen(Inputs& inputs, size_t thread) {
  const std::vector<int64_t>* shape = nullptr;
  for (const Input& input : inputs)
    for (const auto& array : input.arrays)
      if (array && (!shape || array->count() > count_of(*shape))) shape = &array->shape;
  if (!shape || count_of(*shape) == 0) return;
  const std::vector<int64_t> full = *shape;
  const size_t n = count_of(full), repeats = (kElements + n - 1) / n;
  for (Input& input : inputs)
    for (auto& array : input.arrays) {
      if (!array || array->shape != full) continue;
      const size_t item = array->bytes.size() / n, first = thread % n * item;
      std::vector<unsigned char> once(array->bytes.begin() + static_cast<ptrdiff_t>(first), array->bytes.end());
      once.insert(once.end(), array->bytes.begin(), array->bytes.begin() + static_cast<ptrdiff_t>(first));
      array->shape.insert(array->shape.begin(), static_cast<int64_t>(repeats));
      array->bytes.clear();
      array->bytes.reserve(repeats * once.size());
      for (size_t i = 0; i < repeats; ++i) array->bytes.insert(array->bytes.end(), once.begin(), once.end());
    }
}

bool same_bytes(const Tensor& tensor, const Array& expected) {
  if (tensor.dtype() != expected.dtype || !tensor.is_contiguous() || tensor.get()->nbytes != expected.bytes.size())
    return false;
  const DLTensor& dl = tensor.get()->dl;
  return expected.bytes.empty() || std::memcmp(static_cast<const char*>(dl.data) + dl.byte_offset,
                                               expected.bytes.data(), expected.bytes.size()) == 0;
}

// Makes one call. Returns the difference from the result of the same call alone, "" if they are equal.
std::string try_call(const Entry& entry, const Arguments& arguments, const CallResult& alone) {
  std::vector<bp_value> slots(entry.list_results.size());
  const std::vector<bp_value>& args = arguments.values();
  if (const bp_status status = call_packed(entry.op, args.data(), static_cast<int32_t>(args.size()), slots.data(),
                                           static_cast<int32_t>(slots.size())))
    throw_last_error(status);
  std::vector<Tensor> results;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (!entry.list_results[i])
      results.push_back(Tensor::adopt(slots[i].u.t));
    else
      for (Tensor& tensor : take_list(slots[i])) results.push_back(std::move(tensor));
  }
  bool same = results.size() == alone.results.size();
  for (size_t i = 0; same && i < results.size(); ++i) same = results[i] && same_bytes(results[i], alone.results[i]);
  if (same) return "";
  std::vector<Array> found;
  for (const Tensor& tensor : results) found.push_back(tensor ? from_tensor(tensor) : Array());
  return difference(entry, found, alone.results);
}

struct Caller {
  Inputs inputs;
  CallResult alone;
};

// What the first failing call of a thread says; "" if all agree.
std::string call_together(const Subject& subject, const Entry& entry, std::vector<Caller>& callers) {
  const bool few = elements_of(callers[0].inputs) < kFewElements;
  const auto time = entry.name.starts_with("bp::") ? kTimeOfBase : few ? kTimeOfFew : kTime;
  std::barrier start(static_cast<ptrdiff_t>(callers.size()));
  std::atomic<bool> ended{false};
  std::mutex lock;
  std::string text;
  std::vector<std::thread> threads;
  for (Caller& caller : callers)
    threads.emplace_back([&] {
      const auto fail = [&](const std::string& said) {
        std::lock_guard guard(lock);
        if (text.empty()) text = said;
        ended = true;
      };
      std::optional<Arguments> arguments;
      try {
        arguments.emplace(entry, caller.inputs, subject.device, CallOptions{.as_sampled = false});
      } catch (const Error& error) {
        fail(error.what());
      }
      start.arrive_and_wait();
      const auto end = Clock::now() + time;
      for (size_t call = 0; !ended && (call < kCalls || Clock::now() < end); ++call) {
        try {
          if (std::string said = try_call(entry, *arguments, caller.alone); !said.empty())
            fail("while other threads call the op with other numbers, " + said +
                 ", which the same call gives alone. Fix: write to no memory that other calls, or other pieces of a "
                 "parallel_for, write as well, and draw no random numbers");
        } catch (const Error& error) {
          fail(std::string("while other threads call the op, it fails: ") + error.what());
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  return text;
}

}  // namespace

void run_same_op(const Subject& subject, const std::vector<Entry>& entries, const Progress& progress,
                 std::vector<Outcome>& outcomes) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    progress(i, entries.size(), entry.name);
    const size_t sample = largest_sample(entry);
    if (sample == entry.samples.size() || entry.has("higher_order") || !entry.is_repeatable()) continue;
    std::vector<bp_dtype> dtypes = representatives(dtypes_of(entry, entry.samples[sample]));
    const bp_dtype dtype = dtypes.empty() ? bp_dtype{BP_DTYPE_NONE} : dtypes.front();
    const Running running({entry.name, "same op", dtype, sample});
    std::vector<Caller> callers(kThreads);
    bool usable = true;
    for (unsigned t = 0; usable && t < kThreads; ++t) {
      Caller& caller = callers[t];
      caller.inputs = draw_inputs(entry, sample, dtype, subject.computes, dtype == BP_DTYPE_NONE, t);
      if (entry.has("elementwise")) lengthen(caller.inputs, t);
      caller.alone = run_call(entry, caller.inputs, subject.device, {.as_sampled = false});
      // A call that fails alone is what the other checks report.
      usable = caller.alone.ok() && caller.alone.counts.kernels != 0 && caller.alone.counts.host_fallbacks == 0;
    }
    if (!usable) continue;
    Outcome outcome{entry.name, "same op", dtype, sample, elements_of(callers[0].inputs)};
    outcome.route = route_of(entry, callers[0].alone.counts);
    outcome.text = call_together(subject, entry, callers);
    if (!outcome.text.empty()) outcome.verdict = Verdict::kFail;
    outcomes.push_back(std::move(outcome));
  }
}

}  // namespace backplane::conformance
