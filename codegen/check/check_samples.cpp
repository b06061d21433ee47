// Do samples fit the types of their arguments? See op_compiler.hpp.
#include "check/op_compiler.hpp"

namespace backplane::codegen {

// A default may be left out of a sample, and `none` may stand where it is allowed; nothing else may be none.
void OpCompiler::check_samples() {
  check_samples(entry_.samples);
  check_samples(entry_.large_samples);
}

void OpCompiler::check_samples(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    for (const auto& [index, value] : sample.values) {
      const Arg& arg = entry_.signature.args[index];
      const auto wrong = [&](const std::string& expected) {
        error(value.where, "the sample of '" + arg.name + "' must be " + expected);
      };
      if (value.kind != SampleValue::Kind::kLiteral) {
        if (value.kind == SampleValue::Kind::kTensor && arg.has(BP_ARG_LIST)) wrong("{list: [[2], [3]]}");
        continue;
      }
      using Kind = Literal::Kind;
      const Kind kind = value.literal.kind;
      const bool number = kind == Kind::kInt || kind == Kind::kFloat || kind == Kind::kBool;
      const bool list = kind == Kind::kInts || kind == Kind::kFloats;
      if (kind == Kind::kNone) {
        if (!arg.has(BP_ARG_OPTIONAL)) wrong(describe(arg) + ", not none");
      } else if (arg.has(BP_ARG_LIST) || arg.type == BP_TYPE_AXES || arg.type == BP_TYPE_SHAPE) {
        if (!list) wrong("a list such as [1, 2]");
      } else if (arg.is_tensor() || arg.type == BP_TYPE_SCALAR) {
        if (!number) wrong(arg.is_tensor() ? "a number, a shape or {shape: [2, 3]}" : "a number");
      } else if (arg.type == BP_TYPE_BOOL ? kind != Kind::kBool
                 : arg.type == BP_TYPE_DTYPE
                     ? kind != Kind::kDtype
                     : (arg.type == BP_TYPE_AXIS || arg.type == BP_TYPE_SIZE || arg.type == BP_TYPE_INDEX) &&
                           kind != Kind::kInt) {
        wrong(describe(arg));
      } else if (arg.type == BP_TYPE_STR && sample.error.empty() && !arg.may_be(value.literal.text)) {
        wrong(listed_choices(arg.choices));
      }
    }
  }
}

}  // namespace backplane::codegen
