// docs/ops/list-of-primitives.md: what a backend must compute to run the whole registry, family by family.
#include <map>
#include <vector>

#include "emit/emit.hpp"
#include "emit/markdown.hpp"
#include "schema/vocabulary.hpp"

namespace backplane::codegen {
namespace {

constexpr const char* kHead =
    "What a backend must have a kernel for to run the whole registry, but for what may run on the host (`host: true`): "
    "all "
    "other ops decompose into these. A kernel is a `bp_kernel_fn` (`backplane/abi/host.h`), registered once per op; "
    "one function "
    "may serve a family.\n\n"
    "What each op does to one element stands below as its entry states it, by the compute dtype, and in "
    "`backplane/scalar.hpp`, `.cuh`, "
    "`.glsl` and `.cl` as functions. `intrinsic` is the function of the op's name that every language has. Comparisons "
    "with a NaN do "
    "not hold, which is how a NaN's part is stated. Integers wrap: they compute modulo 2 to the number of their bits. "
    "Half floats are "
    "computed in float32 and rounded once. A float that is cast to an integer is truncated; where int32 (or int64, for "
    "the dtypes that "
    "int32 does not hold) has no such number it is the lowest one, which narrower dtypes wrap.\n\n"
    "An op marked *moves* computes nothing, and serves also the dtypes in which a device does not compute. Arguments "
    "arrive resolved: ";

// How an argument of a type arrives, beyond its value.
std::string arrives(const Entry& entry, const Arg& arg) {
  const bool reduces = entry.shapes[0].text.value.rfind("reduce(", 0) == 0;
  switch (arg.type) {
    case BP_TYPE_AXES:
      return std::string("counted from the front, each once") + (reduces ? "; absent: all of them" : "");
    case BP_TYPE_AXIS:
      return std::string("counted from the front") +
             (arg.has(BP_ARG_OPTIONAL) ? "; absent: of the flattened tensor" : "");
    case BP_TYPE_INDEX:
      if (arg.name == "starts") return "the first position of each axis";
      return arg.name == "stops" ? "how many positions of each axis" : "as given";
    default:
      return "";
  }
}

// The first rule that has a dtype holds.
std::string scalar_rows(const Entry& entry) {
  if (entry.scalars.empty()) return "";
  std::string text = "\n| computes in | one element |\n| --- | --- |\n";
  bp_dtype_mask left = entry.dtypes.accepts[entry.signature.args.size() - 1];
  if (left == 0) left = entry.dtypes.accepts[0];
  for (const ScalarRule& rule : entry.scalars) {
    text += "| " + dtype_names(rule.dtypes & left) + " | " + code(rule.text.value) + " |\n";
    left &= ~rule.dtypes;
  }
  return text;
}

std::string section(const Entry& entry) {
  std::string text = "\n### [" + entry.name() + "](" + entry.name() + ".md)\n\n" + entry.doc.value +
                     (entry.moves ? " *Moves.*" : "") + "\n\n" + block(entry.signature.text.value);
  text += "\n| argument | dtypes | arrives |\n| --- | --- | --- |\n";
  for (size_t i = 0; i < entry.signature.args.size(); ++i) {
    const Arg& arg = entry.signature.args[i];
    text += "| `" + arg.name + "` | " + (arg.is_tensor() ? dtype_names(entry.dtypes.accepts[i]) : "") + " | " +
            arrives(entry, arg) + " |\n";
  }
  text += scalar_rows(entry);
  for (const auto& [name, when] : entry.errors) text += "\n`" + name.value + "`: " + when.value + ".\n";
  return text;
}

}  // namespace

void emit_primitives_page(const EmitContext& context, OutputSet& out) {
  std::map<std::string, std::vector<const Entry*>> families;
  size_t ops = 0;
  for (const CompiledOp& op : context.registry.ops) {
    if (op.entry->family.empty()) continue;
    families[op.entry->family.value].push_back(op.entry);
    ++ops;
  }
  if (families.empty()) return;
  std::string text = "# Primitives\n\n" + std::to_string(families.size()) + " families of " + std::to_string(ops) +
                     " ops. " + kHead +
                     "the reference of the contract has the rules, under *What arrives at a kernel*.\n";
  for (const auto& [family, entries] : families) {
    text += "\n## " + family + "\n";
    for (const Entry* entry : entries) text += section(*entry);
  }
  out.add("docs/ops/list-of-primitives.md", text);
}

}  // namespace backplane::codegen
