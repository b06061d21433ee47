#include "cli/convert.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace backplane::cli {
namespace {

int run_module(const char* verb, const char* module, const char* packages, const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"python3", "-m", module};
  for (const std::string& word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  execvp(argv[0], const_cast<char* const*>(argv.data()));
  std::fprintf(stderr, "backplane %s: cannot run python3 (%s). Fix: install Python with %s\n", verb,
               std::strerror(errno), packages);
  return 1;
}

}  // namespace

int convert(const std::vector<std::string>& words) {
  return run_module("convert", "backplane.onnx", "the packages backplane and onnx", words);
}

int launch(const std::vector<std::string>& words) {
  return run_module("launch", "backplane.distributed.launch", "the package backplane", words);
}

int bridge(const std::vector<std::string>& words) {
  const auto is_letter = [](unsigned char c) { return std::isalnum(c) || c == '_'; };
  if (words.empty() || words[0].empty() || !std::all_of(words[0].begin(), words[0].end(), is_letter)) {
    std::fprintf(stderr,
                 "backplane bridge: found %s, expected the name of a bridge. Fix: backplane bridge NAME PLUGIN.so\n",
                 words.empty() ? "no name" : words[0].c_str());
    return 1;
  }
  std::vector<std::string> rest(words.begin(), words.end());
  rest[0] = "bridge";
  const std::string module = "backplane." + words[0];
  return run_module("bridge", module.c_str(), "the package backplane and the package of the bridge", rest);
}

}  // namespace backplane::cli
