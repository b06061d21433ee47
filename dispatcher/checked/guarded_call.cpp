// Margins, stand-ins, and the checks of their bytes after the call. See guarded_call.hpp.
#include "checked/guarded_call.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "checked/piece_writes.hpp"
#include "memory/allocate.hpp"
#include "memory/granules.hpp"
#include "memory/process/epoch.hpp"
#include "memory/storage.hpp"
#include "record/host_table.hpp"

namespace backplane::core {
namespace {

// What memory holds that a kernel may not use: `first` and three bytes 0xff, again and again. A NaN in every floating
// dtype, so that a kernel that reads it gives NaN even where it multiplies by 0.
struct Pattern {
  unsigned char first;
  unsigned char at(uint64_t offset) const { return offset % 4 == 0 ? first : 0xff; }
};
constexpr Pattern kMargin{0xc9};
constexpr Pattern kArgumentMargin{0x97};  // what a kernel reads there and writes beyond a result is seen as such
constexpr Pattern kPoison{0xff};          // -1 in integers, no bool
constexpr Pattern kRetired{0xfb};
constexpr uint64_t kMarginBytes = 256;
constexpr uint64_t kMaxCompared = uint64_t{1} << 20;  // of a tensor: more would take longer than it tells
constexpr int64_t kMostPieces = 8;

// A kernel that stores into given tensors alone gives no view of an argument.
bool may_give_views(const bp_value* outs, int32_t n_outs) {
  return !std::all_of(outs, outs + n_outs, [](const bp_value& out) {
    return (out.flags & BP_VALUE_NOT_WANTED) || (out.tag == BP_TAG_TENSOR && (out.flags & BP_VALUE_GIVEN));
  });
}

// Of a kernel that kept its argument, when it gives it back.
void drop_block(void* owner) {
  const std::unique_ptr<RetiredBlock> block(static_cast<RetiredBlock*>(owner));
  if (block->data) give_back(*block);
}

std::vector<unsigned char> filled(Pattern pattern, uint64_t offset, uint64_t size) {
  std::vector<unsigned char> bytes(size, 0xff);
  for (uint64_t i = (4 - offset % 4) % 4; i < size; i += 4) bytes[i] = pattern.first;
  return bytes;
}

// From the first to the last byte that is not as the pattern has it, of bytes from `offset` in their block on.
size_t length_of_change(std::span<const unsigned char> bytes, Pattern pattern, uint64_t offset) {
  size_t first = bytes.size(), end = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == pattern.at(offset + i)) continue;
    first = std::min(first, i);
    end = i + 1;
  }
  return end == 0 ? 0 : end - first;
}

// "": the bytes of a margin, from `offset` in its block on, are as they were.
std::string written_to(std::span<const unsigned char> margin, Pattern pattern, uint64_t offset,
                       const std::string& where) {
  const size_t changed = length_of_change(margin, pattern, offset);
  if (changed == 0) return "";
  return "wrote " + std::to_string(changed) + " bytes " + where + "; expected it to write inside alone";
}

constexpr uint32_t kOwnReferences = 2;  // to the stand-in of an argument

}  // namespace

GuardedCall::GuardedCall(Device& device, const bp_frame& frame, const char* plugin, std::vector<RetiredBlock>& retired)
    : device_(device),
      table_(device.backend->def),
      frame_(frame),
      plugin_(plugin),
      margin_(block_size(device, std::max<uint64_t>(kMarginBytes, device.properties.alignment))),
      retired_(retired) {}

// Where begin or end threw, the kernel's work ends before the memory does. A device that was lost takes it along.
void GuardedCall::abandon() noexcept {
  try {
    wait();
  } catch (const Error&) {
    return;
  }
  for (const RetiredBlock& block : lent_) give_back(block);
}

GuardedCall::~GuardedCall() {
  restore_results();
  if (!ended_) abandon();
  for (const Result& result : results_) {
    release(result.stand_in);
    release(result.memory);
  }
  for (const Input& input : inputs_) {
    if (!input.stand_in) continue;
    for (uint32_t held = std::min(input.stand_in->refs.load(), kOwnReferences); held > 0; --held)
      release(input.stand_in);
  }
}

const bp_value* GuardedCall::begin(const bp_value* args, int32_t n_args, bp_value* outs, int32_t n_outs) {
  outs_ = outs;
  args_.assign(args, args + n_args);
  for (int32_t i = 0; i < n_args; ++i) {
    bp_value& arg = args_[static_cast<size_t>(i)];
    if (arg.tag == BP_TAG_TENSOR) arg.u.t = guard_input(i, arg.u.t, outs, n_outs);
    if (arg.tag != BP_TAG_TENSOR_LIST || arg.count == 0) continue;
    std::vector<bp_tensor*>& list = lists_.emplace_back(arg.u.tensors, arg.u.tensors + arg.count);
    for (bp_tensor*& one : list)
      if (one) one = guard_input(i, one, outs, n_outs);
    arg.u.tensors = list.data();
  }
  for (int32_t i = 0; i < n_outs; ++i) guard_result(i, outs[i]);
  return args_.data();
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
  write(memory->dl.data, 0, filled(kMargin, 0, static_cast<uint64_t>(bytes)));
  write(memory->dl.data, margin_, filled(kPoison, margin_, given->nbytes));
  const std::string what = "result " + std::to_string(index);
  margins_.push_back({"before the start of " + what, memory->dl.data, 0, margin_});
  margins_.push_back({"behind the end of " + what, memory->dl.data, margin_ + given->nbytes, margin_});
  slot.u.t = stand_in;
}

