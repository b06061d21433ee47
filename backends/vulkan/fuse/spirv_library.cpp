// Taking a module apart, as the SPIR-V specification lays out its words.
#include "fuse/spirv_library.hpp"

#include <algorithm>
#include <cstring>

#include "backplane/error.hpp"

namespace backplane::vulkan {
namespace {

using namespace spirv;

uint32_t opcode(SpirvWords instruction) { return instruction[0] & 0xffff; }

// "name(f1;u1;" of a function is its name and its parameters, as glslang writes them.
std::string name_of(SpirvWords text) {
  const char* bytes = reinterpret_cast<const char*>(text.data());
  const std::string_view whole(bytes, strnlen(bytes, text.size_bytes()));
  return std::string(whole.substr(0, whole.find('(')));
}

// Of the instructions in functions that glslang writes, those without a result.
bool has_result(uint32_t op) {
  static constexpr uint32_t kWithout[] = {kLine,
                                          kFunctionEnd,
                                          kStore,
                                          63 /* OpCopyMemory */,
                                          224 /* OpControlBarrier */,
                                          kLoopMerge,
                                          kSelectionMerge,
                                          kLabel,
                                          kBranch,
                                          kBranchConditional,
                                          251 /* OpSwitch */,
                                          252 /* OpKill */,
                                          kReturn,
                                          254 /* OpReturnValue */,
                                          255 /* OpUnreachable */};
  return std::find(std::begin(kWithout), std::end(kWithout), op) == std::end(kWithout);
}

}  // namespace

SpirvLibrary::SpirvLibrary(SpirvWords module) : module_(module) {
  size_t at = kHeader;
  std::map<uint32_t, std::string> names;
  std::vector<SpirvWords> decorations;
  while (at < module.size() && (module[at] & 0xffff) != kFunction) {
    const SpirvWords instruction = module.subspan(at, module[at] >> 16);
    at += instruction.size();
    const uint32_t op = opcode(instruction);
    if (op == kName) names[instruction[1]] = name_of(instruction.subspan(2));
    if (op == kTypePointer) pointees_[instruction[1]] = instruction[3];
    if (op == kDecorate)
      decorations_[instruction[1]].push_back(instruction);
    else if (op != kName && op != kMemberName && op != kSource && op != kSourceExtension && op != kString)
      head_.push_back(instruction);
  }
  while (at < module.size()) read_function(at);
  for (const SpirvFunction& function : functions_) names_[names[function.id]] = function.id;
}

void SpirvLibrary::read_function(size_t& at) {
  SpirvFunction made{module_[at + 2], module_[at + 1], module_[at + 4], {}, {}, {}, {}};
  const size_t first = at;
  for (bool ended = false; !ended;) {
    const SpirvWords instruction = module_.subspan(at, module_[at] >> 16);
    at += instruction.size();
    const uint32_t op = opcode(instruction);
    ended = op == kFunctionEnd;
    if (op == kFunctionParameter) made.parameter_types.push_back(instruction[1]);
    if (op == kFunctionCall) made.calls.push_back(instruction[3]);
    if (op == kLabel) made.defines.push_back(instruction[1]);
    if (has_result(op)) made.defines.push_back(instruction[2]);
  }
  made.words = module_.subspan(first, at - first);
  by_id_[made.id] = functions_.size();
  functions_.push_back(std::move(made));
}

const SpirvFunction& SpirvLibrary::function(std::string_view name) const {
  const auto found = names_.find(name);
  BP_CHECK(found != names_.end(), INTERNAL, "vulkan: shaders/region.glsl has no function ", name);
  return function(found->second);
}

uint32_t SpirvLibrary::type(uint32_t wanted, std::initializer_list<uint32_t> operands) const {
  for (const SpirvWords instruction : head_)
    if (opcode(instruction) == wanted &&
        std::equal(operands.begin(), operands.end(), instruction.begin() + 2, instruction.end()))
      return instruction[1];
  ::backplane::detail::fail(BP_ERROR_INTERNAL, "vulkan: shaders/region.glsl has no type of opcode ", wanted);
}

}  // namespace backplane::vulkan
