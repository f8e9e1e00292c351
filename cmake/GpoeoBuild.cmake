# SPDX-License-Identifier: Apache-2.0
# Build options and the functions that every module uses.
#
#   gpoeo_module(NAME SOURCES a.cc ... [PUBLIC targets...] [PRIVATE targets...])
#     -> static library gpoeo_NAME, alias gpoeo::NAME. Links are what the module may include.
#   gpoeo_module_test(NAME SOURCES a_test.cc ... [LINK targets...])
#     -> one GoogleTest binary NAME_test, each of its tests known to ctest.

option(GPOEO_BUILD_TESTS "Build the unit and scenario tests" ON)
option(GPOEO_BUILD_BENCH "Build the benchmarks" ON)
option(GPOEO_BUILD_FUZZERS "Build the libFuzzer targets (Clang only)" OFF)
option(GPOEO_WERROR "Treat warnings as errors (CI does)" OFF)
option(GPOEO_STATIC_RUNTIME "Link libstdc++ and libgcc statically, for a binary that travels" OFF)
set(GPOEO_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize= (address,undefined or thread)")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(gpoeo_build_flags INTERFACE)
target_compile_options(gpoeo_build_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor $<$<BOOL:${GPOEO_WERROR}>:-Werror>)
target_include_directories(gpoeo_build_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 19)
  # libstdc++ hides std::expected behind a concepts version that Clang only claims from 19 on.
  target_compile_options(gpoeo_build_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-D__cpp_concepts=202002L> -Wno-builtin-macro-redefined
    -Wno-macro-redefined)
endif()
if(GPOEO_SANITIZE)
  add_compile_options(-fsanitize=${GPOEO_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GPOEO_SANITIZE})
endif()
if(GPOEO_STATIC_RUNTIME)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

# For libraries that live in somebody else's program: nothing that needs the C++ runtime.
set(GPOEO_IN_PROCESS_FLAGS -fno-exceptions -fno-rtti -fno-threadsafe-statics -fvisibility=hidden)

function(gpoeo_module NAME)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(gpoeo_${NAME} STATIC ${ARG_SOURCES})
  add_library(gpoeo::${NAME} ALIAS gpoeo_${NAME})
  target_link_libraries(gpoeo_${NAME}
    PUBLIC ${ARG_PUBLIC}
    PRIVATE ${ARG_PRIVATE} gpoeo_build_flags)
  target_include_directories(gpoeo_${NAME} PUBLIC "${CMAKE_SOURCE_DIR}/src")
endfunction()

function(gpoeo_module_test NAME)
  if(NOT GPOEO_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${NAME}_test ${ARG_SOURCES})
  target_link_libraries(${NAME}_test PRIVATE
    ${ARG_LINK} gpoeo_build_flags GTest::gmock GTest::gtest_main)
  target_compile_definitions(${NAME}_test PRIVATE GPOEO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  include(GoogleTest)
  gtest_discover_tests(${NAME}_test DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)
endfunction()
