// dlopen, and the message about a missing library; see library.hpp.
#include "libraries/library.hpp"

#include <dlfcn.h>

namespace backplane::cuda {

OpenLibrary::OpenLibrary(const LibraryName& name) : name_(name), handle_(dlopen(name.file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_) return;
  const char* why = dlerror();
  reason_ = std::string("not found, so ") + name.instead + " (" + (why ? why : "no reason given") +
            "). Fix: install CUDA 13's libraries, or the Python package " + name.package +
            " and put its folder on LD_LIBRARY_PATH";
}

void* OpenLibrary::find(const char* symbol) {
  if (!handle_) return nullptr;
  void* found = dlsym(handle_, symbol);
  if (!found && reason_.empty())
    reason_ = std::string(name_.file) + " lacks " + symbol + ", so " + name_.instead + ". Fix: install that of CUDA 13";
  return found;
}

}  // namespace backplane::cuda
