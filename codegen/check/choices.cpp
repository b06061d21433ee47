// `choices` of str arguments at run time: in front of a shape formula and of a decomposition, whichever a call meets.
// See op_compiler.hpp.
#include "check/op_compiler.hpp"

namespace backplane::codegen {

// Each root becomes `root if known else require_value(word, known, CHOICES)`: nothing is computed for another word.
void OpCompiler::check_choices(std::vector<uint32_t>& roots) {
  const auto& args = entry_.signature.args;
  for (size_t i = args.size(); i-- > 0;) {
    const Arg& arg = args[i];
    if (arg.choices.empty()) continue;
    Program& program = op_.program;
    const uint32_t word = program.add(BP_NODE_ARG, static_cast<int64_t>(i));
    const auto one_of = [&](uint32_t a, uint32_t b) { return program.builtin("or", {a, b}); };
    const auto is = [&](const Text& choice) {
      return program.builtin("eq", {word, program.constant({BP_TAG_STRING, 0, 0, choice.value})});
    };
    uint32_t known = is(arg.choices[0]);
    for (size_t c = 1; c < arg.choices.size(); ++c) known = one_of(known, is(arg.choices[c]));
    if (arg.has(BP_ARG_OPTIONAL)) known = one_of(program.builtin("not", {program.builtin("present", {word})}), known);
    const uint32_t expected =
        program.constant({BP_TAG_STRING, 0, 0, arg.name + " to be " + listed_choices(arg.choices)});
    const uint32_t refused = program.builtin("require_value", {word, known, expected});
    for (uint32_t& root : roots) root = program.add(BP_NODE_IF, 0, {known, root, refused});
  }
}

}  // namespace backplane::codegen
