#include "functions/closed_function.hpp"

#include <string_view>
#include <vector>

namespace backplane::core {
namespace {

struct Maker {
  std::string_view tag;
  MakeFunction make;
};

std::vector<Maker>& makers() {
  static std::vector<Maker> list;
  return list;
}

// `tags` are words that commas part.
bool has_tag(std::string_view tags, std::string_view tag) {
  for (size_t at = 0; at <= tags.size();) {
    const size_t end = std::min(tags.find(',', at), tags.size());
    if (tags.substr(at, end - at) == tag) return true;
    at = end + 1;
  }
  return false;
}

}  // namespace

std::vector<Tensor> ClosedFunction::result_forms(std::span<const Tensor>) const {
  detail::fail(BP_ERROR_NOT_IMPLEMENTED, name(), ": is not a graph, so its results are not known before it runs");
}

void add_function_maker(const char* tag, MakeFunction make) { makers().push_back({tag, make}); }

MakeFunction function_maker(const bp_op_def& def) {
  if (!def.tags) return nullptr;
  for (const Maker& maker : makers())
    if (has_tag(def.tags, maker.tag)) return maker.make;
  return nullptr;
}

}  // namespace backplane::core
