// One emitter per output. Each is a pure function from the checked registry to files; the same registry gives the same
// bytes, whatever the machine, the path of the files or the time.
#pragma once

#include <string>

#include "check/compiled.hpp"
#include "emit/writer.hpp"
#include "schema/identifiers.hpp"

namespace backplane::codegen {

struct EmitContext {
  const CompiledRegistry& registry;
  std::string symbol;                      // prefix of C symbols and file names
  std::string ns;                          // namespace of the registry file
  bool natives = true;                     // formulas are among the outputs, so that records may point to them
  std::vector<std::string> dialects = {};  // of scalar functions; empty: all
  bool standalone = false;                 // their headers hold what they call of other namespaces, and include none
};

void emit_records(const EmitContext& context, OutputSet& out);   // SYMBOL_records.c, .h
void emit_formulas(const EmitContext& context, OutputSet& out);  // SYMBOL_formulas.c, .h
void emit_samples(const EmitContext& context, OutputSet& out);   // samples.json
void emit_cpp(const EmitContext& context, OutputSet& out);       // include/NAMESPACE/ops.hpp
void emit_cpp_tensor(const EmitContext& context,
                     OutputSet& out);                             // include/backplane/bp/*.hpp; with emit_cpp
void emit_kernels(const EmitContext& context, OutputSet& out);    // include/SYMBOL_kernels.hpp
void emit_rewrites(const EmitContext& context, OutputSet& out);   // SYMBOL_rewrites.hpp, of a registry that has any
void emit_spellings(const EmitContext& context, OutputSet& out);  // SYMBOL_spellings.hpp, of a registry that has any
void emit_scalar(const EmitContext& context, OutputSet& out);  // include/NAMESPACE/scalar.hpp, .cuh, .glsl, .cl, .wgsl
void emit_plugin(const EmitContext& context, OutputSet& out);  // SYMBOL_plugin.c: registers the ops, and no kernel
void emit_manifest(const EmitContext& context, OutputSet& out);  // SYMBOL.backplane.json, of SYMBOL.so
void emit_pyi(const EmitContext& context, OutputSet& out);       // SYMBOL.pyi
void emit_python(const EmitContext& context, OutputSet& out);    // python/NAMESPACE/__init__.py, __init__.pyi, py.typed
void emit_docs(const EmitContext& context, OutputSet& out);      // docs/ops/NAME.md, list-of-ops.md
void emit_primitives_page(const EmitContext& context,
                          OutputSet& out);  // docs/ops/list-of-primitives.md; with emit_docs

// The native function of a formula, or "" where the evaluator has to run it; formulas.cpp.
std::string native_name(const EmitContext& context, const CompiledOp& op, size_t formula);

std::string stubs(const EmitContext& context);  // of emit_pyi; pyi.cpp

// ---- texts about an op that several outputs show ----
// The help text after the signature: the summary; an empty line and one line "argument: meaning" each; then sections.
std::string docstring(const CompiledOp& op);                       // docstring.cpp
std::string result_shape_text(const Entry& entry, size_t result);  // docstring.cpp
std::string result_dtype_text(const Entry& entry, size_t result);  // docstring.cpp
std::string derivative_text(const CompiledOp& op, size_t arg);     // docstring.cpp; "" of a constant argument
std::string batching_text(const CompiledOp& op);                   // docstring.cpp
std::string python_declaration(const Entry& entry);                // pyi.cpp
std::string cpp_declaration(const Entry& entry);                   // cpp_tensor.cpp; "" of an op that takes a function

// ---- pieces of text that emitters share ----
std::string c_string(const std::string& text);       // a C string literal
std::string python_string(const std::string& text);  // one of Python
std::string comment(const std::string& text);        // what may stand in a comment of C or C++, on one line
// What C++ calls the types of parameters.
struct CppTypes {
  const char *operand, *tensors, *scalar, *positions, *ints, *optional_ints, *dtype, *device;
};
std::string cpp_parameter_type(const Arg& arg, const CppTypes& types);  // cpp_header.cpp
std::string cpp_default(const Arg& arg);                                // a C++ expression; cpp_header.cpp
std::string c_int(int64_t value);                                       // a C expression of type int64_t
std::string c_double(double value);                                     // one with the very bits
std::string file_banner(const char* comment_open, const std::string& what, const EmitContext& context,
                        const char* comment_close);

}  // namespace backplane::codegen
