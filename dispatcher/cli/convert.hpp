// Verbs that the Python package implements. Each replaces the process by python3; it returns only if python3 is
// missing.
#pragma once

#include <string>
#include <vector>

namespace backplane::cli {

// words: the arguments after the verb.
// `backplane convert`: a model in ONNX's format to a file of `backplane run`.
int convert(const std::vector<std::string>& words);
// `backplane launch`: a Python program on several ranks.
int launch(const std::vector<std::string>& words);
// `backplane bridge NAME PLUGIN.so`: what a plugin provides to the framework of the bridge backplane.NAME.
int bridge(const std::vector<std::string>& words);

}  // namespace backplane::cli
