# Flags every target of ours is built with. Third-party headers come in as SYSTEM.
add_library(tr_flags INTERFACE)
set(host_warnings -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wconversion -Wno-sign-conversion)
target_compile_options(tr_flags INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${host_warnings}>")
target_include_directories(tr_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(TOKENROUTER_SANITIZE)
  add_compile_options(-fsanitize=${TOKENROUTER_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${TOKENROUTER_SANITIZE})
endif()