// A change through a result that shares the memory is not a fault of the kernel.
bp_tensor* GuardedCall::guard_input(int32_t index, bp_tensor* given, const bp_value* outs, int32_t n_outs) {
  if (!is_contiguous(*given) || !given->nbytes || given->nbytes > kMaxCompared) return given;
  if (&device_at({given->backend, given->ordinal}) != &device_) return given;
  for (int32_t i = 0; i < n_outs; ++i)
    if (outs[i].tag == BP_TAG_TENSOR && outs[i].u.t->storage == given->storage) return given;
  inputs_.push_back({index, given, read(given->dl.data, given->dl.byte_offset, given->nbytes)});
  if (!may_give_views(outs, n_outs)) lend_copy(inputs_.back());
  return inputs_.back().tensor;
}

// Between margins, in a block that nobody else has and that outlives the call.
void GuardedCall::lend_copy(Input& input) {
  const bp_tensor& given = *input.tensor;
  const uint64_t size = block_size(device_, given.nbytes + 2 * margin_);
  void* data = nullptr;
  if (table_.allocate(table_.context, device_.ordinal, size, &data) != BP_OK || !data) {
    take_error();  // there is no room for it: the kernel gets the argument itself
    return;
  }
  input.block = new RetiredBlock(lent_block(device_, data, size, true));
  bp_storage* storage = wrap_storage(device_, data, size, input.block, drop_block);
  input.stand_in = new_tensor_over(storage, given.dtype, given.dl.ndim, given.dl.shape, nullptr, margin_);
  retain(input.stand_in);  // so that it lives on where a kernel releases what it was lent
  write(data, 0, filled(kArgumentMargin, 0, size));
  copy(data, margin_, given.dl.data, given.dl.byte_offset, given.nbytes);
  input.tensor = input.stand_in;
}

void GuardedCall::take_back(Input& input) {
  if (!input.stand_in || input.stand_in->refs.load() > kOwnReferences) return;
  lent_.push_back(*input.block);
  input.block->data = nullptr;
}

bp_status GuardedCall::scratch(uint64_t size, void** data) {
  size = std::max<uint64_t>(size, 1);
  const uint64_t whole = block_size(device_, size + margin_);
  if (const bp_status status = table_.allocate(table_.context, device_.ordinal, whole, data)) return status;
  lent_.push_back(lent_block(device_, *data, whole, false));
  write(*data, 0, filled(kPoison, 0, size));
  write(*data, size, filled(kMargin, size, margin_));
  margins_.push_back({"behind the end of scratch memory of " + std::to_string(size) + " bytes", *data, size, margin_});
  return BP_OK;
}

bp_status GuardedCall::parallel_for(int64_t begin, int64_t end, int64_t grain, bp_parallel_body body, void* context) {
  const int64_t size = end - begin;
  const int64_t pieces = std::min<int64_t>(size / std::max<int64_t>(grain, 1), kMostPieces);
  std::vector<std::pair<const Result*, PieceWrites>> watched;
  for (const Result& result : results_)
    if (result.given->nbytes <= kMaxCompared)
      watched.emplace_back(&result, PieceWrites("result " + std::to_string(result.index)));
  if (in_pieces_ || pieces < 2 || watched.empty() || !device_.synchronous())
    return host_table.parallel_for(begin, end, in_pieces_ ? std::max<int64_t>(size, 1) : grain, body, context);
  in_pieces_ = true;
  bp_status status = BP_OK;
  for (int64_t piece = 0; piece < pieces && status == BP_OK && race_.empty(); ++piece) {
    const int64_t first = begin + size / pieces * piece, last = piece + 1 == pieces ? end : first + size / pieces;
    for (auto& [result, writes] : watched)
      write(result->stand_in->dl.data, margin_,
            writes.before_piece(read(result->stand_in->dl.data, margin_, result->given->nbytes)));
    status = host_table.parallel_for(first, last, last - first, body, context);  // one piece: on this thread
    for (auto& [result, writes] : watched) {
      write(result->stand_in->dl.data, margin_,
            writes.after_piece(static_cast<uint32_t>(piece),
                               read(result->stand_in->dl.data, margin_, result->given->nbytes)));
      if (race_.empty()) race_ = writes.fault();
    }
  }
  in_pieces_ = false;
  return status;
}

void GuardedCall::restore_results() {
  if (outs_)
    for (const Result& result : results_) outs_[result.index].u.t = result.given;
  outs_ = nullptr;
}

