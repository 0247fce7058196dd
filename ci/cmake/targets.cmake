# tr_library(NAME SOURCES a.cpp … DEPS b …): one static library of ours.
function(tr_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC tr_flags ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
endfunction()

# tr_package_library(NAME EXPORT_NAME e SOURCES a.cpp … DEPS b …): one that is installed for routing
# methods out of tree, as TokenRouter::e; it becomes part of their shared libraries.
function(tr_package_library name)
  cmake_parse_arguments(arg "" "EXPORT_NAME" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE $<BUILD_INTERFACE:tr_flags>)
  target_include_directories(${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                            $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/tokenrouter>)
  target_compile_features(${name} PUBLIC cxx_std_20)
  set_target_properties(${name} PROPERTIES
    EXPORT_NAME ${arg_EXPORT_NAME} OUTPUT_NAME tokenrouter_${arg_EXPORT_NAME})
  install(TARGETS ${name} EXPORT TokenRouterMethod)
endfunction()

# tr_test(NAME SOURCES a_test.cpp … DEPS b …): a Boost.Test program that ctest runs from the source root.
function(tr_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/tests/support/test_main.cpp ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE tr_flags ${arg_DEPS} Boost::unit_test_framework)
  target_compile_definitions(${name} PRIVATE BOOST_TEST_DYN_LINK)
  add_test(NAME ${name} COMMAND ${name} --log_level=message WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()
