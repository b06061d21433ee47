// Compiling and running a region; see executable.hpp.
#include "fuse/executable.hpp"

#include "fuse/source.hpp"
#include "kernels/call.hpp"

namespace backplane::cuda {
namespace {

constexpr int64_t kMaxCount = (int64_t{1} << 31) - 1;

Place place_of(const bp_tensor& tensor) {
  return {data_of(tensor), shape_of(tensor), {tensor.dl.strides, tensor.dl.strides + tensor.dl.ndim}};
}

// A contiguous operand of these sizes, at an address that no access is too wide for.
Place contiguous(plugin::Dims dims) {
  Place place{reinterpret_cast<char*>(uintptr_t{256}), {dims.begin(), dims.end()}, std::vector<int64_t>(dims.size())};
  int64_t step = 1;
  for (size_t d = dims.size(); d-- > 0;) place.strides[d] = step, step *= dims[d];
  return place;
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
    : host_(host),
      backend_(backend),
      program_(plugin::FusedLowering(region, rules).run()),
      n_inputs_(static_cast<uint32_t>(region.inputs().size())) {
  // As operands usually lie, so that a fault of the source is found now.
  std::vector<Place> places;
  for (const plugin::FusedOperand& load : program_.loads)
    places.push_back(load.input < n_inputs_ ? contiguous(region.dims(region.inputs()[load.input]))
                                            : place_of(constant(load)));
  for (const uint32_t value : region.outputs()) places.push_back(contiguous(region.dims(value)));
  bool known = true;
  for (const Place& place : places)
    for (const int64_t size : place.shape) known = known && size >= 0;
  if (known) kernel(layout_of(program_, axes_of(program_, places), data_of(places)));
  for (bp_tensor* constant : program_.constants) host_->retain(constant);
}

Executable::~Executable() {
  for (bp_tensor* constant : program_.constants) host_->release(constant);
}

std::shared_ptr<const RegionKernel> Executable::kernel(const Layout& layout) {
  const std::string key = layout.key();
  std::lock_guard lock(mutex_);
  std::shared_ptr<const RegionKernel>& found = kernels_[key];
  if (!found) found = kernel_cache().find(print_region(program_, layout));
  return found;
}

void Executable::run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs) {
  BP_CHECK(static_cast<uint32_t>(n_inputs) == n_inputs_ && static_cast<size_t>(n_outs) == program_.stores.size(), VALUE,
           frame->op->name, ": found ", n_inputs, " inputs and ", n_outs, " outputs, expected ", n_inputs_, " and ",
           program_.stores.size());
  std::vector<Place> places;
  for (const plugin::FusedOperand& load : program_.loads)
    places.push_back(place_of(load.input < n_inputs_ ? *inputs[load.input].u.t : constant(load)));
  for (int32_t k = 0; k < n_outs; ++k)
    places.push_back(outs[k].tag == BP_TAG_TENSOR ? place_of(*outs[k].u.t) : Place{});
  Device& device = backend_.device(frame->ordinal);
  const DeviceScope scope(device);
  launch_parts({frame, device, as_stream(frame->stream)}, axes_of(program_, places), data_of(places));
}

// In parts along the outermost axis where there are more elements than a kernel counts.
void Executable::launch_parts(const Launch& launch, std::vector<plugin::FusedAxis> axes,
                              const std::vector<char*>& data) {
  const Layout layout = layout_of(program_, std::move(axes), data);
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
  std::vector<std::byte> arguments = region_arguments(program_, layout, data);
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

bool Executable::may_share(uint32_t out, uint32_t in) const {
  const plugin::FusedOperand* read = nullptr;
  for (const plugin::FusedOperand& load : program_.loads) {
    if (load.input != in) continue;
    if (read != nullptr) return false;  // in two ways
    read = &load;
  }
  const plugin::FusedOperand& written = program_.stores[out];
  return read != nullptr && read->dtype == written.dtype && read->axes == written.axes && !written.uniform();
}

}  // namespace backplane::cuda
