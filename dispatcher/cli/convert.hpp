// `backplane convert`: a model in ONNX's format to a file of `backplane run`. The Python package does the work.
#pragma once

#include <string>
#include <vector>

namespace backplane::cli {

// words: the arguments after `convert`. Replaces the process by python3; returns only if there is none.
int convert(const std::vector<std::string>& words);

}  // namespace backplane::cli
