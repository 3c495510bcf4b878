# Every src/**/*_fuzz.c is one libFuzzer program; scripts/fuzz.sh makes the seeds and runs them.
if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
    message(FATAL_ERROR "LAMEMO_FUZZ needs clang: cmake --preset fuzz")
endif()

add_custom_target(fuzz_targets)
file(GLOB_RECURSE targets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_fuzz.c)
set(names "") # what scripts/fuzz.sh runs
foreach(file IN LISTS targets)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/src OUTPUT_VARIABLE name)
    string(REGEX REPLACE "\\.c$" "" name ${name})
    string(REPLACE "/" "_" name ${name})
    add_executable(${name} ${file})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests) # "fuzz/name.h"
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE lamemo lamemo_warnings)
    add_dependencies(fuzz_targets ${name})
    string(APPEND names "${name}\n")
endforeach()
file(WRITE ${PROJECT_BINARY_DIR}/fuzz_targets.txt "${names}")
