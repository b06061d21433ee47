// `fuzz: {speed: 'uniform(-3, 3)'}`: the range of a number from which samples are derived.
#include <cstdlib>
#include <optional>

#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

// "uniform(LOW, HIGH)"
std::optional<FuzzRange> range_of(const std::string& text) {
  constexpr std::string_view kOpen = "uniform(";
  if (text.compare(0, kOpen.size(), kOpen) != 0) return std::nullopt;
  FuzzRange range;
  const char* at = text.c_str() + kOpen.size();
  char* end = nullptr;
  range.low = std::strtod(at, &end);
  if (end == at || *end != ',') return std::nullopt;
  at = end + 1;
  range.high = std::strtod(at, &end);
  if (end == at || std::string_view(end) != ")" || !(range.low < range.high)) return std::nullopt;
  return range;
}

}  // namespace

void read_fuzz(ValueReader& reader, const YamlNode& node, Entry& entry) {
  for (const auto& [name, range] : reader.read_word_map(node, "fuzz")) {
    const int arg = entry.signature.find_arg(name.value);
    if (arg < 0 || entry.signature.args[static_cast<size_t>(arg)].type != BP_TYPE_SCALAR) {
      reader.diagnostics().error(name.location(), "'fuzz' names '" + name.value + "', which is not a Scalar of '" +
                                                      entry.name() + "'; name one");
      continue;
    }
    std::optional<FuzzRange> found = range_of(range.value);
    if (!found) {
      reader.diagnostics().error(range.location(), "the range of '" + name.value + "' is '" + range.value +
                                                       "'; write uniform(LOW, HIGH), as in 'uniform(-3, 3)'");
      continue;
    }
    found->arg = static_cast<uint32_t>(arg);
    entry.fuzz.push_back(*found);
  }
}

const FuzzRange* Entry::fuzz_of(uint32_t arg) const {
  for (const FuzzRange& range : fuzz)
    if (range.arg == arg) return &range;
  return nullptr;
}

}  // namespace backplane::codegen
