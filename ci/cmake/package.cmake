# What `cmake --install` puts under its prefix: the program, the shipped configs and models, and the
# headers and libraries that a routing method out of tree is built with. All of it may be moved.
include(CMakePackageConfigHelpers)

set(package_share ${CMAKE_INSTALL_DATADIR}/tokenrouter)
set(package_headers ${CMAKE_INSTALL_INCLUDEDIR}/tokenrouter/runtime)
set(package_cmake ${CMAKE_INSTALL_LIBDIR}/cmake/TokenRouter)

install(TARGETS tokenrouter EXPORT TokenRouter)

set(core_headers check error ids limits philox signal_set)
list(TRANSFORM core_headers REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/runtime/core/\\1.hpp")
install(FILES ${core_headers} DESTINATION ${package_headers}/core)
set(method_headers method options parameters plugin topology)
list(TRANSFORM method_headers REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/runtime/methods/\\1.hpp")
install(FILES ${method_headers} DESTINATION ${package_headers}/methods)
install(FILES runtime/methods/plain/single_token.hpp DESTINATION ${package_headers}/methods/plain)

install(DIRECTORY configs DESTINATION ${package_share})
install(DIRECTORY examples/models DESTINATION ${package_share}/examples PATTERN train EXCLUDE)
install(FILES examples/custom_method/CMakeLists.txt examples/custom_method/README.md
              examples/custom_method/margin.cpp examples/custom_method/margin.yaml
        DESTINATION ${package_share}/examples/custom_method)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT TokenRouter FILE TokenRouterTargets.cmake NAMESPACE TokenRouter::
        DESTINATION ${package_cmake})
configure_package_config_file(ci/cmake/TokenRouterConfig.cmake.in TokenRouterConfig.cmake
                              INSTALL_DESTINATION ${package_cmake} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(TokenRouterConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TokenRouterConfig.cmake
              ${CMAKE_BINARY_DIR}/TokenRouterConfigVersion.cmake DESTINATION ${package_cmake})

file(RELATIVE_PATH package_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(ci/cmake/tokenrouter.pc.in tokenrouter.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tokenrouter.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
