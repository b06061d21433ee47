// Compiling and running a region; see executable.hpp.
#include "fuse/executable.hpp"

#include <cstring>

#include "fuse/linker.hpp"
#include "fuse/region_writer.hpp"

namespace backplane::vulkan {
namespace {

// The push constants. Where there are more slots, all of them stand in the table.
struct RegionPush {
  uint64_t table = 0;
  uint32_t count = 0;
  uint32_t skipped = 0;  // bytes of the table before the layout's rows
  std::array<uint64_t, kPushed> at{};
};
static_assert(sizeof(RegionPush) == kPushBytes);

}  // namespace

Executable::Executable(const bp_host* host, Device& device, const plugin::GraphView& region,
                       const plugin::FusedRules& rules)
    : FusedRegion(host, region, rules), device_(device) {
  std::vector<Sizes> shapes, strides;
  for (plugin::FusedPlace& place : usual_places(region)) {
    shapes.push_back(std::move(place.shape));
    strides.push_back(std::move(place.strides));
  }
  if (!shapes.empty()) shape_for(shapes, strides, std::vector<bool>(shapes.size(), true), "a region");
}

template <class Link>
SharedPipeline Executable::pipeline(const std::string& key, Link&& link) {
  std::lock_guard lock(mutex_);
  SharedPipeline& found = pipelines_[key];
  if (!found || !found->usable()) found = device_.pipeline(link(), program().has_rows());
  return found;
}

Executable::Shape Executable::shape_for(const std::vector<Sizes>& shapes, const std::vector<Sizes>& strides,
                                        const std::vector<bool>& wanted, const char* name) {
  if (!program().has_rows()) {
    Layout layout = layout_of(program(), shapes, strides, wanted, name);
    SharedPipeline shader =
        pipeline(layout.key(), [&] { return link_region(program(), layout, device_.has_float64()); });
    return {std::move(shader), layout.count, groups_for(layout.count), std::move(layout.rows), {}};
  }
  RowLayout layout =
      row_layout_of(program(), shapes, strides, wanted, name, device_.subgroup_size(), device_.is_software());
  SharedPipeline shader =
      pipeline(layout.key(), [&] { return link_rows(program(), passes(), layout, device_.has_float64()); });
  std::vector<int32_t>& rows = layout.outer.rows;
  rows.insert(rows.end(), layout.inner.rows.begin(), layout.inner.rows.end());
  return {std::move(shader), layout.outer.count, groups_for(layout.outer.count * layout.lanes), std::move(rows),
          static_cast<uint64_t>(layout.inner.count) | uint64_t{layout.lanes} << 32};
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
  const Shape shape = shape_for(shapes, strides, wanted, frame->op->name);
  if (shape.count == 0) return;
  BP_CHECK(shape.count <= kMaxElements, VALUE, frame->op->name, ": found ", shape.count, " elements, expected at most ",
           kMaxElements);
  RegionPush push;
  push.count = static_cast<uint32_t>(shape.count);
  std::vector<uint64_t> slots;
  std::vector<Range> ranges;
  for (const Operand& operand : operands) {
    slots.push_back(operand.data);
    ranges.push_back(operand.range());
  }
  for (const plugin::FusedNumber& number : program().numbers)
    for (size_t k = 0; k < slots_of(number.dtype); ++k)
      std::memcpy(&slots.emplace_back(), number.bytes + 8 * k, sizeof(uint64_t));
  if (shape.row_sizes) slots.push_back(*shape.row_sizes);
  const bool pushed = slots.size() <= kPushed;
  if (pushed) std::copy(slots.begin(), slots.end(), push.at.begin());
  std::vector<std::byte> table(pushed ? 0 : slots.size() * sizeof(uint64_t));
  if (!table.empty()) std::memcpy(table.data(), slots.data(), table.size());
  push.skipped = static_cast<uint32_t>(table.size());
  const auto rows = std::as_bytes(std::span(shape.rows));
  table.insert(table.end(), rows.begin(), rows.end());
  push.table = call.stage(table);
  const std::span all(ranges);
  call.stream().dispatch(shape.pipeline, std::as_bytes(std::span(&push, 1)), static_cast<uint32_t>(shape.groups),
                         all.subspan(program().loads.size()), all.first(program().loads.size()));
}

}  // namespace backplane::vulkan
