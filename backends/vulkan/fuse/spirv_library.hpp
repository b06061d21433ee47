// A SPIR-V module taken apart: the part before its functions, and each function with its name, its type and the ones it
// calls. Constant once made.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace backplane::vulkan {

using SpirvWords = std::span<const uint32_t>;

// Opcodes of the SPIR-V specification that are read or written here.
namespace spirv {
inline constexpr uint32_t kName = 5, kMemberName = 6, kLine = 8, kString = 7, kSource = 3, kSourceExtension = 4;
inline constexpr uint32_t kEntryPoint = 15, kTypeBool = 20, kTypeInt = 21, kTypeFloat = 22, kTypeVector = 23;
inline constexpr uint32_t kTypePointer = 32, kTypeFunction = 33, kConstantTrue = 41, kConstantFalse = 42;
inline constexpr uint32_t kConstant = 43, kConstantComposite = 44, kFunction = 54, kFunctionParameter = 55;
inline constexpr uint32_t kFunctionEnd = 56, kFunctionCall = 57, kVariable = 59, kLoad = 61, kStore = 62;
inline constexpr uint32_t kDecorate = 71, kIAdd = 128, kULessThan = 176, kLoopMerge = 246;
inline constexpr uint32_t kSelectionMerge = 247, kLabel = 248, kBranch = 249, kBranchConditional = 250, kReturn = 253;
inline constexpr uint32_t kPrivate = 6, kInFunction = 7;  // storage classes
inline constexpr size_t kHeader = 5;                      // words before the first instruction
}  // namespace spirv

struct SpirvFunction {
  uint32_t id, result_type, type;
  std::vector<uint32_t> parameter_types;
  SpirvWords words;
  std::vector<uint32_t> calls, defines;  // ids
};

class SpirvLibrary {
 public:
  explicit SpirvLibrary(SpirvWords module);

  SpirvWords header() const { return module_.first(spirv::kHeader); }
  // Instructions before the first function, but for names; decorations of what functions define are kept apart.
  const std::vector<SpirvWords>& head() const { return head_; }
  const std::map<uint32_t, std::vector<SpirvWords>>& decorations() const { return decorations_; }  // by target
  const SpirvFunction& function(std::string_view name) const;  // throws where there is none
  const SpirvFunction& function(uint32_t id) const { return functions_[by_id_.at(id)]; }
  // The functions in their order, for those that are wanted by id.
  const std::vector<SpirvFunction>& functions() const { return functions_; }
  // The id of a type, by what its instruction holds behind the id.
  uint32_t type(uint32_t opcode, std::initializer_list<uint32_t> operands) const;
  uint32_t pointee(uint32_t pointer) const { return pointees_.at(pointer); }

 private:
  void read_function(size_t& at);

  SpirvWords module_;
  std::vector<SpirvWords> head_;
  std::map<uint32_t, std::vector<SpirvWords>> decorations_;
  std::vector<SpirvFunction> functions_;
  std::map<uint32_t, size_t> by_id_;
  std::map<std::string, uint32_t, std::less<>> names_;
  std::map<uint32_t, uint32_t> pointees_;
};

}  // namespace backplane::vulkan
