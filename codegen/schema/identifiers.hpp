// Names in generated files: what an identifier is in each language that comes out, and what a word of a registry file
// becomes there.
#pragma once

#include <string>
#include <string_view>

namespace backplane::codegen {

bool is_identifier(std::string_view word);

// Why a word cannot be a namespace, or the prefix of C symbols and file names; "" where it can.
std::string why_no_namespace(std::string_view word);

std::string c_identifier(const std::string& name);       // "sum.axis" -> "sum_axis"
std::string cpp_identifier(const std::string& name);     // reserved words get a trailing underscore
std::string python_identifier(const std::string& name);  // likewise

}  // namespace backplane::codegen
