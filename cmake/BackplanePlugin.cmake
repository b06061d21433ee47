# backplane_add_plugin: builds one plugin, in our tree and outside it (find_package(Backplane) includes this file).
#
#   backplane_add_plugin(NAME [SOURCES FILE...]
#     [OPS YAML...]          registry files; compiled by backplane-codegen into op records, linked in. Without SOURCES,
#                            codegen writes what registers them, too: the ops run by their decompositions
#     [CUDA FILE...] [OPENCL FILE...] [VULKAN FILE...]  kernels for a device; NAME.cu becomes the header NAME.cu.hpp,
#                            see cuda.hpp, opencl.hpp and vulkan.hpp in backplane/device_kernels. They need CXX, CUDA
#                            needs nvcc, and VULKAN needs glslc and Vulkan's headers
#     [BACKENDS WORD...]     the backends that it registers
#     [HOST_BACKENDS WORD...] those of them whose memory the host reads and writes (BP_BACKEND_HOST_MEMORY)
#     [KERNELS_FOR WORD...]  backends of others for which it registers kernels
#     [CPU_FEATURES WORD...] what the processor must have ("avx2"); the file is not opened without
#     [NEEDS_MINOR N]        the oldest minor of hosts that it runs on; hides what came later. The newest by default
#     [MANIFEST JSON]        a manifest written by hand, in place of the one derived from the words above
#     [COMPONENT WORD]       of its installed files; plugins by default
#     [UNLOADABLE])          declares BP_PLUGIN_UNLOADABLE to the sources as BP_PLUGIN_FLAGS
#
# Makes the target NAME: a module without lib prefix whose only visible symbol is bp_plugin_query, its manifest
# NAME.backplane.json beside it, both in ${CMAKE_BINARY_DIR}/lib/backplane/plugins, and installs both to
# BACKPLANE_PLUGIN_DIR; beside them, of a plugin with OPS, its samples, NAME.samples.json. Third-party libraries are added by target_link_libraries(NAME PRIVATE ...) as usual.
#
#   backplane_add_conformance_test(NAME DEVICES WORD... [MODES WORD...] [ARGUMENTS WORD...])
#
# CTest then runs `backplane conformance` on each of the devices, which the plugin NAME brings or has kernels for, as
# NAME.conformance.DEVICE; with MODES (test grad perf support stress async) once in each, as NAME.conformance.DEVICE.MODE.
# On a machine without NVIDIA's driver, the tests of the device cuda run on the SDK's emulated driver.
include_guard(DIRECTORY) # not GLOBAL: the variables below are of a directory
cmake_policy(VERSION 3.25) # of the functions below, also in a project that asks for an older CMake
include(GNUInstallDirs)
include(${CMAKE_CURRENT_LIST_DIR}/BackplaneCodegen.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/BackplaneDeviceKernels.cmake)

set(BACKPLANE_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)
if(NOT BACKPLANE_PLUGIN_DIR)
  set(BACKPLANE_PLUGIN_DIR ${CMAKE_INSTALL_LIBDIR}/backplane/plugins)
endif()
if(NOT DEFINED BACKPLANE_ABI_MAJOR) # set by BackplaneConfig.cmake where the SDK is installed
  set(_bp_base ${CMAKE_CURRENT_LIST_DIR}/../dispatcher/abi/backplane/abi/base.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${_bp_base})
  foreach(_bp_part MAJOR MINOR)
    file(STRINGS ${_bp_base} _bp_line REGEX "^#define BP_ABI_${_bp_part} [0-9]+")
    string(REGEX REPLACE "^.* ([0-9]+).*$" "\\1" BACKPLANE_ABI_${_bp_part} "${_bp_line}")
  endforeach()
endif()

# ["a", "b"]
function(_backplane_json_list OUT)
  list(TRANSFORM ARGN PREPEND "\"")
  list(TRANSFORM ARGN APPEND "\"")
  list(JOIN ARGN ", " words)
  set(${OUT} "[${words}]" PARENT_SCOPE)
endfunction()

# The full names of the ops that registry files bring. codegen checks the files when they are built; here only the
# names are read, since in our tree codegen does not exist yet when CMake runs.
function(_backplane_op_names OUT)
  set(names)
  foreach(registry IN LISTS ARGN)
    _backplane_registry_files(files ${registry})
    foreach(file IN LISTS files)
      file(STRINGS ${file} lines REGEX "^(namespace:| *-? *op:)|dynamic\\(")
      foreach(line IN LISTS lines)
        if(line MATCHES "^namespace: *['\"]?([A-Za-z_0-9]+)")
          set(namespace ${CMAKE_MATCH_1})
        elseif(line MATCHES "op: *['\"]?([A-Za-z_0-9.]+)")
          set(name ${CMAKE_MATCH_1})
          if(line MATCHES "Tensor\\(mut\\)") # step_(Tensor(mut) p) is the in-place form of the op step
            string(REGEX REPLACE "_$" "" name ${name})
          endif()
          list(APPEND names ${namespace}::${name})
        elseif(line MATCHES "^[^#]*dynamic\\(") # the last entry also makes its padded form
          list(APPEND names ${namespace}::${name}_padded)
        endif()
      endforeach()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${OUT} ${names} PARENT_SCOPE)
