// The plugin's PTX, put into its read-only data by the assembler; see modules.hpp. BACKPLANE_CUDA_MODULES lists the
// modules, X(name); BACKPLANE_CUDA_PTX is the folder that nvcc wrote them to.
#include "runtime/modules.hpp"

#include <cstring>

#include "backplane/error.hpp"
#include "modules.inc"

#define BP_CUDA_EMBED(name)                     \
  __asm__(                                      \
      ".pushsection .rodata, \"a\"\n"           \
      ".balign 16\n"                            \
      "backplane_cuda_" #name                   \
      ":\n"                                     \
      ".incbin \"" BACKPLANE_CUDA_PTX "/" #name \
      ".ptx\"\n"                                \
      ".byte 0\n"                               \
      ".popsection\n");                         \
  extern "C" __attribute__((visibility("hidden"))) const char backplane_cuda_##name[];
BACKPLANE_CUDA_MODULES(BP_CUDA_EMBED)
#undef BP_CUDA_EMBED

namespace backplane::cuda {

const char* module_text(const char* name) {
#define BP_CUDA_TEXT(module) \
  if (std::strcmp(name, #module) == 0) return backplane_cuda_##module;
  BACKPLANE_CUDA_MODULES(BP_CUDA_TEXT)
#undef BP_CUDA_TEXT
  return nullptr;
}

void Modules::unload() {
  std::lock_guard lock(mutex_);
  for (const auto& [name, module] : loaded_) (void)driver_.cuModuleUnload(module);
  loaded_.clear(), functions_.clear();
}

driver::Function Modules::function(const std::string& module, const std::string& name, const char* text) {
  std::lock_guard lock(mutex_);
  driver::Function& found = functions_[module][name];
  if (found) return found;
  driver::Module& loaded = loaded_[module];
  if (!loaded) {
    if (text == nullptr) text = module_text(module.c_str());
    BP_CHECK(text != nullptr, INTERNAL, "cuda: no module ", module);
    check(driver_.cuModuleLoadData(&loaded, text), "cuModuleLoadData");
  }
  check(driver_.cuModuleGetFunction(&found, loaded, name.c_str()), "cuModuleGetFunction");
  return found;
}

}  // namespace backplane::cuda
