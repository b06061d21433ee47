// Verbs whose work the Python package does. Each replaces the process by python3, and returns only if there is none.
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
