# SPDX-License-Identifier: Apache-2.0
# NVML clients on the twin's libnvidia-ml.so.1.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_executable(twin_scene twin_scene.cc)
target_link_libraries(twin_scene PRIVATE gpoeo::twin gpoeo_build_flags)
add_executable(twin_nvml_client twin_nvml_client.c)
target_link_libraries(twin_nvml_client PRIVATE ${CMAKE_DL_LIBS})
target_compile_options(twin_nvml_client PRIVATE -Wall -Wextra)
add_dependencies(twin_scene gpoeo_twin_nvml)

set(TWIN_NVML "$<TARGET_FILE:gpoeo_twin_nvml>")
set(TWIN_NVML_EXPORTS "${PROJECT_SOURCE_DIR}/src/twin/nvml/exports.txt")
add_test(NAME twin_nvml_client_c
  COMMAND twin_scene a100 dgemm 1 $<TARGET_FILE:twin_nvml_client> loop ${TWIN_NVML})
add_test(NAME twin_nvml_client_killed
  COMMAND twin_scene a100 dgemm 1 $<TARGET_FILE:twin_nvml_client> kill ${TWIN_NVML})
# Python itself is not sanitized: where the compiler has its runtime as a shared library, that goes
# before everything else (leaks are Python's own).
set(TWIN_NVML_PYTHON ${Python3_EXECUTABLE} -B)
if(GPOEO_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(RUNTIME libasan.so libubsan.so)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${RUNTIME}
      OUTPUT_VARIABLE FOUND OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(APPEND RUNTIMES "${FOUND} ")
  endforeach()
  set(TWIN_NVML_PYTHON ${CMAKE_COMMAND} -E env "LD_PRELOAD=${RUNTIMES}"
    "ASAN_OPTIONS=detect_leaks=0" ${TWIN_NVML_PYTHON})
  set(TWIN_NVML_PYTHON_RUNS ON)
elseif(NOT GPOEO_SANITIZE)
  set(TWIN_NVML_PYTHON_RUNS ON)
endif()
# The devices differ in what they have: the A100 has no GPM, the H200 two memory clocks.
set(TWIN_NVML_PYTHON_TESTS "")
foreach(SCENE a100:dgemm h200:resnet50)
  string(REPLACE ":" ";" SCENE "${SCENE}")
  list(GET SCENE 0 DEVICE)
  foreach(CLIENT client walk)
    add_test(NAME twin_nvml_python_${CLIENT}_${DEVICE}
      COMMAND twin_scene ${SCENE} 2 ${TWIN_NVML_PYTHON}
              ${CMAKE_CURRENT_SOURCE_DIR}/twin_nvml_${CLIENT}.py ${TWIN_NVML} ${TWIN_NVML_EXPORTS})
    list(APPEND TWIN_NVML_PYTHON_TESTS twin_nvml_python_${CLIENT}_${DEVICE})
  endforeach()
endforeach()
add_test(NAME twin_nvml_exports
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/twin_nvml_exports.py
          ${CMAKE_NM} ${CMAKE_READELF} ${TWIN_NVML} ${TWIN_NVML_EXPORTS})
set_tests_properties(twin_nvml_client_c twin_nvml_client_killed twin_nvml_exports
  ${TWIN_NVML_PYTHON_TESTS} PROPERTIES TIMEOUT 120)
if(GPOEO_SANITIZE)
  # The sanitizer's C++ part, which the library needs, comes with the C++ linker.
  set_target_properties(twin_nvml_client PROPERTIES LINKER_LANGUAGE CXX)
endif()
if(NOT TWIN_NVML_PYTHON_RUNS)
  # This compiler's sanitizer only loads into a program that was built with it.
  set_tests_properties(${TWIN_NVML_PYTHON_TESTS} PROPERTIES DISABLED TRUE)
endif()

# The adapter as the client, in the test's own process.
foreach(NAME nvml_on_twin twin_nvml_fidelity twin_nvml_threads)
  gpoeo_module_test(${NAME} SOURCES ${NAME}_test.cc
    LINK gpoeo::gpu_nvml gpoeo::twin gpoeo::response ${CMAKE_DL_LIBS})
  target_include_directories(${NAME}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${NAME}_test PRIVATE
    GPOEO_TWIN_NVML="$<TARGET_FILE:gpoeo_twin_nvml>")
  add_dependencies(${NAME}_test gpoeo_twin_nvml)
endforeach()

# On a real card, read-only; skips where there is none.
add_executable(nvml_card_test hw/nvml_card_test.cc)
target_link_libraries(nvml_card_test PRIVATE gpoeo::gpu_nvml gpoeo_build_flags GTest::gtest_main)
add_test(NAME nvml_card COMMAND nvml_card_test)
set_tests_properties(nvml_card PROPERTIES LABELS hw TIMEOUT 120 SKIP_REGULAR_EXPRESSION "SKIPPED")
