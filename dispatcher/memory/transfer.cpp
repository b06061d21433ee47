#include "memory/transfer.hpp"

#include <algorithm>

#include "backplane/error.hpp"
#include "memory/copy.hpp"
#include "memory/granules.hpp"
#include "memory/pinned.hpp"
#include "memory/process/epoch.hpp"

namespace backplane::core {
namespace {

constexpr uint64_t kPiece = uint64_t{4} << 20;  // of a staged copy: large beside a call, small beside the memory

bool agrees(Device& device, Device& peer) {
  const bp_extension_peer* extension = device.backend->extensions.peer;
  if (!extension) return false;
  int32_t yes = 0;
  CallGuard guard;
  const bp_status status =
      extension->agrees(device.backend->def.context, device.ordinal, peer.backend->name.c_str(), peer.ordinal, &yes);
  if (status != BP_OK) throw_device_error(device, status, "agrees");
  return yes != 0;
}

// `stream` goes on after `ticket` of a stream of the peer, which has been flushed.
void wait_for_peer(Stream& stream, Stream& other, uint64_t ticket) {
  Device& device = *stream.device;
  Device& peer = *other.device;
  CallGuard guard;
  if (bp_status status =
          device.backend->extensions.peer->stream_wait(device.backend->def.context, device.ordinal, stream.handle,
                                                       peer.backend->name.c_str(), peer.ordinal, other.handle, ticket))
    throw_device_error(device, status, "stream_wait on a peer");
  stream.waits = true;
}

// The locks of two devices, with both streams free. Two locks of one rank, always in the same order.
class BothLocks {
 public:
  BothLocks(Stream& a, Stream& b)
      : a_first_(std::less<Device*>()(a.device, b.device)),
        outer_(a_first_ ? *a.device : *b.device),
        inner_(a_first_ ? *b.device : *a.device) {
    lock();
    while (a.busy || b.busy) {
      unlock();
      for (Stream* stream : {&a, &b}) {
        std::lock_guard guard(stream->device->lock);
        await_turn(*stream);
      }
      lock();
    }
  }
  ~BothLocks() { unlock(); }
  BothLocks(const BothLocks&) = delete;

 private:
  // Each twice: what waits for a third stream then keeps them, and so their order.
  void lock() {
    for (Device* device : {&outer_, &outer_, &inner_, &inner_}) device->lock.lock();
  }
  void unlock() {
    for (Device* device : {&inner_, &inner_, &outer_, &outer_}) device->lock.unlock();
  }
  const bool a_first_;
  Device &outer_, &inner_;
};

// A stream of the source device stands for the copy there: it waits until the receiver has read, so that code which
// changes or frees the source waits for this stream, as for any other of its device.
class CopyStream {
 public:
  explicit CopyStream(Device& device) : stream_(new_stream(device)) {}
  ~CopyStream() {
    std::lock_guard lock(stream_.device->lock);
    if (!stream_.retired) stream_.device->idle_streams.push_back(&stream_);
  }
  CopyStream(const CopyStream&) = delete;
  Stream& get() { return stream_; }

 private:
  Stream& stream_;
};

void copy_from_peer(Device& to, bp_storage* dst, uint64_t dst_offset, Device& from, bp_storage* src,
                    uint64_t src_offset, uint64_t size) {
  Stream& receiver = current_stream(to);
  BP_CHECK(!receiver.capture && !current_stream(from).capture, VALUE, "device ", name_of(to),
           ": a copy between devices cannot be captured. Fix: copy before the capture");
  CopyStream copy(from);
  Stream& sender = copy.get();
  const BothLocks locks(receiver, sender);
  const uint64_t written = issue(sender, "copy", &src, 1, nullptr, 0);
  flush(sender);
  issue(sender, "copy", &src, 1, nullptr, 0);  // the read's end
  sender.unfinished.back().only_waits = true;
  wait_for_peer(receiver, sender, written);
  const uint64_t ticket = issue(receiver, "copy", &dst, size < dst->size ? 1 : 0, &dst, 1);
  receiver.unfinished.back().read.push_back({&sender, written});
  {
    CallGuard guard;
    if (bp_status status = to.backend->extensions.peer->copy(to.backend->def.context, to.ordinal, receiver.handle,
                                                             ticket, dst->data, dst_offset, from.backend->name.c_str(),
                                                             from.ordinal, src->data, src_offset, size))
      throw_device_error(to, status, "copy from a peer");
  }
  flush(receiver);
  wait_for_peer(sender, receiver, ticket);
  flush(sender);
}

// Two blocks of host memory, pinned where the source's backend offers that.
class Staging {
 public:
  Staging(Device& source, uint64_t size) : source_(source), pinned_(source.backend->extensions.pinned != nullptr) {
    for (Block& block : blocks_)
      block.reset(pinned_ ? new_pinned(*source.backend, size) : new_storage(host_device(), size));
  }

  void start(int which, bp_storage* src, uint64_t offset, uint64_t size) {
    if (pinned_)
      tickets_[which] = copy_to_pinned(source_, blocks_[which].get(), 0, src, offset, size);
    else
      copy_to_host(source_, src, offset, blocks_[which]->data, size);
  }
  const void* finish(int which) {
    if (pinned_) wait_for(current_stream(source_), tickets_[which]);
    return blocks_[which]->data;
  }

 private:
  struct Release {
    void operator()(bp_storage* block) const { release(block); }
  };
  using Block = std::unique_ptr<bp_storage, Release>;

  Device& source_;
  const bool pinned_;
  Block blocks_[2];
  uint64_t tickets_[2] = {};
};

void copy_staged(Device& to, bp_storage* dst, uint64_t dst_offset, Device& from, bp_storage* src, uint64_t src_offset,
                 uint64_t size) {
  Staging staging(from, std::min(size, kPiece));
  const auto length = [&](uint64_t done) { return std::min(size - done, kPiece); };
  staging.start(0, src, src_offset, length(0));
  int which = 0;
  for (uint64_t done = 0; done < size; done += kPiece, which ^= 1) {
    const uint64_t next = done + kPiece;
    const void* bytes = staging.finish(which);
    if (next < size) staging.start(which ^ 1, src, src_offset + next, length(next));
    copy_from_host(to, dst, dst_offset + done, bytes, length(done));
  }
}

}  // namespace

bool wait_for_position_of_peer(Stream& stream, Stream& other, uint64_t ticket) {
  if (!are_peers(*stream.device, *other.device)) return false;
  const BothLocks locks(stream, other);
  if (other.completed >= ticket) return true;
  flush(other);
  wait_for_peer(stream, other, ticket);
  return true;
}

bool are_peers(Device& to, Device& from) { return agrees(to, from) && agrees(from, to); }

void copy_between(Device& to, bp_storage* dst, uint64_t dst_offset, Device& from, bp_storage* src, uint64_t src_offset,
                  uint64_t size) {
  if (size == 0) return;
  check_usable(to);
  check_usable(from);
  check_current(*src);
  if (from.host_memory())
    copy_from_host(to, dst, dst_offset, static_cast<const char*>(src->data) + src_offset, size);
  else if (to.host_memory())
    copy_to_host(from, src, src_offset, static_cast<char*>(dst->data) + dst_offset, size);
  else if (are_peers(to, from) && !splits_granules(to, dst_offset, size) && !splits_granules(from, src_offset, size))
    copy_from_peer(to, dst, dst_offset, from, src, src_offset, size);
  else
    copy_staged(to, dst, dst_offset, from, src, src_offset, size);
}

}  // namespace backplane::core
