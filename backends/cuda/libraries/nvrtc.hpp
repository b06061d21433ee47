// NVRTC, which compiles CUDA C++ while a program runs, as this backend uses it: declarations of our own, and a table
// that is filled when a compiler is first asked for. It does not need a GPU or a driver. `./dev check cuda` holds every
// line here against NVIDIA's header.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "libraries/library.hpp"

// NVIDIA's own name.
struct _nvrtcProgram;

namespace backplane::cuda {

namespace nvrtc {

using Result = int;
using Program = _nvrtcProgram*;

enum : Result { kSuccess = 0, kCompilation = 6 };

}  // namespace nvrtc

// X(result, name, parameters).
#define BP_NVRTC(X)                                                                                           \
  X(nvrtc::Result, nvrtcVersion, (int* major, int* minor))                                                    \
  X(const char*, nvrtcGetErrorString, (nvrtc::Result result))                                                 \
  X(nvrtc::Result, nvrtcCreateProgram,                                                                        \
    (nvrtc::Program * program, const char* source, const char* name, int n_headers, const char* const* texts, \
     const char* const* names))                                                                               \
  X(nvrtc::Result, nvrtcDestroyProgram, (nvrtc::Program * program))                                           \
  X(nvrtc::Result, nvrtcCompileProgram, (nvrtc::Program program, int n_options, const char* const* options))  \
  X(nvrtc::Result, nvrtcGetPTXSize, (nvrtc::Program program, size_t * size))                                  \
  X(nvrtc::Result, nvrtcGetPTX, (nvrtc::Program program, char* ptx))                                          \
  X(nvrtc::Result, nvrtcGetProgramLogSize, (nvrtc::Program program, size_t * size))                           \
  X(nvrtc::Result, nvrtcGetProgramLog, (nvrtc::Program program, char* log))

namespace nvrtc {
struct Functions {
  BP_NVRTC(BP_CUDA_LIBRARY_MEMBER)
};
}  // namespace nvrtc

// Opened at the first call. nullptr without the library; `reason` states why. Any thread.
const nvrtc::Functions* find_nvrtc(std::string* reason = nullptr);

struct SourceHeader {
  const char* name;  // as it is included
  const char* text;
};

// The PTX of a source; throws backplane::Error with what the compiler says of it. Any thread.
std::string compile_to_ptx(const nvrtc::Functions& library, const std::string& source,
                           const std::vector<SourceHeader>& headers, const std::vector<const char*>& options);

}  // namespace backplane::cuda
