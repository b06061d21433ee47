# CPack: Debian packages of the components of cmake/BackplaneInstall.cmake (./dev deb). There is one package per group of components.
#
#   libbackplane0       the library, the CPU backend, collectives        (runtime, plugins)
#   libbackplane-dev    headers, CMake and pkg-config files, codegen     (sdk)
#   backplane-tools     the command with the conformance kit             (command)
#   python3-backplane   the Python package                               (python)
#   backplane-vulkan, backplane-mpi   plugins with libraries of their own
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME backplane)
set(CPACK_PACKAGE_VENDOR Backplane)
set(CPACK_PACKAGE_CONTACT "Backplane developers <developers@backplane.invalid>")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR}/lib)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(version "(= ${PROJECT_VERSION}-1)")
# _backplane_deb(GROUP PACKAGE SECTION SYNOPSIS EXTENDED DEPENDS COMPONENT...): EXTENDED ends the extended description.
function(_backplane_deb group package section description extended depends)
  set(components ${ARGN})
  list(APPEND CPACK_COMPONENTS_ALL ${components} doc_${group})
  string(TOUPPER ${group} key)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} PARENT_SCOPE)
  foreach(component IN LISTS components ITEMS doc_${group})
    string(TOUPPER ${component} name)
    set(CPACK_COMPONENT_${name}_GROUP ${group} PARENT_SCOPE)
  endforeach()
  set(CPACK_COMPONENT_GROUP_${key}_DESCRIPTION "${description}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${description}\nBackplane is an SDK for tensors, operators and automatic differentiation,\ninto which backends for devices are plugged. This package has\n${extended}." PARENT_SCOPE)
  # What every Debian package has: its licence and its changelog.
  set(folder ${CMAKE_BINARY_DIR}/debian/${package})
  file(MAKE_DIRECTORY ${folder})
  execute_process(COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/packages/debian_documents.py
      --package ${package} --version ${PROJECT_VERSION}-1 --out ${folder} COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${folder}/copyright ${folder}/changelog.Debian.gz DESTINATION share/doc/${package} COMPONENT doc_${group} EXCLUDE_FROM_ALL)
endfunction()

set(CPACK_COMPONENTS_ALL)
_backplane_deb(library libbackplane0 libs "library of tensors and operators"
  "the shared library, the backend for the CPU, and the collectives" "" runtime plugins)
_backplane_deb(development libbackplane-dev libdevel "headers and CMake files of Backplane"
  "headers, files for CMake and pkg-config, the code generator, templates\nof plugins, and the pages for users" "libbackplane0 ${version}" sdk)
_backplane_deb(tools backplane-tools devel "command and conformance kit of Backplane"
  "the command backplane: it lists devices and ops, makes projects of\nplugins, and tests backends" "libbackplane0 ${version}, libbackplane-dev ${version}" command)
if(BACKPLANE_PYTHON_DIR)
  find_package(Python REQUIRED COMPONENTS Interpreter) # the variables of python/CMakeLists.txt end with that file
  math(EXPR next "${Python_VERSION_MINOR} + 1")
  _backplane_deb(python python3-backplane python "tensors and operators for Python"
    "the Python package. NumPy is needed by conversions from and to arrays"
    "libbackplane0 ${version}, python3 (>= 3.${Python_VERSION_MINOR}~), python3 (<< 3.${next}~)" python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS "python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packages/debian/postinst ${PROJECT_SOURCE_DIR}/packages/debian/prerm)
  install(FILES ${PROJECT_SOURCE_DIR}/packages/debian/python3-backplane.lintian DESTINATION share/lintian/overrides
    RENAME python3-backplane COMPONENT python)
endif()
if(TARGET backplane_vulkan)
  _backplane_deb(vulkan backplane-vulkan libs "Vulkan backend of Backplane" "the backend for GPUs with Vulkan" "libbackplane0 ${version}" vulkan)
endif()
if(TARGET backplane_collectives_mpi)
  _backplane_deb(mpi backplane-mpi libs "collectives over MPI for Backplane" "the provider of collectives over MPI" "libbackplane0 ${version}" mpi)
endif()
set(CPACK_DEBIAN_LIBRARY_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
include(CPack)
