// Compiling and running a region; see executable.hpp.
#include "fuse/executable.hpp"

#include <cstring>

namespace backplane::vulkan {

Executable::Executable(const bp_host* host, Device& device, const plugin::GraphView& region,
                       const plugin::FusedRules& rules)
    : FusedRegion(host, region, rules), device_(device) {
  std::vector<Sizes> shapes, strides;
  for (plugin::FusedPlace& place : usual_places(region)) {
    shapes.push_back(std::move(place.shape));
    strides.push_back(std::move(place.strides));
  }
  if (!shapes.empty())
    pipeline(layout_of(program(), shapes, strides, std::vector<bool>(shapes.size(), true), "a region"));
}

SharedPipeline Executable::pipeline(const Layout& layout) {
  const std::string key = layout.key();
  std::lock_guard lock(mutex_);
  SharedPipeline& found = pipelines_[key];
  if (!found || !found->usable()) found = device_.pipeline(link_region(program(), layout, device_.has_float64()));
  return found;
}

void Executable::run(const bp_frame* frame, const bp_value* inputs, int32_t n_inputs, bp_value* outs, int32_t n_outs) {
  check_counts(frame, n_inputs, n_outs);
  const Call call(frame, inputs, n_inputs, outs, n_outs);
  std::vector<Operand> operands;
  std::vector<bool> wanted;
  for (const plugin::FusedOperand& load : program().loads) {
    const bp_tensor* own = constant(load);
    operands.push_back(own ? call.operand(*own) : call.input(load.input));
    wanted.push_back(true);
  }
  for (size_t k = 0; k < program().stores.size(); ++k) {
    wanted.push_back(call.wants(k));
    operands.push_back(call.wants(k) ? call.output(k) : Operand{});
  }
  std::vector<Sizes> shapes, strides;
  for (const Operand& operand : operands) {
    shapes.push_back(operand.shape);
    strides.push_back(operand.strides);
  }
  const Layout layout = layout_of(program(), shapes, strides, wanted, frame->op->name);
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
  for (const plugin::FusedNumber& number : program().numbers)
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
                         all.subspan(program().loads.size()), all.first(program().loads.size()));
}

}  // namespace backplane::vulkan
