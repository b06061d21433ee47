# backplane_generate_ops: compiles registry files when they are built, in our tree and outside it.
#
#   backplane_generate_ops(OPS YAML... OUT DIR SOURCES VARIABLE
#     [SYMBOL NAME]    prefix of the C symbols NAME_ops, NAME_op_count; the first file's namespace by default
#     [IMPORT YAML...] registry files whose ops may be called; the installed ops.yaml by default
#     [EMIT WORD...])  of records formulas cpp pyi docs samples kernels scalar rewrites spellings plugin; all but plugin by default
#
# Sets VARIABLE to the generated C sources (and the stamp that makes every generator wait for them). Headers come to
# be in DIR (NAME_records.h) and DIR/include. A change to a registry file, or to one that it includes, runs codegen again;
# an output that would not change keeps its time, so nothing that depends on it is built again; ninja learns that because
# the outputs are byproducts of the stamp.
#
#   backplane_generate_scalar(OPS YAML... OUT DIR FILES VARIABLE [IMPORT YAML...]
#     DIALECT WORD...) of c++ cuda glsl opencl wgsl
#
# Only what the ops do to one element, as DIR/include/NAMESPACE/scalar.EXT; those of Backplane's own registry are installed
# among its headers. Sets VARIABLE to the files.
include_guard(DIRECTORY)
cmake_policy(VERSION 3.25) # of the functions below, also in a project that asks for an older CMake

if(NOT BACKPLANE_OPS_YAML) # set by BackplaneConfig.cmake where the SDK is installed
  get_filename_component(BACKPLANE_OPS_YAML ${CMAKE_CURRENT_LIST_DIR}/../ops.yaml ABSOLUTE)
endif()

# The registry file and all that it includes; ARGN: the files found so far. Paths are read as codegen reads them, which
# allows only letters that YAML writes as they are. Codegen reports a wrong path, with its position.
function(_backplane_registry_files OUT FILE)
  set(files ${FILE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FILE})
  get_filename_component(folder ${FILE} DIRECTORY)
  file(READ ${FILE} text)
  string(REGEX REPLACE "#[^\n]*" "" text "\n${text}")
  if(text MATCHES "\n[\"']?include[\"']? *:([^\n]*(\n+[][ -][^\n]*)*)")
    string(REGEX MATCHALL "[A-Za-z0-9_./-]+\\.ya?ml" paths "${CMAKE_MATCH_1}")
    foreach(path IN LISTS paths)
      get_filename_component(included ${folder}/${path} ABSOLUTE)
      if(EXISTS ${included} AND NOT included IN_LIST ARGN AND NOT included IN_LIST files)
        _backplane_registry_files(more ${included} ${ARGN} ${files})
        list(APPEND files ${more})
      endif()
    endforeach()
  endif()
  set(${OUT} ${files} PARENT_SCOPE)
endfunction()

