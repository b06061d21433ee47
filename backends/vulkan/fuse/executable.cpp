// Compiling and running a region; see executable.hpp.
#include "fuse/executable.hpp"

#include <cstring>

namespace backplane::vulkan {
namespace {

Sizes shape_of(plugin::Dims dims) { return {dims.begin(), dims.end()}; }
Sizes shape_of(const bp_tensor& tensor) { return {tensor.dl.shape, tensor.dl.shape + tensor.dl.ndim}; }

}  // namespace

Executable::Executable(const bp_host* host, Device& device, const plugin::GraphView& region,
                       const plugin::FusedRules& rules)
    : host_(host),
      device_(device),
      program_(plugin::FusedLowering(region, rules).run()),
      n_inputs_(static_cast<uint32_t>(region.inputs().size())) {
  // As operands usually lie, so that a fault of the shader is found now.
  std::vector<Sizes> shapes;
  for (const plugin::FusedOperand& load : program_.loads)
    shapes.push_back(load.input < n_inputs_ ? shape_of(region.dims(region.inputs()[load.input]))
                                            : shape_of(constant(load)));
  for (const uint32_t value : region.outputs()) shapes.push_back(shape_of(region.dims(value)));
  bool known = true;
  std::vector<Sizes> strides;
  for (const Sizes& shape : shapes) {
    for (const int64_t size : shape) known = known && size >= 0;
    strides.push_back(row_major(shape));
  }
  if (known) pipeline(layout_of(program_, shapes, strides, std::vector<bool>(shapes.size(), true), "a region"));
  for (bp_tensor* constant : program_.constants) host_->retain(constant);
}

Executable::~Executable() {
  for (bp_tensor* constant : program_.constants) host_->release(constant);
}

SharedPipeline Executable::pipeline(const Layout& layout) {
  const std::string key = layout.key();
  std::lock_guard lock(mutex_);
  SharedPipeline& found = pipelines_[key];
  if (!found || !found->usable()) found = device_.pipeline(link_region(program_, layout, device_.has_float64()));
  return found;
}

void Executable::run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs) {
  BP_CHECK(static_cast<uint32_t>(n_inputs) == n_inputs_ && static_cast<size_t>(n_outs) == program_.stores.size(), VALUE,
           frame->op->name, ": found ", n_inputs, " inputs and ", n_outs, " outputs, expected ", n_inputs_, " and ",
           program_.stores.size());
  const Call call(frame, inputs, n_inputs, outs, n_outs);
  std::vector<Operand> operands;
  std::vector<bool> wanted;
  for (const plugin::FusedOperand& load : program_.loads) {
    operands.push_back(load.input < n_inputs_ ? call.input(load.input) : call.operand(constant(load)));
    wanted.push_back(true);
  }
  for (size_t k = 0; k < program_.stores.size(); ++k) {
    wanted.push_back(call.wants(k));
    operands.push_back(call.wants(k) ? call.output(k) : Operand{});
  }
  std::vector<Sizes> shapes, strides;
  for (const Operand& operand : operands) {
    shapes.push_back(operand.shape);
    strides.push_back(operand.strides);
  }
  const Layout layout = layout_of(program_, shapes, strides, wanted, frame->op->name);
  if (layout.count == 0) return;
  BP_CHECK(layout.count <= kMaxElements, VALUE, frame->op->name, ": found ", layout.count,
           " elements, expected at most ", kMaxElements);
  RegionPush push;
  push.count = static_cast<uint32_t>(layout.count);
  std::vector<uint64_t> slots;
  std::vector<Range> ranges;
  for (const Operand& operand : operands) {
    slots.push_back(operand.data);
    ranges.push_back(operand.range());
  }
  for (const plugin::FusedNumber& number : program_.numbers)
    for (size_t k = 0; k < slots_of(number.dtype); ++k)
      std::memcpy(&slots.emplace_back(), number.bytes + 8 * k, sizeof(uint64_t));
  const bool pushed = slots.size() <= kPushed;
  if (pushed) std::copy(slots.begin(), slots.end(), push.at.begin());
  std::vector<std::byte> table(pushed ? 0 : slots.size() * sizeof(uint64_t));
  if (!table.empty()) std::memcpy(table.data(), slots.data(), table.size());
  push.skipped = static_cast<uint32_t>(table.size());
  const auto rows = std::as_bytes(std::span(layout.rows));
  table.insert(table.end(), rows.begin(), rows.end());
  const SharedPipeline shader = pipeline(layout);
  push.table = call.stage(table);
  const std::span all(ranges);
  call.stream().dispatch(shader, std::as_bytes(std::span(&push, 1)), groups_for(layout.count),
                         all.subspan(program_.loads.size()), all.first(program_.loads.size()));
}

bool Executable::may_share(size_t out, size_t in) const {
  const plugin::FusedOperand* read = nullptr;
  for (const plugin::FusedOperand& load : program_.loads) {
    if (load.input != in) continue;
    if (read != nullptr) return false;  // in two ways
    read = &load;
  }
  const plugin::FusedOperand& written = program_.stores[out];
  return read != nullptr && read->dtype == written.dtype && read->axes == written.axes && !written.uniform();
}

}  // namespace backplane::vulkan
