// The text that a region's kernel includes, put into the plugin's read-only data by the assembler: the registry's
// scalar functions, and the device's own headers. What the standard headers would declare, the compiler knows or stands
// here.
#include "fuse/source.hpp"

#define BP_CUDA_HEADER(symbol, file)  \
  __asm__(                            \
      ".pushsection .rodata, \"a\"\n" \
      ".balign 16\n"                  \
      "backplane_cuda_text_" #symbol  \
      ":\n"                           \
      ".incbin \"" file               \
      "\"\n"                          \
      ".byte 0\n"                     \
      ".popsection\n");               \
  extern "C" __attribute__((visibility("hidden"))) const char backplane_cuda_text_##symbol[];
BP_CUDA_HEADER(scalar, BACKPLANE_CUDA_SCALAR)
BP_CUDA_HEADER(arguments, BACKPLANE_CUDA_SOURCE "/runtime/arguments.hpp")
BP_CUDA_HEADER(element, BACKPLANE_CUDA_SOURCE "/kernels/device/element.cuh")
BP_CUDA_HEADER(region, BACKPLANE_CUDA_SOURCE "/fuse/region.cuh")
#undef BP_CUDA_HEADER

namespace backplane::cuda {

const std::vector<SourceHeader>& region_headers() {
  static const std::vector<SourceHeader> headers{
      {"backplane/scalar.cuh", backplane_cuda_text_scalar},
      {"runtime/arguments.hpp", backplane_cuda_text_arguments},
      {"kernels/device/element.cuh", backplane_cuda_text_element},
      {"fuse/region.cuh", backplane_cuda_text_region},
      {"stdint.h",
       "typedef signed char int8_t;\ntypedef short int16_t;\ntypedef int int32_t;\ntypedef long long int64_t;\n"
       "typedef unsigned char uint8_t;\ntypedef unsigned short uint16_t;\ntypedef unsigned int uint32_t;\n"
       "typedef unsigned long long uint64_t;\n#define INT64_C(x) x##ll\n"},
      {"math.h", "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n"},
      {"string.h", ""}};
  return headers;
}

}  // namespace backplane::cuda
