// One call of a kernel with everything around it looked at; see backplane/checked.hpp for what that means.
//
// Made before the kernel runs and on its thread, under the device's lock where the device has streams. What it records
// goes under the call's own ticket: before the kernel's work the patterns, behind it the copies to the real results.
#pragma once

#include <string>
#include <vector>

#include "memory/device.hpp"
#include "memory/tensor_impl.hpp"

namespace backplane::core {

// Scratch memory of calls that are over, which holds a pattern.
struct RetiredScratch {
  Device* device;
  void* data;
  uint64_t size;
};

class GuardedCall {
 public:
  // `retired`: of earlier calls of the kernel; what it writes there now is a fault. It gets this call's at its end.
  GuardedCall(Device& device, const bp_frame& frame, const char* plugin, std::vector<RetiredScratch>& retired);
  ~GuardedCall();
  GuardedCall(const GuardedCall&) = delete;

  // `outs` then hold stand-ins for the given results.
  void begin(const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs);
  bp_status scratch(uint64_t size, void** data);
  // The given results are in `outs` again. What the kernel did wrong, or "".
  std::string end(bp_value* outs, int32_t n_outs);

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
    const bp_tensor* tensor;
    std::vector<unsigned char> before;
  };
  void guard_result(int32_t index, bp_value& slot);
  void remember_input(int32_t index, const bp_tensor& tensor, const bp_value* outs, int32_t n_outs);
  void write(void* data, uint64_t offset, unsigned char byte, uint64_t size);
  std::vector<unsigned char> read(void* data, uint64_t offset, uint64_t size);
  void copy_back(const Result& result);
  void wait();
  std::string fault_of(const Margin& margin);
  std::string fault_of(const Result& result);
  std::string fault_of(const Input& input);
  std::string fault_of(const RetiredScratch& scratch);
  void retire_scratch();

  Device& device_;
  const bp_backend_def& table_;
  const bp_frame& frame_;
  const char* plugin_;
  uint64_t margin_;
  std::vector<Margin> margins_;
  std::vector<Result> results_;
  std::vector<Input> inputs_;
  std::vector<RetiredScratch> scratch_;  // in use
  std::vector<RetiredScratch>& retired_;
};

}  // namespace backplane::core
