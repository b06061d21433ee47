// A PTX module as the interpreter runs it: functions as arrays of decoded instructions.
//
// A register is a column of 32 slots of 64 bits, one per lane; a predicate keeps its 32 bits in the first slot. A
// written value is extended to 64 bits by its type, so that a read in any narrower type is a truncation.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace emulator {

inline constexpr int kLanes = 32;

// What ends a launch, or refuses a module: the driver's code and what happened.
struct Fault : std::runtime_error {
  Fault(int driver_code, const std::string& message) : std::runtime_error(message), code(driver_code) {}
  int code;
};

// A launch that never ends: all lanes that are left of a warp stand at a branch to itself.
struct NeverEnds {};

enum class Type : uint8_t {
  kNone,
  kPred,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kB8,
  kB16,
  kB32,
  kB64,
  kF16,
  kF32,
  kF64
};
uint32_t size_of(Type type);

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kParam };

struct Source {
  uint32_t reg = 0;
  const uint64_t* fixed = nullptr;  // an immediate, the same in every lane
};

class Warp;
struct Instruction;
struct Function;
using Handler = void (*)(Warp&, const Instruction&);

enum class Flow : uint8_t { kNext, kBranch, kCall, kReturn, kExit, kBarrier };

struct Instruction {
  Handler run = nullptr;
  Flow flow = Flow::kNext;
  Space space = Space::kGeneric;
  uint8_t width = 0;  // bytes of one element of a memory access
  uint8_t count = 1;  // elements
  bool is_signed = false;
  bool negated = false;     // the guard
  bool collective = false;  // of several lanes at once, which wait for each other
  int32_t guard = -1;       // a predicate
  std::array<uint32_t, 4> out{};
  std::array<Source, 10> in{};
  int64_t offset = 0;
  uint32_t target = 0;  // of a branch
  uint32_t line = 0;    // of the module's text
  struct Call {
    const Function* callee = nullptr;
    std::string name;
    struct Copy {
      uint32_t from, to, size;  // offsets in the caller's and the callee's frame of local memory
    };
    std::vector<Copy> in, out;
    std::vector<uint32_t> from, to;  // of the caller, until the callee is known
  };
  const Call* call = nullptr;
  std::string_view text;
};

struct Parameter {
  std::string name;
  uint32_t offset = 0;  // in the parameter buffer of an entry, or in the frame of local memory
  uint32_t size = 0;
};

struct Function {
  std::string name;
  bool entry = false;
  bool decoded = false;
  uint32_t line = 0;  // at which `body` begins
  std::string_view body;
  std::vector<Parameter> parameters, results;
  uint32_t parameter_bytes = 0;
  std::vector<Instruction> code;
  uint32_t registers = 0;
  uint32_t local_bytes = 0;
  uint32_t shared_bytes = 0;
  std::vector<std::unique_ptr<Instruction::Call>> calls;
  std::map<uint64_t, std::unique_ptr<std::array<uint64_t, kLanes>>> constants;
};

struct Module {
  std::string text;
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
  std::map<std::string, uint64_t, std::less<>> globals;  // addresses in device memory
  std::map<std::string, uint32_t, std::less<>> shared;   // declared outside of functions: offsets
  uint32_t shared_bytes = 0;
  ~Module();
};

// Reads what the module declares; bodies are decoded when a function first runs.
std::unique_ptr<Module> load_module(std::string text);
void decode(Module& module, Function& function);

// The handler of an instruction: words are the opcode's parts ("add", "s32"). nullptr: not known.
Handler find_handler(const std::vector<std::string_view>& words);

}  // namespace emulator
