#include "cli/convert.hpp"

#include <unistd.h>

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

}  // namespace backplane::cli
