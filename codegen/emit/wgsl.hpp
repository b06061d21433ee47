// WGSL, the shading language of WebGPU: scalar functions of bool, integers, float32 and complex64.
//
// WGSL has 32-bit integers. The narrow dtypes are computed in these and wrapped, int64 and uint64 are pairs of words
// (vec2<u32>, the low word first). It has no functions of float64 and complex128. WGSL has no `precise`, and a
// compiler may assume that values are finite: see wgsl_floats.cpp for what the functions do about it.
#pragma once

#include <string>
#include <string_view>

#include "emit/emit.hpp"

namespace backplane::codegen {

inline constexpr std::string_view kWgsl = "wgsl";  // of --dialect

// scalar.wgsl of a namespace; wgsl.cpp.
std::string wgsl_of(const EmitContext& context);

// What the functions call, in the file of namespace bp.
std::string wgsl_integers();  // wgsl_integers.cpp
std::string wgsl_floats();    // wgsl_floats.cpp: values that no compiler rearranges, comparisons, half floats
std::string wgsl_math();      // wgsl_math.cpp

}  // namespace backplane::codegen
