// The shader of an elementwise region: loads, calls and stores per element.
#include "fuse/linker.hpp"

#include "fuse/region_writer.hpp"

namespace backplane::vulkan {
namespace {

constexpr uint32_t kPlain[] =
#include "region.spv.inc"
    ;
constexpr uint32_t kWithFloat64[] =
#include "region_float64.spv.inc"
    ;
const SpirvLibrary& library(bool float64) {
  static const SpirvLibrary plain{SpirvWords(kPlain)};
  static const SpirvLibrary with_float64{SpirvWords(kWithFloat64)};
  return float64 ? with_float64 : plain;
}

class ElementwiseWriter : public RegionWriter {
 public:
  ElementwiseWriter(const plugin::FusedProgram& program, const Layout& layout, const SpirvLibrary& library)
      : RegionWriter(program, library, layout.rows.size()), layout_(layout), each_(program.uniform.size()) {}

  std::vector<uint32_t> run() {
    std::vector<size_t> loads, stores, stores_once;
    for (size_t k = 0; k < program_.loads.size(); ++k)
      if (layout_.reaches[k] == kOnce) loads.push_back(k);
    for (size_t s = 0; s < program_.stores.size(); ++s) {
      const char reach = layout_.reaches[program_.loads.size() + s];
      if (reach != kUnused) (reach == kOnce ? stores_once : stores).push_back(s);
    }
    write_once(loads, stores_once);
    for (size_t k = 0; k < program_.loads.size(); ++k) {
      const plugin::FusedOperand& operand = program_.loads[k];
      if (layout_.reaches[k] != kOnce)
        each_[operand.variable] = load(region_, operand.dtype, address(k, operand.dtype));
    }
    for (const plugin::FusedCall& each : program_.calls) {
      if (program_.uniform[each.result]) continue;
      std::vector<Value> args;
      for (const uint32_t arg : each.args) args.push_back(value(arg));
      each_[each.result] = call(region_, each.function, args);
    }
    for (const size_t s : stores) {
      const plugin::FusedOperand& operand = program_.stores[s];
      call(region_, std::string("store_") + plugin::dtype_name(operand.dtype),
           {address(program_.loads.size() + s, operand.dtype), value(operand.variable)});
    }
    return module();
  }

 private:
  Value address(size_t k, bp_dtype dtype) {
    return reached(region_, layout_, k, slot(region_, k), position_, dtype, 0);
  }
  Value value(uint32_t variable) { return program_.uniform[variable] ? once(variable) : each_[variable]; }

  const Layout& layout_;
  std::vector<Value> each_;  // per variable of the program
};

}  // namespace

std::vector<uint32_t> link_region(const plugin::FusedProgram& program, const Layout& layout, bool float64) {
  return ElementwiseWriter(program, layout, library(float64)).run();
}

}  // namespace backplane::vulkan
