#include "cli/convert.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace backplane::cli {

int convert(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"python3", "-m", "backplane.onnx"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  argv.push_back(nullptr);
  execvp(argv[0], const_cast<char* const*>(argv.data()));
  std::fprintf(stderr,
               "backplane convert: cannot run python3 (%s). Fix: install Python with the packages backplane and onnx\n",
               std::strerror(errno));
  return 1;
}

}  // namespace backplane::cli
