# What `cmake --install` puts into a prefix: the SDK that a plugin author builds against, and the runtime.
# Relocatable: every path in the package files is relative to the file that holds it.
# Components: runtime (the library), command (`backplane`), plugins (see BackplanePlugin.cmake), sdk (all else).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(BACKPLANE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Backplane)
set(BACKPLANE_SHARE_DIR ${CMAKE_INSTALL_DATADIR}/backplane)

set_target_properties(backplane_headers PROPERTIES EXPORT_NAME headers)
install(TARGETS backplane_headers EXPORT BackplaneTargets)
install(TARGETS backplane EXPORT BackplaneTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT sdk)
if(TARGET backplane-codegen)
  set_target_properties(backplane-codegen PROPERTIES EXPORT_NAME codegen)
  install(TARGETS backplane-codegen EXPORT BackplaneTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT sdk)
endif()
if(TARGET backplane-cli)
  file(RELATIVE_PATH BACKPLANE_LIB_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
  set_target_properties(backplane-cli PROPERTIES INSTALL_RPATH "\$ORIGIN/${BACKPLANE_LIB_FROM_BIN}")
  set_target_properties(backplane-cli PROPERTIES EXPORT_NAME command)
  # An export of its own: a prefix without the command is a package too.
  install(TARGETS backplane-cli EXPORT BackplaneCommandTargets RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
  install(EXPORT BackplaneCommandTargets NAMESPACE Backplane:: DESTINATION ${BACKPLANE_PACKAGE_DIR} COMPONENT command)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/dispatcher/abi/backplane ${PROJECT_SOURCE_DIR}/dispatcher/include/backplane
    ${PROJECT_SOURCE_DIR}/sdk/include/backplane
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(DIRECTORY ${PROJECT_BINARY_DIR}/dispatcher/generated/include/backplane
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT sdk FILES_MATCHING REGEX "\\.(hpp|cuh|glsl|cl|wgsl)$")
_backplane_registry_files(registry ${PROJECT_SOURCE_DIR}/ops.yaml)
foreach(file IN LISTS registry) # each where the file that includes it will look
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${file})
  get_filename_component(folder ${name} DIRECTORY)
  install(FILES ${file} DESTINATION ${BACKPLANE_SHARE_DIR}/${folder} COMPONENT sdk)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/${BACKPLANE_SHARE_DIR}/samples.json DESTINATION ${BACKPLANE_SHARE_DIR} COMPONENT sdk)

# The pages for users, with those that codegen makes of the registry where their links look for them.
set(BACKPLANE_DOC_DIR ${CMAKE_INSTALL_DATADIR}/doc/backplane)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/ DESTINATION ${BACKPLANE_DOC_DIR} COMPONENT sdk
  PATTERN dev EXCLUDE PATTERN theme EXCLUDE PATTERN "*.py" EXCLUDE PATTERN __pycache__ EXCLUDE
  PATTERN "site*" EXCLUDE PATTERN "*.txt" EXCLUDE)
install(DIRECTORY ${PROJECT_BINARY_DIR}/dispatcher/generated/docs/ops DESTINATION ${BACKPLANE_DOC_DIR} COMPONENT sdk)

# The projects of plugins/ that `backplane new` makes a project of one's own of. Where they share a folder, one links to another; an installation
# has copies, because a wheel loses links to folders. A build has the templates where an installation has them.
file(GLOB templates CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/plugins/*/template.json)
foreach(template IN LISTS templates)
  get_filename_component(template ${template} DIRECTORY)
  get_filename_component(name ${template} NAME)
  file(GLOB shared LIST_DIRECTORIES true CONFIGURE_DEPENDS ${template}/* ${template}/.github)
  set(links)
  foreach(folder IN LISTS shared)
    if(IS_SYMLINK ${folder} AND IS_DIRECTORY ${folder})
      get_filename_component(link ${folder} NAME)
      get_filename_component(folder ${folder} REALPATH)
      list(APPEND links PATTERN ${link} EXCLUDE)
      install(DIRECTORY ${folder}/ DESTINATION ${BACKPLANE_SHARE_DIR}/templates/${name}/${link} COMPONENT sdk USE_SOURCE_PERMISSIONS)
    endif()
  endforeach()
  install(DIRECTORY ${template} DESTINATION ${BACKPLANE_SHARE_DIR}/templates COMPONENT sdk USE_SOURCE_PERMISSIONS
    PATTERN build EXCLUDE PATTERN __pycache__ EXCLUDE ${links})
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${BACKPLANE_SHARE_DIR})
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/plugins ${PROJECT_BINARY_DIR}/${BACKPLANE_SHARE_DIR}/templates SYMBOLIC)
# For the build's codegen: the entries that others call.
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/ops.yaml ${PROJECT_BINARY_DIR}/${BACKPLANE_SHARE_DIR}/ops.yaml SYMBOLIC)

install(EXPORT BackplaneTargets NAMESPACE Backplane:: DESTINATION ${BACKPLANE_PACKAGE_DIR} COMPONENT sdk)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/BackplaneConfig.cmake.in BackplaneConfig.cmake
  INSTALL_DESTINATION ${BACKPLANE_PACKAGE_DIR} PATH_VARS BACKPLANE_SHARE_DIR CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(BackplaneConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/BackplaneConfigVersion.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BackplanePlugin.cmake ${CMAKE_CURRENT_LIST_DIR}/BackplaneCodegen.cmake
  ${CMAKE_CURRENT_LIST_DIR}/BackplaneDeviceKernels.cmake ${CMAKE_CURRENT_LIST_DIR}/device_text.cmake
  ${CMAKE_CURRENT_LIST_DIR}/plugin.map DESTINATION ${BACKPLANE_PACKAGE_DIR} COMPONENT sdk)

file(RELATIVE_PATH BACKPLANE_PREFIX_FROM_PC ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
foreach(name backplane backplane-plugin)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sdk)
endforeach()
