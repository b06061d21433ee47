// Bytes from a storage of one device to a storage of another.
#pragma once

#include "memory/devices/device.hpp"

namespace backplane::core {

// Do the backends of both say that `to` can read `from` without the host?
bool are_peers(Device& to, Device& from);
// Later work of `stream` comes after `ticket` of a stream of another device, without the host. False: they are no
// peers.
bool wait_for_position_of_peer(Stream& stream, Stream& other, uint64_t ticket);
// In the order of the current streams of both devices. Peers copy without the host. Else it goes through two blocks of
// the host's memory, read ahead of what the other device takes, and returns when the source has been read.
void copy_between(Device& to, bp_storage* dst, uint64_t dst_offset, Device& from, bp_storage* src, uint64_t src_offset,
                  uint64_t size);

}  // namespace backplane::core
