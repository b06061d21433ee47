// What elementwise ops do to one element, as typed expressions that every dialect can print: `scalar` of an entry, or
// its decomposition where that is a formula over elements too.
//
// One function per entry and compute dtype. Half floats have none: they are stored, and computed in float32. The
// functions borrow the entries. Nothing here knows a dialect.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "check/registry.hpp"

namespace backplane::codegen {

inline constexpr bp_dtype_mask kHalves = BP_DTYPE_BIT(BP_FLOAT16) | BP_DTYPE_BIT(BP_BFLOAT16);
inline constexpr bp_dtype_mask kScalarDtypes = BP_MASK_ANY & ~kHalves;
inline bool has(bp_dtype_mask mask, bp_dtype dtype) { return (mask >> dtype & 1) != 0; }

struct ScalarNode {
  enum class Kind : uint8_t {
    kNumber,     // integer, or number where the dtype is inexact
    kName,       // a parameter or a local
    kOperator,   // name: + - * / < <= > >= == != and or, of one or two children of one dtype; not, neg
    kChoose,     // children: condition, then, else
    kCall,       // of the function `name`
    kIntrinsic,  // of the dialect, named by an op
    kConvert,    // to dtype, from that of its child, which is a name
    kPair,       // a complex number of two parts
    kPart        // name: re or im
  };
  Kind kind = Kind::kNumber;
  bp_dtype dtype = BP_BOOL;
  std::string name;
  double number = 0;
  int64_t integer = 0;
  std::vector<uint32_t> children;
};

struct ScalarName {
  std::string name;
  bp_dtype dtype;
  uint32_t value = 0;  // of a local
};

struct ScalarFunction {
  const Entry* entry = nullptr;
  bp_dtype compute = BP_BOOL, result = BP_BOOL;
  bool by_result = false;  // of an entry whose Dtype argument says the result's
  std::string name;        // "bp_add_float32"
  std::vector<ScalarName> params, locals;
  std::vector<ScalarNode> nodes;
  uint32_t root = 0;
  std::set<bp_dtype> dtypes;            // all that it handles, those that it calls included
  std::set<std::string> called_spaces;  // namespaces of the functions that it calls
};

// Every function of the registry's files, in an order with called functions first. `diagnostics` gets the mistakes of
// `scalar`; a decomposition that is not elementwise is left out silently.
std::vector<std::unique_ptr<ScalarFunction>> compile_scalars(const std::vector<std::unique_ptr<RegistryFile>>& files,
                                                             const Registry& names, Diagnostics& diagnostics);

// A function that each dialect brings, for the op of this name.
struct Intrinsic {
  std::string_view op;
  bp_dtype_mask dtypes;
  size_t operands;
};
const Intrinsic* find_intrinsic(std::string_view op, bp_dtype dtype);
std::vector<std::string_view> intrinsic_names(bp_dtype dtype);

bp_dtype part_of(bp_dtype dtype);     // of a complex dtype that of its parts; others as they are
bp_dtype complex_of(bp_dtype dtype);  // of float32 complex64

}  // namespace backplane::codegen