std::string GuardedCall::end() {
  restore_results();
  for (const Result& result : results_)
    copy(result.given->dl.data, result.given->dl.byte_offset, result.stand_in->dl.data, result.stand_in->dl.byte_offset,
         result.given->nbytes);
  std::string fault = race_;
  const auto look = [&](const auto& parts) {
    for (const auto& part : parts)
      if (fault.empty()) fault = fault_of(part);
  };
  look(margins_);
  look(inputs_);
  look(results_);
  look(retired_);
  for (Input& input : inputs_) take_back(input);
  const size_t kept = std::max<size_t>(lent_.size(), 4);  // each is read in each call
  retire_lent();
  wait();
  free_oldest(kept);
  ended_ = true;
  return fault.empty() ? fault : "the kernel of plugin \"" + std::string(plugin_) + "\" " + fault;
}

void GuardedCall::retire_lent() {
  for (; !lent_.empty(); lent_.pop_back()) {
    write(lent_.back().data, 0, filled(kRetired, 0, lent_.back().size));
    retired_.push_back(lent_.back());
  }
}

// A kernel that keeps a block uses it in its next call.
void GuardedCall::free_oldest(size_t kept) {
  for (; retired_.size() > kept; retired_.erase(retired_.begin())) give_back(retired_.front());
}

// The device copies whole granules: where `bytes` begin or end within one, its other bytes are written as they are.
void GuardedCall::write(void* data, uint64_t offset, std::vector<unsigned char> bytes) {
  if (bytes.empty()) return;
  if (splits_granules(device_, offset, bytes.size())) {
    const uint64_t inside = offset & (device_.properties.copy_granule - 1);
    offset -= inside;
    std::vector<unsigned char> whole = read(data, offset, block_size(device_, inside + bytes.size()));
    std::copy(bytes.begin(), bytes.end(), whole.begin() + static_cast<ptrdiff_t>(inside));
    bytes = std::move(whole);
  }
  if (const bp_status status = table_.copy_from_host(table_.context, device_.ordinal, frame_.stream, frame_.ticket,
                                                     data, offset, bytes.data(), bytes.size()))
    throw_device_error(device_, status, "copy_from_host");
}

std::vector<unsigned char> GuardedCall::read(void* data, uint64_t offset, uint64_t size) {
  if (!size) return {};
  const uint64_t inside = splits_granules(device_, offset, size) ? offset & (device_.properties.copy_granule - 1) : 0;
  std::vector<unsigned char> bytes(block_size(device_, inside + size));
  if (const bp_status status = table_.copy_to_host(table_.context, device_.ordinal, frame_.stream, bytes.data(), data,
                                                   offset - inside, bytes.size()))
    throw_device_error(device_, status, "copy_to_host");
  const auto first = bytes.begin() + static_cast<ptrdiff_t>(inside);
  return {first, first + static_cast<ptrdiff_t>(size)};
}

void GuardedCall::copy(void* to, uint64_t to_offset, void* from, uint64_t from_offset, uint64_t size) {
  if (device_.synchronous() || splits_granules(device_, to_offset, size) || splits_granules(device_, from_offset, size))
    return write(to, to_offset, read(from, from_offset, size));
  if (const bp_status status = table_.copy(table_.context, device_.ordinal, frame_.stream, frame_.ticket, to, to_offset,
                                           from, from_offset, size))
    throw_device_error(device_, status, "copy");
}

// An error of the work itself stays with the stream, whose next wait reports it.
void GuardedCall::wait() {
  if (device_.synchronous()) return;
  if (const bp_status status = table_.flush(table_.context, device_.ordinal, frame_.stream, frame_.ticket))
    throw_device_error(device_, status, "flush");
  table_.wait(table_.context, device_.ordinal, frame_.stream, frame_.ticket);
}

std::string GuardedCall::fault_of(const Margin& margin) {
  return written_to(read(margin.data, margin.offset, margin.size), kMargin, margin.offset, margin.what);
}

std::string GuardedCall::fault_of(const Input& input) {
  const std::string what = "argument " + std::to_string(input.index + 1);
  const std::string written = "wrote into its " + what + "; a kernel must not write arguments";
  const bp_tensor& tensor = *input.tensor;
  if (!input.stand_in) return read(tensor.dl.data, tensor.dl.byte_offset, tensor.nbytes) == input.before ? "" : written;
  if (input.stand_in->refs.load() < kOwnReferences)
    return "released " + what + ", which it borrows: release what you retain";
  const std::vector<unsigned char> all = read(input.block->data, 0, input.block->size);
  const std::span<const unsigned char> bytes(all);
  if (!std::ranges::equal(bytes.subspan(margin_, tensor.nbytes), input.before)) return written;
  const std::string before = written_to(bytes.first(margin_), kArgumentMargin, 0, "before the start of " + what);
  if (!before.empty()) return before;
  return written_to(bytes.last(margin_), kArgumentMargin, bytes.size() - margin_, "behind the end of " + what);
}

std::string GuardedCall::fault_of(const RetiredBlock& block) {
  const std::vector<unsigned char> bytes = read(block.data, 0, block.size);
  if (length_of_change(bytes, kRetired, 0) == 0) return "";
  if (block.was_argument)
    return "wrote into the memory of an argument of an earlier call; arguments are lent for the call's own work";
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
