// Runs of arithmetic as machine code: sums, differences, products, quotients and square roots of float32 or float64,
// with everything between loads and stores in registers. Each step is rounded as it is alone.
//
// For x86-64 processors with AVX, by Xbyak. Elsewhere, without Xbyak at build time, without memory that may be
// made executable, or if BACKPLANE_CPU_MACHINE_CODE is 0, the chains of chains.hpp are used.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backplane/abi/base.h"
#include "loops/chain_link.hpp"

namespace backplane::cpu::fuse {

struct Arithmetic {
  struct Value {
    bool step;  // the result of a step; else an operand
    uint32_t at;
    bool operator==(const Value&) const = default;
  };
  struct Step {
    Link link;
    Value a, b;  // of a square root the same
    bool operator==(const Step&) const = default;
  };
  bp_dtype dtype;
  std::vector<bool> repeated;  // per operand: one element for a whole row
  std::vector<Step> steps;
  std::vector<uint32_t> results;  // the steps whose results are stored
  bool operator==(const Arithmetic&) const = default;
};

inline constexpr int64_t kVectorBytes = 32;
inline constexpr uint32_t kMostPointers = 12, kMostRepeated = 16;

// What the code works on; it steps `p` and `element` from row to row.
struct CodeRows {
  struct At {
    char* p;
    int64_t row;  // bytes to the next one
  };
  At p[kMostPointers];        // of each operand that is not repeated, then of each result
  At element[kMostRepeated];  // of each operand that is repeated
  int64_t rows;
  int64_t bytes;  // of a row: a multiple of kVectorBytes, and more than 0
};

// Constant once made: any number of threads may run it.
class MachineCode {
 public:
  static bool available();
  // Has the processor the registers for it?
  static bool fits(const Arithmetic& arithmetic);
  // nullptr without memory for code.
  static std::unique_ptr<MachineCode> make(const Arithmetic& arithmetic);
  virtual ~MachineCode() = default;
  // A result may lie where an operand does: all operands of a vector are read before a result of it is written.
  virtual void run(CodeRows& rows) const = 0;
};

}  // namespace backplane::cpu::fuse
