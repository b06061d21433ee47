// Compiling and running a region; see executable.hpp.
#include "fuse/executable.hpp"

#include "fuse/source.hpp"
#include "kernels/call.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kMaxCount = (int64_t{1} << 31) - 1;
char* const kAligned = reinterpret_cast<char*>(uintptr_t{256});  // an address that no access is too wide for

Place place_of(const bp_tensor& tensor) {
  return {data_of(tensor), shape_of(tensor), {tensor.dl.strides, tensor.dl.strides + tensor.dl.ndim}};
}

std::vector<char*> data_of(const std::vector<Place>& places) {
  std::vector<char*> data;
  for (const Place& place : places) data.push_back(place.data);
  return data;
}

}  // namespace

struct Executable::Launch {
  const bp_frame* frame;
  Device& device;
  Stream& stream;
};

Executable::Executable(const bp_host* host, Backend& backend, const plugin::GraphView& region,
                       const plugin::FusedRules& rules)
    : FusedRegion(host, region, rules), backend_(backend) {
  std::vector<Place> places;
  for (plugin::FusedPlace& place : usual_places(region)) {
    char* data = place.constant ? data_of(*place.constant) : kAligned;
    places.push_back({data, std::move(place.shape), std::move(place.strides)});
  }
  if (!places.empty()) kernel(layout_of(program(), axes_of(program(), places), data_of(places)));
}

std::shared_ptr<const RegionKernel> Executable::kernel(const Layout& layout) {
  const std::string key = layout.key();
  std::lock_guard lock(mutex_);
  std::shared_ptr<const RegionKernel>& found = kernels_[key];
  if (!found) found = kernel_cache().find(print_region(program(), layout));
  return found;
}

void Executable::run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs) {
  check_counts(frame, n_inputs, n_outs);
  std::vector<Place> places;
  for (const plugin::FusedOperand& load : program().loads) {
    const bp_tensor* own = constant(load);
    places.push_back(place_of(own ? *own : *inputs[load.input].u.t));
  }
  for (int32_t k = 0; k < n_outs; ++k)
    places.push_back(outs[k].tag == BP_TAG_TENSOR ? place_of(*outs[k].u.t) : Place{});
  Device& device = backend_.device(frame->ordinal);
  const DeviceScope scope(device);
  launch_parts({frame, device, as_stream(frame->stream)}, axes_of(program(), places), data_of(places));
}

// In parts along the outermost axis where there are more elements than a kernel counts.
void Executable::launch_parts(const Launch& launch, std::vector<plugin::FusedAxis> axes,
                              const std::vector<char*>& data) {
  const Layout layout = layout_of(program(), std::move(axes), data);
  const int64_t count = layout.count();
  if (count == 0) return;
  if (count > kMaxCount) {
    const int64_t size = layout.axes.back().size, half = size / 2;
    std::vector<plugin::FusedAxis> part = layout.axes;
    std::vector<char*> begin = data;
    part.back().size = half;
    launch_parts(launch, part, begin);
    for (size_t k = 0; k < begin.size(); ++k)
      if (begin[k]) begin[k] += half * part.back().strides[k];
    part.back().size = size - half;
    launch_parts(launch, part, begin);
    return;
  }
  const std::shared_ptr<const RegionKernel> found = kernel(layout);
  const driver::Function function = launch.device.modules().function(found->module, kRegionKernel, found->ptx.c_str());
  std::vector<std::byte> arguments = region_arguments(program(), layout, data);
  void* parameter = arguments.data();
  void* table = nullptr;
  if (arguments.size() > kMostParameterBytes) {
    table = plugin::Context{launch.frame}.scratch(arguments.size());
    launch.stream.copy_from_host(at(table, 0), arguments.data(), arguments.size());
    parameter = &table;
  }
  const Grid grid = grid_for(launch.device, static_cast<uint64_t>(count) / layout.width);
  launch_kernel(function, grid, launch.stream, &parameter, launch.frame->op->name);
}

}  // namespace backplane::cuda
