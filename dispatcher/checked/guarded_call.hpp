// One call of a kernel with everything around it looked at; see backplane/checked.hpp for what that means.
//
// Made before the kernel runs and on its thread, under the device's lock if it has streams. Its recorded work
// has the call's own ticket: before the kernel's work the patterns, behind it the copies to the real results.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "checked/retired_blocks.hpp"
#include "memory/devices/device.hpp"
#include "memory/tensors/tensor_impl.hpp"

namespace backplane::core {

class GuardedCall {
 public:
  // `retired`: memory of earlier calls of the kernel on the device, where a write is a fault. It gets this call's
  // at its end.
  GuardedCall(Device& device, const bp_frame& frame, const char* plugin, std::vector<RetiredBlock>& retired);
  ~GuardedCall();
  GuardedCall(const GuardedCall&) = delete;

  // What the kernel is called with: stand-ins of arguments, where no result may be a view of one. `outs` then hold
  // stand-ins for the given results, which are there again after `end`, and where either throws.
  const bp_value* begin(const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs);
  bp_status scratch(uint64_t size, void** data);
  // As the host's, but of a device that computes at once the pieces run one after another, and what each of them writes
  // into the results is compared.
  bp_status parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context);
  // What the kernel did wrong, or "".
  std::string end();

 private:
  struct Margin {  // bytes with a pattern, beside `what`
    std::string what;
    void* data;
    uint64_t offset, size;
  };
  struct Result {
    int32_t index;
    bp_tensor* given;
    TensorImpl *memory, *stand_in;
  };
  struct Input {
    int32_t index;
    bp_tensor* tensor;  // that the kernel got
    std::vector<unsigned char> before;
    TensorImpl* stand_in = nullptr;  // in a block of its own, held twice
    RetiredBlock* block = nullptr;   // its storage owns it
  };
  void guard_result(int32_t index, bp_value& slot);
  // The tensor that the kernel gets for it.
  bp_tensor* guard_input(int32_t index, bp_tensor* given, const bp_value* outs, int32_t n_outs);
  void lend_copy(Input& input);
  void take_back(Input& input);
  void write(void* data, uint64_t offset, std::vector<unsigned char> bytes);
  std::vector<unsigned char> read(void* data, uint64_t offset, uint64_t size);
  void copy(void* to, uint64_t to_offset, void* from, uint64_t from_offset, uint64_t size);
  void wait();
  std::string fault_of(const Margin& margin);
  std::string fault_of(const Result& result);
  std::string fault_of(const Input& input);
  std::string fault_of(const RetiredBlock& block);
  void restore_results();
  void retire_lent();
  void free_oldest(size_t kept);
  void abandon() noexcept;

  Device& device_;
  const bp_backend_def& table_;
  const bp_frame& frame_;
  const char* plugin_;
  uint64_t margin_;
  std::vector<Margin> margins_;
  std::vector<Result> results_;
  std::vector<Input> inputs_;
  std::vector<bp_value> args_;
  std::deque<std::vector<bp_tensor*>> lists_;  // that args_ point to
  bp_value* outs_ = nullptr;                   // of begin, until the given results are in them again
  std::vector<RetiredBlock> lent_;             // scratch memory and arguments in use
  std::vector<RetiredBlock>& retired_;
  bool ended_ = false;
  bool in_pieces_ = false;
  std::string race_;
};

}  // namespace backplane::core
