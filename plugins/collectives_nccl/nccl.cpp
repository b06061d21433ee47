#include "nccl.hpp"

#include <dlfcn.h>

namespace backplane::nccl {
namespace {

struct Opened {
  Functions functions;
  std::string reason;
};

void* opened(const char* file, const char* fix, std::string& reason) {
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library) return library;
  const char* why = dlerror();
  if (reason.empty()) reason = std::string(why ? why : file) + ". Fix: " + fix;
  return nullptr;
}

void* symbol(void* library, const char* name, const char* file, std::string& reason) {
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found && reason.empty())
    reason = std::string(file) + " does not have " + name + ". Fix: install NCCL 2.10 or newer";
  return found;
}

Opened open_all() {
  Opened made;
  void* const library = opened(
      "libnccl.so.2", "install NCCL, or the Python package nvidia-nccl-cu13, and put its folder on LD_LIBRARY_PATH",
      made.reason);
  void* const driver = opened("libcuda.so.1", "install NVIDIA's driver", made.reason);
#define BP_NCCL_FIND(result, name, parameters) \
  made.functions.name =                        \
      reinterpret_cast<decltype(made.functions.name)>(symbol(BP_NCCL_LIBRARY, #name, BP_NCCL_FILE, made.reason));
#define BP_NCCL_LIBRARY library
#define BP_NCCL_FILE "libnccl.so.2"
  BP_NCCL(BP_NCCL_FIND)
#undef BP_NCCL_LIBRARY
#undef BP_NCCL_FILE
#define BP_NCCL_LIBRARY driver
#define BP_NCCL_FILE "libcuda.so.1"
  BP_NCCL_DRIVER(BP_NCCL_FIND)
#undef BP_NCCL_LIBRARY
#undef BP_NCCL_FILE
#undef BP_NCCL_FIND
  return made;
}

}  // namespace

const Functions* find(std::string* reason) {
  static const Opened made = open_all();
  if (made.reason.empty()) return &made.functions;
  *reason = made.reason;
  return nullptr;
}

}  // namespace backplane::nccl
