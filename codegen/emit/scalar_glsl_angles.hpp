// GLSL that brings large angles into one turn: part of the scalar functions of scalar_glsl.cpp.
#pragma once

#include <string_view>

namespace backplane::codegen {

// Integers alone, for both dtypes.
extern const std::string_view kGlslFarTurn;
// Of one dtype: bp_math_quadrant, with the words of math_constants().
extern const std::string_view kGlslQuadrant;

}  // namespace backplane::codegen
