// The streams and events of PyTorch over Backplane's. A stream's number is its place in a table of the process.
#pragma once

#include <c10/core/Stream.h>

#include "backplane/stream.hpp"

namespace backplane_torch {

backplane::Stream stream_of(const c10::Stream& stream);
c10::Stream current_stream(c10::DeviceIndex index);
c10::Stream exchange_stream(const c10::Stream& stream);
c10::Stream new_stream(c10::DeviceIndex index, int priority);

}  // namespace backplane_torch
