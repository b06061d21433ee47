# cmake -DINPUT=FILE -DOUTPUT=HEADER -DNAME=NAME -DTYPE=CudaModule|OpenclProgram|VulkanShader -DFILE=WORD
#   -DINCLUDE=cuda|opencl|vulkan [-DFOLDERS=DIR,...] -P: a header that defines NAME, of TYPE, over the content of a file.
# Lines `#include "X"` of files in FOLDERS are replaced by those files, because the compiler that reads the text later has
# no folders. SPIR-V is binary: its bytes are copied unchanged.
if(INCLUDE STREQUAL vulkan)
  file(READ ${INPUT} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  file(WRITE ${OUTPUT} "// ${FILE}, compiled to SPIR-V. Made by CMake; edit that file instead.
#pragma once

#include \"backplane/device_kernels/vulkan.hpp\"

alignas(4) inline const unsigned char ${NAME}_words[] = {${bytes}};
inline backplane::plugin::${TYPE} ${NAME}(\"${FILE}\", ${NAME}_words, sizeof(${NAME}_words));
")
  return()
endif()
file(READ ${INPUT} text)
string(REPLACE "," ";" folders "${FOLDERS}")
while(text MATCHES "#include \"([^\"\n]+)\"")
  set(line "${CMAKE_MATCH_0}")
  set(included "${CMAKE_MATCH_1}")
  find_file(found ${included} PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
  if(NOT found)
    message(FATAL_ERROR "${INPUT}: ${line}: not found in ${FOLDERS}")
  endif()
  file(READ ${found} content)
  unset(found)
  string(REPLACE "${line}" "${content}" text "${text}")
endwhile()
string(HEX "${text}" bytes)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "// ${FILE}, as a text of this plugin. Made by CMake; edit that file instead.
#pragma once

#include \"backplane/device_kernels/${INCLUDE}.hpp\"

inline const unsigned char ${NAME}_text[] = {${bytes}0};
inline backplane::plugin::${TYPE} ${NAME}(\"${FILE}\", reinterpret_cast<const char*>(${NAME}_text));
")