# The namespace of the first of OPS, and all files that are read.
macro(_backplane_read_registries)
  foreach(list OPS IMPORT)
    list(TRANSFORM arg_${list} PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/" REGEX "^[^/]")
  endforeach()
  list(GET arg_OPS 0 first)
  file(STRINGS ${first} line REGEX "^namespace:" LIMIT_COUNT 1)
  if(NOT line MATCHES "^namespace: *['\"]?([A-Za-z_][A-Za-z_0-9]*)")
    message(FATAL_ERROR "${first}: a registry file begins with `namespace: NAME`")
  endif()
  set(namespace ${CMAKE_MATCH_1})
  if(NOT arg_IMPORT AND NOT first STREQUAL BACKPLANE_OPS_YAML)
    set(arg_IMPORT ${BACKPLANE_OPS_YAML})
  endif()
  set(inputs)
  foreach(file IN LISTS arg_OPS arg_IMPORT)
    _backplane_registry_files(files ${file})
    list(APPEND inputs ${files})
  endforeach()
  set(base)
  if(first STREQUAL BACKPLANE_OPS_YAML)
    set(base --base)
  endif()
  set(command Backplane::codegen ${base} --ops ${arg_OPS} --out ${arg_OUT})
  if(arg_IMPORT)
    list(APPEND command --import ${arg_IMPORT})
  endif()
endmacro()

# The headers of scalar functions of a namespace in the dialects ARGN.
function(_backplane_scalar_files OUT DIR NAMESPACE)
  set(extension_c++ hpp)
  set(extension_cuda cuh)
  set(extension_glsl glsl)
  set(extension_opencl cl)
  set(extension_wgsl wgsl)
  set(folder ${NAMESPACE})
  if(folder STREQUAL "bp")
    set(folder backplane)
  endif()
  set(files)
  foreach(dialect IN LISTS ARGN)
    if(NOT DEFINED extension_${dialect})
      message(FATAL_ERROR "unknown dialect '${dialect}'; dialects are c++ cuda glsl opencl wgsl")
    endif()
    list(APPEND files ${DIR}/include/${folder}/scalar.${extension_${dialect}})
  endforeach()
  set(${OUT} ${files} PARENT_SCOPE)
endfunction()

function(backplane_generate_scalar)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT;FILES" "OPS;IMPORT;DIALECT")
  foreach(needed OPS OUT FILES DIALECT)
    if(NOT arg_${needed})
      message(FATAL_ERROR "backplane_generate_scalar: ${needed} is missing")
    endif()
  endforeach()
  _backplane_read_registries()
  _backplane_scalar_files(files ${arg_OUT} ${namespace} ${arg_DIALECT})
  list(JOIN arg_DIALECT "," words)
  add_custom_command(OUTPUT ${files}
    COMMAND ${command} --emit scalar --dialect ${words}
    COMMAND ${CMAKE_COMMAND} -E touch ${files}
    DEPENDS Backplane::codegen ${inputs}
    COMMENT "Writing the scalar functions of namespace ${namespace}" VERBATIM)
  set(${arg_FILES} ${files} PARENT_SCOPE)
endfunction()

function(backplane_generate_ops)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT;SYMBOL;SOURCES" "OPS;IMPORT;EMIT")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "backplane_generate_ops: unknown arguments: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(needed OPS OUT SOURCES)
    if(NOT arg_${needed})
      message(FATAL_ERROR "backplane_generate_ops: ${needed} is missing")
    endif()
  endforeach()
  _backplane_read_registries()
  if(NOT arg_SYMBOL)
    set(arg_SYMBOL ${namespace})
  endif()
  list(APPEND command --symbol ${arg_SYMBOL})
  set(records ${arg_OUT}/${arg_SYMBOL}_records.c)
  set(headers ${arg_OUT}/${arg_SYMBOL}_records.h)
  set(sources ${records})
  if(arg_EMIT)
    list(JOIN arg_EMIT "," words)
    list(APPEND command --emit ${words})
  else()
    set(arg_EMIT formulas cpp pyi samples kernels scalar rewrites spellings)
  endif()
  if("plugin" IN_LIST arg_EMIT)
    list(APPEND sources ${arg_OUT}/${arg_SYMBOL}_plugin.c)
  endif()
  if("formulas" IN_LIST arg_EMIT)
    list(APPEND sources ${arg_OUT}/${arg_SYMBOL}_formulas.c)
    list(APPEND headers ${arg_OUT}/${arg_SYMBOL}_formulas.h)
  endif()
  if("cpp" IN_LIST arg_EMIT)
    if(namespace STREQUAL "bp")
      list(APPEND headers ${arg_OUT}/include/backplane/ops.hpp ${arg_OUT}/include/backplane/bp/methods.hpp
        ${arg_OUT}/include/backplane/bp/ops.hpp)
    else()
      list(APPEND headers ${arg_OUT}/include/${namespace}/ops.hpp)
    endif()
  endif()
  if("kernels" IN_LIST arg_EMIT)
    list(APPEND headers ${arg_OUT}/include/${arg_SYMBOL}_kernels.hpp)
  endif()
  if("scalar" IN_LIST arg_EMIT)
    _backplane_scalar_files(scalar ${arg_OUT} ${namespace} c++ cuda glsl opencl wgsl)
    list(APPEND headers ${scalar})
  endif()
  if("rewrites" IN_LIST arg_EMIT AND namespace STREQUAL "bp") # no other registry has any
    list(APPEND headers ${arg_OUT}/${arg_SYMBOL}_rewrites.hpp)
  endif()
  if("spellings" IN_LIST arg_EMIT AND namespace STREQUAL "bp") # likewise
    list(APPEND headers ${arg_OUT}/${arg_SYMBOL}_spellings.hpp)
  endif()
  set(others)
  if("pyi" IN_LIST arg_EMIT)
    list(APPEND others ${arg_OUT}/${arg_SYMBOL}.pyi)
  endif()
  if("samples" IN_LIST arg_EMIT)
    list(APPEND others ${arg_OUT}/samples.json)
  endif()

  set(stamp ${arg_OUT}/${arg_SYMBOL}.stamp)
  add_custom_command(OUTPUT ${stamp} BYPRODUCTS ${sources} ${headers} ${others}
    COMMAND ${command}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS Backplane::codegen ${inputs}
    COMMENT "Compiling the op records of namespace ${namespace}" VERBATIM)
  set_source_files_properties(${sources} ${headers} ${stamp} PROPERTIES GENERATED ON)
  set(${arg_SOURCES} ${sources} ${headers} ${stamp} PARENT_SCOPE)
endfunction()
