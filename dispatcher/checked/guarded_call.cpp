// Margins, stand-ins and what is read of them afterwards. See guarded_call.hpp.
#include "checked/guarded_call.hpp"

#include <algorithm>

#include "memory/epoch.hpp"
#include "memory/storage.hpp"
#include "record/host_table.hpp"

namespace backplane::core {
namespace {

constexpr unsigned char kMarginByte = 0xc9;
constexpr unsigned char kPoison = 0xff;  // a NaN in every floating dtype, -1 in integers, no bool
constexpr unsigned char kRetiredByte = 0xfb;
constexpr uint64_t kMargin = 256;                     // bytes
constexpr uint64_t kMaxCompared = uint64_t{1} << 20;  // of an argument: more would take longer than it tells

}  // namespace

GuardedCall::GuardedCall(Device& device, const bp_frame& frame, const char* plugin,
                         std::vector<RetiredScratch>& retired)
    : device_(device),
      table_(device.backend->def),
      frame_(frame),
      plugin_(plugin),
      margin_(std::max<uint64_t>(kMargin, device.properties.alignment)),
      retired_(retired) {}

GuardedCall::~GuardedCall() {
  for (const Result& result : results_) {
    release(result.stand_in);
    release(result.memory);
  }
}

void GuardedCall::begin(const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  for (int32_t i = 0; i < n_args; ++i) {
    if (args[i].tag == BP_TAG_TENSOR) remember_input(i, *args[i].u.t, outs, n_outs);
    for (uint32_t k = 0; args[i].tag == BP_TAG_TENSOR_LIST && k < args[i].count; ++k)
      if (args[i].u.tensors[k]) remember_input(i, *args[i].u.tensors[k], outs, n_outs);
  }
  for (int32_t i = 0; i < n_outs; ++i) guard_result(i, outs[i]);
}

void GuardedCall::guard_result(int32_t index, bp_value& slot) {
  if (slot.tag != BP_TAG_TENSOR || !(slot.flags & BP_VALUE_GIVEN) || !is_contiguous(*slot.u.t) || !slot.u.t->nbytes)
    return;
  bp_tensor* given = slot.u.t;
  const auto bytes = static_cast<int64_t>(given->nbytes + 2 * margin_);
  TensorImpl* memory = new_tensor(device_, BP_UINT8, 1, &bytes);
  retain(memory->storage);
  TensorImpl* stand_in =
      new_tensor_over(memory->storage, given->dtype, given->dl.ndim, given->dl.shape, nullptr, margin_);
  results_.push_back({index, given, memory, stand_in});
  write(memory->dl.data, 0, kMarginByte, static_cast<uint64_t>(bytes));
  write(memory->dl.data, margin_, kPoison, given->nbytes);
  const std::string what = "result " + std::to_string(index);
  margins_.push_back({"before the start of " + what, memory->dl.data, 0, margin_});
  margins_.push_back({"behind the end of " + what, memory->dl.data, margin_ + given->nbytes, margin_});
  slot.u.t = stand_in;
}

// What is changed through a result that shares its memory is not the kernel's fault.
void GuardedCall::remember_input(int32_t index, const bp_tensor& tensor, const bp_value* outs, int32_t n_outs) {
  if (!is_contiguous(tensor) || !tensor.nbytes || tensor.nbytes > kMaxCompared) return;
  for (int32_t i = 0; i < n_outs; ++i)
    if (outs[i].tag == BP_TAG_TENSOR && outs[i].u.t->storage == tensor.storage) return;
  inputs_.push_back({index, &tensor, read(tensor.dl.data, tensor.dl.byte_offset, tensor.nbytes)});
}

bp_status GuardedCall::scratch(uint64_t size, void** data) {
  size = std::max<uint64_t>(size, 1);
  if (const bp_status status = table_.allocate(table_.context, device_.ordinal, size + margin_, data)) return status;
  scratch_.push_back({&device_, *data, size + margin_});
  write(*data, 0, kPoison, size);
  write(*data, size, kMarginByte, margin_);
  margins_.push_back({"behind the end of scratch memory of " + std::to_string(size) + " bytes", *data, size, margin_});
  return BP_OK;
}

std::string GuardedCall::end(bp_value* outs, int32_t n_outs) {
  for (const Result& result : results_) {
    if (result.index < n_outs) outs[result.index].u.t = result.given;
    copy_back(result);
  }
  std::string fault;
  const auto look = [&](const auto& parts) {
    for (const auto& part : parts)
      if (fault.empty()) fault = fault_of(part);
  };
  look(margins_);
  look(inputs_);
  look(results_);
  look(retired_);
  retire_scratch();
  wait();
  return fault.empty() ? fault : "the kernel of plugin \"" + std::string(plugin_) + "\" " + fault;
}

// The oldest blocks go back to the device: a kernel that keeps one uses it in its next call.
void GuardedCall::retire_scratch() {
  constexpr size_t kMaxRetired = 4;
  for (const RetiredScratch& block : scratch_) {
    write(block.data, 0, kRetiredByte, block.size);
    retired_.push_back(block);
  }
  for (; retired_.size() > kMaxRetired; retired_.erase(retired_.begin())) {
    const RetiredScratch& oldest = retired_.front();
    const bp_backend_def& table = oldest.device->backend->def;
    table.deallocate(table.context, oldest.device->ordinal, oldest.data, oldest.size);
  }
}

void GuardedCall::write(void* data, uint64_t offset, unsigned char byte, uint64_t size) {
  const std::vector<unsigned char> bytes(size, byte);
  if (!size) return;
  if (const bp_status status = table_.copy_from_host(table_.context, device_.ordinal, frame_.stream, frame_.ticket,
                                                     data, offset, bytes.data(), size))
    throw_device_error(device_, status, "copy_from_host");
}

std::vector<unsigned char> GuardedCall::read(void* data, uint64_t offset, uint64_t size) {
  std::vector<unsigned char> bytes(size);
  if (const bp_status status =
          table_.copy_to_host(table_.context, device_.ordinal, frame_.stream, bytes.data(), data, offset, size))
    throw_device_error(device_, status, "copy_to_host");
  return bytes;
}

void GuardedCall::copy_back(const Result& result) {
  const bp_tensor &from = *result.stand_in, &to = *result.given;
  if (!device_.synchronous()) {
    if (const bp_status status = table_.copy(table_.context, device_.ordinal, frame_.stream, frame_.ticket, to.dl.data,
                                             to.dl.byte_offset, from.dl.data, from.dl.byte_offset, from.nbytes))
      throw_device_error(device_, status, "copy");
    return;
  }
  const std::vector<unsigned char> bytes = read(from.dl.data, from.dl.byte_offset, from.nbytes);
  if (const bp_status status = table_.copy_from_host(table_.context, device_.ordinal, frame_.stream, frame_.ticket,
                                                     to.dl.data, to.dl.byte_offset, bytes.data(), bytes.size()))
    throw_device_error(device_, status, "copy_from_host");
}

// An error of the work itself stays with the stream, whose next wait reports it.
void GuardedCall::wait() {
  if (device_.synchronous()) return;
  if (const bp_status status = table_.flush(table_.context, device_.ordinal, frame_.stream, frame_.ticket))
    throw_device_error(device_, status, "flush");
  table_.wait(table_.context, device_.ordinal, frame_.stream, frame_.ticket);
}

std::string GuardedCall::fault_of(const Margin& margin) {
  const std::vector<unsigned char> bytes = read(margin.data, margin.offset, margin.size);
  const auto first = std::find_if(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte != kMarginByte; });
  if (first == bytes.end()) return "";
  const auto changed = margin.size - static_cast<uint64_t>(std::count(bytes.begin(), bytes.end(), kMarginByte));
  return "wrote " + std::to_string(changed) + " bytes " + margin.what + "; expected it to write inside alone";
}

