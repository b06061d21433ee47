// What pages of Markdown share: texts of entries, which may hold any character, as cells, code and blocks. Pure.
#pragma once

#include <string>

#include "check/compiled.hpp"

namespace backplane::codegen {

std::string dtype_names(bp_dtype_mask mask);  // the class's name, or each dtype's
std::string cell(std::string text);           // of a table, which a `|` or the end of a line would end
std::string prose(const std::string& text);   // a sentence: no `*` marks emphasis, and no `](` a link
std::string code(const std::string& text);    // in a line, and in a cell
std::string block(const std::string& text, const char* language = "");

}  // namespace backplane::codegen
