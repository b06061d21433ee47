// Opens a library of NVIDIA at run time. A missing library is not an error: the backend uses a replacement, and reports
// it in `backplane doctor`.
#pragma once

#include <string>

namespace backplane::cuda {

struct LibraryName {
  const char* file;     // as the loader looks for it
  const char* package;  // of the Python index, which brings it where no toolkit is
  const char* instead;  // what happens without it
};

// An open library, until the process ends: its threads and tables outlive this plugin's devices.
class OpenLibrary {
 public:
  explicit OpenLibrary(const LibraryName& name);
  void* find(const char* symbol);
  // Empty: all that was looked for is there.
  const std::string& reason() const { return reason_; }

 private:
  const LibraryName& name_;
  void* handle_;
  std::string reason_;
};

}  // namespace backplane::cuda

// The parts of a table's declaration: X(result, name, parameters) of each function, see cublaslt.hpp.
#define BP_CUDA_LIBRARY_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
#define BP_CUDA_LIBRARY_FIND(result, name, parameters) \
  made->functions.name = reinterpret_cast<decltype(made->functions.name)>(library.find(#name));