endfunction()

function(_backplane_manifest OUT NAME)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "NEEDS_MINOR" "OPS;BACKENDS;HOST_BACKENDS;KERNELS_FOR;CPU_FEATURES")
  _backplane_op_names(ops ${arg_OPS})
  _backplane_json_list(ops ${ops})
  _backplane_json_list(backends ${arg_BACKENDS})
  _backplane_json_list(host_backends ${arg_HOST_BACKENDS})
  _backplane_json_list(kernels_for ${arg_KERNELS_FOR})
  _backplane_json_list(cpu_features ${arg_CPU_FEATURES})
  set(sanitizer "${BACKPLANE_SANITIZE}")
  if(NOT sanitizer AND "${CMAKE_CXX_FLAGS}" MATCHES "-fsanitize=([a-z,]+)")
    set(sanitizer ${CMAKE_MATCH_1})
  endif()
  set(${OUT} "{
  \"name\": \"${NAME}\",
  \"file\": \"${NAME}${CMAKE_SHARED_MODULE_SUFFIX}\",
  \"contract\": {\"major\": ${BACKPLANE_ABI_MAJOR}, \"minor\": ${arg_NEEDS_MINOR}},
  \"backends\": ${backends},
  \"host_backends\": ${host_backends},
  \"ops\": ${ops},
  \"kernels_for\": ${kernels_for},
  \"cpu_features\": ${cpu_features},
  \"sanitizer\": \"${sanitizer}\"
}
" PARENT_SCOPE)
endfunction()

