# What `cmake --install` puts under its prefix: the program, libtokenrouter.so and its header for jobs
# inside other programs, the headers and libraries that a routing method out of tree is built with, the
# shipped configs and models, and examples. All of it may be moved.
include(CMakePackageConfigHelpers)

set(package_share ${CMAKE_INSTALL_DATADIR}/tokenrouter)
set(package_headers ${CMAKE_INSTALL_INCLUDEDIR}/tokenrouter/runtime)
set(package_cmake ${CMAKE_INSTALL_LIBDIR}/cmake/TokenRouter)

install(TARGETS tokenrouter tr_embedded EXPORT TokenRouter)
install(FILES runtime/ingress/embedded.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tokenrouter)

set(core_headers check error ids limits philox signal_set)
list(TRANSFORM core_headers REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/runtime/core/\\1.hpp")
install(FILES ${core_headers} DESTINATION ${package_headers}/core)
set(method_headers method options parameters plugin topology)
list(TRANSFORM method_headers REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/runtime/methods/\\1.hpp")
install(FILES ${method_headers} DESTINATION ${package_headers}/methods)
install(FILES runtime/methods/plain/single_token.hpp DESTINATION ${package_headers}/methods/plain)

install(DIRECTORY configs DESTINATION ${package_share})
install(DIRECTORY examples/models DESTINATION ${package_share}/examples PATTERN train EXCLUDE)
set(custom_method_files CMakeLists.txt README.md margin.cpp margin.yaml)
set(embedded_files CMakeLists.txt README.md ask.cpp)
foreach(example custom_method embedded)
  list(TRANSFORM ${example}_files PREPEND examples/${example}/)
  install(FILES ${${example}_files} DESTINATION ${package_share}/examples/${example})
endforeach()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

foreach(part TokenRouter TokenRouterMethod)
  install(EXPORT ${part} FILE ${part}Targets.cmake NAMESPACE TokenRouter:: DESTINATION ${package_cmake})
endforeach()
configure_package_config_file(ci/cmake/TokenRouterConfig.cmake.in TokenRouterConfig.cmake
                              INSTALL_DESTINATION ${package_cmake} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(TokenRouterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TokenRouterConfig.cmake
              ${CMAKE_BINARY_DIR}/TokenRouterConfigVersion.cmake DESTINATION ${package_cmake})

file(RELATIVE_PATH package_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
foreach(part tokenrouter tokenrouter-method)
  configure_file(ci/cmake/${part}.pc.in ${part}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${part}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()