std::string GuardedCall::fault_of(const Input& input) {
  const bp_tensor& tensor = *input.tensor;
  if (read(tensor.dl.data, tensor.dl.byte_offset, tensor.nbytes) == input.before) return "";
  return "wrote into its argument " + std::to_string(input.index + 1) + "; arguments are for reading";
}

std::string GuardedCall::fault_of(const RetiredScratch& scratch) {
  if (scratch.device != &device_) return "";
  const std::vector<unsigned char> bytes = read(scratch.data, 0, scratch.size);
  if (std::count(bytes.begin(), bytes.end(), kRetiredByte) == static_cast<ptrdiff_t>(bytes.size())) return "";
  return "wrote into scratch memory of an earlier call; it lasts as long as the call's work: ask for it in every call";
}

std::string GuardedCall::fault_of(const Result& result) {
  if (result.given->dtype != BP_BOOL) return "";
  const std::vector<unsigned char> bytes = read(result.stand_in->dl.data, margin_, result.given->nbytes);
  const auto odd = std::find_if(bytes.begin(), bytes.end(), [](unsigned char byte) { return byte > 1; });
  if (odd == bytes.end()) return "";
  return "left the byte " + std::to_string(*odd) + " as element " + std::to_string(odd - bytes.begin()) +
         " of the bools of result " + std::to_string(result.index) + "; expected 0 or 1";
}

}  // namespace backplane::core