function(backplane_add_plugin NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "UNLOADABLE" "COMPONENT;MANIFEST;NEEDS_MINOR"
    "SOURCES;OPS;CUDA;OPENCL;VULKAN;BACKENDS;HOST_BACKENDS;KERNELS_FOR;CPU_FEATURES")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "backplane_add_plugin(${NAME}): unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(word IN LISTS arg_SOURCES arg_OPS arg_CUDA arg_OPENCL arg_VULKAN arg_BACKENDS arg_HOST_BACKENDS arg_KERNELS_FOR)
    if(word MATCHES "^[A-Z][A-Z_]+$") # a keyword misspelt is a value of the one before it
      message(FATAL_ERROR "backplane_add_plugin(${NAME}): unknown argument: ${word}")
    endif()
  endforeach()
  if(NOT arg_SOURCES AND NOT arg_OPS)
    message(FATAL_ERROR "backplane_add_plugin(${NAME}): give SOURCES, OPS or both")
  endif()
  if(DEFINED arg_NEEDS_MINOR AND (NOT arg_NEEDS_MINOR MATCHES "^[1-9][0-9]*$" OR arg_NEEDS_MINOR GREATER BACKPLANE_ABI_MINOR))
    message(FATAL_ERROR "backplane_add_plugin(${NAME}): NEEDS_MINOR: found ${arg_NEEDS_MINOR}, expected a number from 1 to ${BACKPLANE_ABI_MINOR}")
  endif()
  if(NOT arg_COMPONENT)
    set(arg_COMPONENT plugins)
  endif()
  list(TRANSFORM arg_OPS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")

  set(generated)
  if(arg_OPS)
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT "C" IN_LIST languages)
      message(FATAL_ERROR "backplane_add_plugin(${NAME}): op records are C; write project(... LANGUAGES C CXX)")
    endif()
    set(generated_dir ${CMAKE_CURRENT_BINARY_DIR}/${NAME}_ops)
    set(emit)
    if(NOT arg_SOURCES)
      set(emit EMIT records formulas cpp pyi samples kernels scalar plugin)
    endif()
    backplane_generate_ops(OPS ${arg_OPS} OUT ${generated_dir} SOURCES generated ${emit})
  endif()
  set(device_headers)
  if(arg_CUDA OR arg_OPENCL OR arg_VULKAN)
    set(stamp ${generated})
    list(FILTER stamp INCLUDE REGEX "\\.stamp$") # make has no rule for the other outputs, which come with it
    _backplane_device_kernels(device_headers CUDA ${arg_CUDA} OPENCL ${arg_OPENCL} VULKAN ${arg_VULKAN} DEPENDS ${stamp}
      FOLDERS ${generated_dir}/include ${BACKPLANE_INCLUDE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  add_library(${NAME} MODULE ${arg_SOURCES} ${generated} ${device_headers})
  target_link_libraries(${NAME} PRIVATE Backplane::headers)
  if(arg_OPS)
    target_include_directories(${NAME} PRIVATE ${generated_dir} ${generated_dir}/include)
  endif()
  if(device_headers)
    target_include_directories(${NAME} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/device_kernels)
    target_link_libraries(${NAME} PRIVATE ${CMAKE_DL_LIBS})
    if(arg_VULKAN)
      target_include_directories(${NAME} SYSTEM PRIVATE ${BACKPLANE_VULKAN_HEADERS})
    endif()
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages) # a plugin may be C alone
    target_compile_features(${NAME} PRIVATE cxx_std_20)
  endif()
  target_compile_definitions(${NAME} PRIVATE BP_PLUGIN_NAME="${NAME}"
    BP_PLUGIN_FLAGS=$<IF:$<BOOL:${arg_UNLOADABLE}>,BP_PLUGIN_UNLOADABLE,0>)
  if(arg_NEEDS_MINOR)
    target_compile_definitions(${NAME} PRIVATE BP_TARGET_MINOR=${arg_NEEDS_MINOR})
  else()
    set(arg_NEEDS_MINOR ${BACKPLANE_ABI_MINOR})
  endif()

  set(directory ${CMAKE_BINARY_DIR}/lib/backplane/plugins)
  set_target_properties(${NAME} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${directory}
    POSITION_INDEPENDENT_CODE ON VISIBILITY_INLINES_HIDDEN ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    LINK_DEPENDS ${BACKPLANE_PLUGIN_MAP})
  # A unique symbol pins the file in memory for the life of the process: it could never be closed.
  target_compile_options(${NAME} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>
    $<$<COMPILE_LANG_AND_ID:CUDA,NVIDIA>:-Xcompiler=-fno-gnu-unique>)
  target_link_options(${NAME} PRIVATE LINKER:--version-script=${BACKPLANE_PLUGIN_MAP} LINKER:-z,now)
  if("${CMAKE_CXX_COMPILER_ID}${CMAKE_C_COMPILER_ID}" MATCHES "^(GNU)+$") # Clang leaves the sanitizers' symbols to the executable
    target_link_options(${NAME} PRIVATE LINKER:-z,defs)
  endif()

  set(manifest ${directory}/${NAME}.backplane.json)
  if(arg_MANIFEST)
    configure_file(${arg_MANIFEST} ${manifest} COPYONLY)
  else()
    _backplane_manifest(text ${NAME} OPS ${arg_OPS} BACKENDS ${arg_BACKENDS}
      NEEDS_MINOR ${arg_NEEDS_MINOR} HOST_BACKENDS ${arg_HOST_BACKENDS} KERNELS_FOR ${arg_KERNELS_FOR}
      CPU_FEATURES ${arg_CPU_FEATURES})
    file(CONFIGURE OUTPUT ${manifest} CONTENT "${text}" @ONLY)
  endif()
  if(arg_OPS)
    set(samples ${directory}/${NAME}.samples.json)
    list(GET arg_OPS 0 first)
    file(STRINGS ${first} line REGEX "^namespace:" LIMIT_COUNT 1)
    string(REGEX REPLACE "^namespace: *['\"]?([A-Za-z_0-9]+).*$" "\\1" namespace "${line}")
    add_custom_command(OUTPUT ${samples} DEPENDS ${generated_dir}/${namespace}.stamp
      COMMAND ${CMAKE_COMMAND} -E copy_if_different ${generated_dir}/samples.json ${samples} VERBATIM)
    target_sources(${NAME} PRIVATE ${samples})
    install(FILES ${samples} DESTINATION ${BACKPLANE_PLUGIN_DIR} COMPONENT ${arg_COMPONENT})
  endif()
  install(TARGETS ${NAME} LIBRARY DESTINATION ${BACKPLANE_PLUGIN_DIR} COMPONENT ${arg_COMPONENT})
  install(FILES ${manifest} DESTINATION ${BACKPLANE_PLUGIN_DIR} COMPONENT ${arg_COMPONENT})
endfunction()

function(backplane_add_conformance_test NAME)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEVICES;MODES;ARGUMENTS")
  if(NOT arg_DEVICES OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "backplane_add_conformance_test(${NAME}): give DEVICES, and what the command takes after ARGUMENTS")
  endif()
  foreach(mode IN LISTS arg_MODES)
    if(NOT mode MATCHES "^(test|grad|perf|support|stress|async)$")
      message(FATAL_ERROR "backplane_add_conformance_test(${NAME}): MODES: found ${mode}, expected test, grad, perf, support, stress or async")
    endif()
  endforeach()
  foreach(device IN LISTS arg_DEVICES)
    set(command Backplane::command conformance --device ${device} --plugin $<TARGET_FILE:${NAME}> ${arg_ARGUMENTS})
    if(NOT arg_MODES)
      add_test(NAME ${NAME}.conformance.${device} COMMAND ${command})
    endif()
    foreach(mode IN LISTS arg_MODES)
      add_test(NAME ${NAME}.conformance.${device}.${mode} COMMAND ${command} --mode ${mode})
    endforeach()
    if(device STREQUAL cuda AND EXISTS "${BACKPLANE_EMULATED_DRIVER}") # behind the machine's own driver
      list(TRANSFORM arg_MODES PREPEND ${NAME}.conformance.${device}. OUTPUT_VARIABLE tests)
      if(NOT arg_MODES)
        set(tests ${NAME}.conformance.${device})
      endif()
      set_tests_properties(${tests} PROPERTIES ENVIRONMENT_MODIFICATION LD_LIBRARY_PATH=path_list_append:${BACKPLANE_EMULATED_DRIVER})
    endif()
  endforeach()
endfunction()
