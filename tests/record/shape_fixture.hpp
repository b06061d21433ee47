// Shared by the tests of shape rules: ops with one rule, and their inferred shapes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "record/shape_rules.hpp"
#include "record/toy_record.hpp"

namespace backplane::core {

// The ops of these tests: a signature and the word that reads all of its arguments in order.
struct Param {
  uint16_t type;
  uint16_t flags = BP_ARG_OPTIONAL;
};
inline std::unique_ptr<OpRecord> op_with(const char* word, const std::vector<Param>& params) {
  static const char* const kNames[] = {"a", "b", "c", "d", "e", "f"};
  ToyRecord toy("t::op");
  std::vector<uint32_t> all;
  for (const Param& param : params) all.push_back(toy.arg(kNames[all.size()], param.type, param.flags));
  toy.promote = 0;
  if (std::string_view(word).starts_with("view.")) {
    toy.flags = BP_OP_VIEW;
    toy.alias = 0;
  }
  toy.result("out", word, all);
  return toy.record();
}

inline constexpr Param kTensor{BP_TYPE_TENSOR}, kTensors{BP_TYPE_TENSOR, BP_ARG_LIST | BP_ARG_OPTIONAL},
    kMaybeTensors{BP_TYPE_TENSOR, BP_ARG_LIST | BP_ARG_OPTIONAL | BP_ARG_OPTIONAL_ELEMENTS}, kAxis{BP_TYPE_AXIS},
    kAxes{BP_TYPE_AXES}, kShape{BP_TYPE_SHAPE}, kSize{BP_TYPE_SIZE}, kIndex{BP_TYPE_INDEX}, kBool{BP_TYPE_BOOL},
    kIndices{BP_TYPE_INDEX, BP_ARG_LIST | BP_ARG_OPTIONAL | BP_ARG_OPTIONAL_ELEMENTS};

struct Inferred {
  Ints sizes, strides;
  int64_t offset = 0;
  bool view = false;
  bp_dtype dtype = BP_DTYPE_NONE;
};
inline Inferred infer(const OpRecord& op, const std::vector<bp_value>& args) {
  ShapeResult out;
  infer_shape(op, args.data(), static_cast<int32_t>(args.size()), 0, out);
  Inferred result;
  result.sizes.assign(out.sizes, out.sizes + out.ndim);
  result.view = out.is_view;
  if (out.is_view) result.strides.assign(out.strides, out.strides + out.ndim);
  result.offset = out.byte_offset;
  result.dtype = out.view_dtype;
  return result;
}
inline Ints shape(const OpRecord& op, const std::vector<bp_value>& args) { return infer(op, args).sizes; }
inline std::string error(const OpRecord& op, const std::vector<bp_value>& args, bp_status* code = nullptr) {
  return error_of([&] { infer(op, args); }, code);
}

}  // namespace backplane::core
