# The words CUDA, OPENCL and VULKAN of backplane_add_plugin: files with kernels for a device, as texts (of Vulkan: as
# SPIR-V) in the plugin. wave.cu becomes the header wave.cu.hpp, which defines `wave_cu` for `launch` of
# backplane/device_kernels.
include_guard(DIRECTORY)
cmake_policy(VERSION 3.25) # of the functions below, also in a project that asks for an older CMake

set(BACKPLANE_CUDA_ARCHITECTURE 75 CACHE STRING "Oldest compute capability that kernels of plugins run on, without the dot")
set(_BACKPLANE_DEVICE_TEXT ${CMAKE_CURRENT_LIST_DIR}/device_text.cmake)

# A header of `text`, which is made of `file`.
function(_backplane_device_header OUT file text type include folders)
  get_filename_component(word ${file} NAME)
  string(MAKE_C_IDENTIFIER ${word} name)
  set(header ${CMAKE_CURRENT_BINARY_DIR}/device_kernels/${word}.hpp)
  add_custom_command(OUTPUT ${header} DEPENDS ${text} ${ARGN} ${_BACKPLANE_DEVICE_TEXT} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DINPUT=${text} -DOUTPUT=${header} -DNAME=${name} -DTYPE=${type} -DFILE=${word}
      -DINCLUDE=${include} -DFOLDERS=${folders} -P ${_BACKPLANE_DEVICE_TEXT})
  set(${OUT} ${header} PARENT_SCOPE)
endfunction()

# _backplane_device_kernels(OUT FOLDERS DIR... DEPENDS FILE... CUDA FILE... OPENCL FILE... VULKAN FILE...): headers for the
# sources.
function(_backplane_device_kernels OUT)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FOLDERS;DEPENDS;CUDA;OPENCL;VULKAN")
  set(headers)
  if(arg_CUDA)
    # nvcc alone: CMake's language CUDA wants the whole toolkit and links its runtime.
    find_program(BACKPLANE_NVCC nvcc HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda/bin PATH_SUFFIXES bin)
    if(NOT BACKPLANE_NVCC)
      message(FATAL_ERROR "backplane_add_plugin: CUDA needs nvcc, which was not found. Fix: install the CUDA toolkit (Debian: nvidia-cuda-toolkit), or set BACKPLANE_NVCC")
    endif()
  endif()
  if(arg_VULKAN)
    find_program(BACKPLANE_GLSLC glslc)
    find_path(BACKPLANE_VULKAN_HEADERS vulkan/vulkan_core.h)
    if(NOT BACKPLANE_GLSLC OR NOT BACKPLANE_VULKAN_HEADERS)
      message(FATAL_ERROR "backplane_add_plugin: VULKAN needs glslc and vulkan/vulkan_core.h; found ${BACKPLANE_GLSLC} and ${BACKPLANE_VULKAN_HEADERS}. Fix: install both (Debian: glslc, libvulkan-dev), or set BACKPLANE_GLSLC and BACKPLANE_VULKAN_HEADERS")
    endif()
  endif()
  list(TRANSFORM arg_FOLDERS PREPEND -I OUTPUT_VARIABLE searched)
  foreach(file IN LISTS arg_CUDA)
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(word ${file} NAME)
    set(ptx ${CMAKE_CURRENT_BINARY_DIR}/device_kernels/${word}.ptx)
    # Rounding is as it is written, as in the entry's decomposition: no product is fused into a sum.
    add_custom_command(OUTPUT ${ptx} DEPENDS ${source} ${arg_DEPENDS} DEPFILE ${ptx}.d VERBATIM
      COMMAND ${BACKPLANE_NVCC} -ptx -arch=compute_${BACKPLANE_CUDA_ARCHITECTURE} -std=c++17 --fmad=false
        -ccbin ${CMAKE_CXX_COMPILER} ${searched} -MD -MF ${ptx}.d -o ${ptx} ${source}
      COMMENT "Compiling the CUDA kernels of ${word}")
    _backplane_device_header(header ${file} ${ptx} CudaModule cuda "")
    list(APPEND headers ${header})
  endforeach()
  string(REPLACE ";" "," folders "${arg_FOLDERS}")
  foreach(file IN LISTS arg_OPENCL)
    get_filename_component(source ${file} ABSOLUTE)
    _backplane_device_header(header ${file} ${source} OpenclProgram opencl "${folders}" ${arg_DEPENDS})
    list(APPEND headers ${header})
  endforeach()
  foreach(file IN LISTS arg_VULKAN)
    get_filename_component(source ${file} ABSOLUTE)
    get_filename_component(word ${file} NAME)
    set(words ${CMAKE_CURRENT_BINARY_DIR}/device_kernels/${word}.spv)
    add_custom_command(OUTPUT ${words} DEPENDS ${source} ${arg_DEPENDS} DEPFILE ${words}.d VERBATIM
      COMMAND ${BACKPLANE_GLSLC} -O --target-env=vulkan1.2 -fshader-stage=compute ${searched} -MD -MF ${words}.d
        -o ${words} ${source}
      COMMENT "Compiling the Vulkan kernel of ${word}")
    _backplane_device_header(header ${file} ${words} VulkanShader vulkan "")
    list(APPEND headers ${header})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/device_kernels)
  set(${OUT} ${headers} PARENT_SCOPE)
endfunction()
