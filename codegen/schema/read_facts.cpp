// What an entry says for compilers and checkers: `faults: [index, division]` and `region: reduce(sum)`.
#include <algorithm>
#include <utility>

#include "schema/reader.hpp"

namespace backplane::codegen {
namespace {

using Words = std::vector<std::pair<std::string_view, uint16_t>>;

const Words kFaults = {{"none", BP_FAULT_NONE},
                       {"index", BP_FAULT_INDEX},
                       {"division", BP_FAULT_DIVISION},
                       {"exponent", BP_FAULT_EXPONENT},
                       {"domain", BP_FAULT_DOMAIN}};
const Words kRegions = {{"none", BP_REGION_NONE},           {"cast", BP_REGION_CAST},
                        {"view", BP_REGION_VIEW},           {"elementwise", BP_REGION_ELEMENTWISE},
                        {"product", BP_REGION_PRODUCT},     {"reduce(sum)", BP_REGION_REDUCE},
                        {"reduce(prod)", BP_REGION_REDUCE}, {"reduce(max)", BP_REGION_REDUCE},
                        {"reduce(min)", BP_REGION_REDUCE},  {"reduce(any)", BP_REGION_REDUCE},
                        {"reduce(all)", BP_REGION_REDUCE}};

// The row of the word; the end, with an error, if the word is unknown.
Words::const_iterator find_word(ValueReader& reader, const Words& words, const Text& word, const char* key) {
  const auto found = std::find_if(words.begin(), words.end(), [&](const auto& row) { return row.first == word.value; });
  if (found != words.end()) return found;
  std::vector<std::string_view> names;
  for (const auto& [name, value] : words) names.push_back(name);
  reader.diagnostics().error(word.location(), "'" + std::string(key) + "' is '" + word.value + "'" +
                                                  suggestion(word.value, names) + "; the words are " + listed(names));
  return words.end();
}

}  // namespace

void read_faults(ValueReader& reader, const YamlNode& node, Entry& entry) {
  uint64_t faults = 0;
  for (const Text& word : reader.read_words(node, "faults"))
    if (const auto row = find_word(reader, kFaults, word, "faults"); row != kFaults.end()) faults |= row->second;
  if ((faults & BP_FAULT_NONE) && faults != BP_FAULT_NONE)
    reader.error(node, "'faults' says none and names some; keep one of the two");
  if (faults != 0) entry.faults = faults;
}

void read_region(ValueReader& reader, const YamlNode& node, Entry& entry) {
  if (!reader.expect_scalar(node, "region")) return;
  entry.region_text = node.text;
  const auto row = find_word(reader, kRegions, node.text, "region");
  if (row == kRegions.end()) return;
  entry.region = row->second;
  // The words of reductions come last, in the order of BP_JOIN_*.
  if (entry.region == BP_REGION_REDUCE) entry.join = static_cast<uint16_t>(BP_JOIN_ALL - (kRegions.end() - row - 1));
}

}  // namespace backplane::codegen
