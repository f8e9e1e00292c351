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
set(TWIN_NVML_TESTS twin_nvml_client_c twin_nvml_client_killed twin_nvml_client_python
                    twin_nvml_exports)
add_test(NAME twin_nvml_client_c
  COMMAND twin_scene a100 dgemm 1 $<TARGET_FILE:twin_nvml_client> loop ${TWIN_NVML})
add_test(NAME twin_nvml_client_killed
  COMMAND twin_scene a100 dgemm 1 $<TARGET_FILE:twin_nvml_client> kill ${TWIN_NVML})
add_test(NAME twin_nvml_client_python
  COMMAND twin_scene a100 dgemm 2 ${Python3_EXECUTABLE}
          ${CMAKE_CURRENT_SOURCE_DIR}/twin_nvml_client.py ${TWIN_NVML} ${TWIN_NVML_EXPORTS})
add_test(NAME twin_nvml_exports
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/twin_nvml_exports.py
          ${CMAKE_NM} ${CMAKE_READELF} ${TWIN_NVML} ${TWIN_NVML_EXPORTS})
set_tests_properties(${TWIN_NVML_TESTS} PROPERTIES TIMEOUT 120)
if(GPOEO_SANITIZE)
  # A sanitized library only loads into a program that was built with the sanitizer.
  set_tests_properties(twin_nvml_client_python PROPERTIES DISABLED TRUE)
endif()

# The adapter as the client, in the test's own process.
foreach(NAME nvml_on_twin twin_nvml_fidelity)
  gpoeo_module_test(${NAME} SOURCES ${NAME}_test.cc
    LINK gpoeo::gpu_nvml gpoeo::twin gpoeo::response)
  target_include_directories(${NAME}_test PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(${NAME}_test PRIVATE
    GPOEO_TWIN_NVML="$<TARGET_FILE:gpoeo_twin_nvml>")
  add_dependencies(${NAME}_test gpoeo_twin_nvml)
endforeach()
