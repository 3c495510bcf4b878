# Every src/**/*_test.c and tests/*_test.c is one Check program and one CTest test of its name.
# Every tests/cli/*_test.sh drives the program, whose path it finds in $LAMEMO.  Exit 77: what it needs is not here.
# Tests run in the root of the source tree, so "tests/golden/xl.safetensors" opens as written.
# Only against hanging: a test under sanitizers on a busy machine may take a quarter of an hour.
set(test_timeout 2400)
set(test_environment OMP_WAIT_POLICY=passive)
pkg_check_modules(CHECK REQUIRED IMPORTED_TARGET check>=0.15)
pkg_check_modules(MINIZIP REQUIRED IMPORTED_TARGET minizip) # writes the archives that are read

add_library(lamemo_test INTERFACE)
target_include_directories(lamemo_test INTERFACE ${PROJECT_SOURCE_DIR}/tests)
# lam_ops_cpu in a test is the table of the highest level that this machine has.
target_compile_definitions(lamemo_test INTERFACE _GNU_SOURCE LAM_VERSION="${PROJECT_VERSION}"
    lam_ops_cpu=lam_ops_cpu_${lamemo_test_level})
target_link_libraries(lamemo_test INTERFACE lamemo lamemo_warnings PkgConfig::CHECK)

# What several tests share: tests/support, included as "support/name.h".
# Objects, not an archive: --wrap (support/alloc.h) needs them in every program.
file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
add_library(lamemo_support OBJECT ${support})
target_link_libraries(lamemo_support PUBLIC lamemo_test PRIVATE PkgConfig::MINIZIP)
target_link_options(lamemo_support INTERFACE
    LINKER:--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=strdup,--wrap=free)

file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*_test.c)
file(GLOB top_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.c)
if(NOT MICROHTTPD_FOUND)
    list(FILTER tests EXCLUDE REGEX "/src/serve/")
endif()
foreach(file IN LISTS tests top_tests)
    # core/file_test.c -> core_file_test: twins in ops/{ref,cpu} keep apart
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    string(REGEX REPLACE "^src/|\\.c$" "" name ${name})
    string(REPLACE "/" "_" name ${name})
    add_executable(${name} ${file})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE lamemo_support)
    if(name MATCHES "^ops_cpu_") # they test what ops/cpu inlines, and functions that its tables hide
        target_link_libraries(${name} PRIVATE lamemo_flags_${lamemo_test_level})
        target_sources(${name} PRIVATE $<TARGET_OBJECTS:lamemo_cpu_${lamemo_test_level}>)
    endif()
    if(name STREQUAL ops_cpu_gemm_test) # it watches the library
        target_link_options(${name} PRIVATE LINKER:--wrap=dnnl_sgemm,--wrap=cblas_sgemm)
    endif()
    if(name STREQUAL cli_stop_test) # these two set the clock
        target_link_options(${name} PRIVATE LINKER:--wrap=clock_gettime)
    elseif(name STREQUAL train_run_test)
        target_link_options(${name} PRIVATE LINKER:--wrap=lam_clock)
    endif()
    if(name MATCHES "^serve_" AND MICROHTTPD_FOUND)
        target_link_libraries(${name} PRIVATE lamemo_serve)
    endif()
    if(name MATCHES "^cli_")
        target_link_libraries(${name} PRIVATE lamemo_commands)
    endif()
    add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout} ENVIRONMENT "${test_environment}")
endforeach()

# By hand or for a script: a small model with random weights (make_model FOLDER), a page with every kind of
# section (make_page FOLDER), a checkpoint of PyTorch's kind (make_checkpoint FILE TRACE FORM).
foreach(name make_model make_page make_checkpoint)
    add_executable(${name} ${PROJECT_SOURCE_DIR}/tests/${name}_main.c)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE lamemo_support)
endforeach()

# The fuzzer of the whole program; tests/fuzz/cli_fuzz.sh runs it.  It holds the program, main() included.
file(GLOB fuzzer CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/cli/*.c)
add_executable(cli_fuzz ${fuzzer})
set_target_properties(cli_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_include_directories(cli_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(cli_fuzz PRIVATE _GNU_SOURCE LAM_VERSION="${PROJECT_VERSION}")
target_link_libraries(cli_fuzz PRIVATE lamemo_commands lamemo_warnings)
if(CMAKE_BUILD_TYPE STREQUAL Debug) # without sanitizers it would miss most
    add_test(NAME cli_fuzz COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/cli_fuzz_test.sh $<TARGET_FILE:cli_fuzz>)
    set_tests_properties(cli_fuzz PROPERTIES TIMEOUT ${test_timeout})
endif()

file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cli/*_test.sh)
foreach(file IN LISTS scripts)
    cmake_path(GET file STEM name)
    add_test(NAME cli_${name}_sh COMMAND sh ${file} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(cli_${name}_sh PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77
        ENVIRONMENT "${test_environment};LAMEMO=$<TARGET_FILE:lamemo_cli>")
endforeach()

# The sixth memory of docs/adding-a-memory.md: the program with one file and one line more.  Objects come before the
# library, whose own list is then not taken.
set(sink ${PROJECT_SOURCE_DIR}/examples/sink-memory)
add_executable(lamemo_sink src/cli/main.c src/mem/mem.c ${sink}/sink.c)
set_target_properties(lamemo_sink PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
target_compile_definitions(lamemo_sink PRIVATE _GNU_SOURCE LAM_VERSION="${PROJECT_VERSION}"
    LAM_MEMORIES="${sink}/memories.def")
target_link_libraries(lamemo_sink PRIVATE lamemo_commands lamemo_warnings)
add_test(NAME sink_memory COMMAND sh ${PROJECT_SOURCE_DIR}/tests/sink/sink_test.sh
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(sink_memory PROPERTIES TIMEOUT ${test_timeout}
    ENVIRONMENT "${test_environment};LAMEMO=$<TARGET_FILE:lamemo_sink>")

# A few kills here; scripts/test.sh full does a thousand.
add_test(NAME kill COMMAND sh ${PROJECT_SOURCE_DIR}/tests/kill/kill_test.sh 12 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(kill PROPERTIES TIMEOUT ${test_timeout}
    ENVIRONMENT "${test_environment};LAMEMO=$<TARGET_FILE:lamemo_cli>")

# The installed library, in the hands of somebody else.  Sanitizers would have to be theirs too.
if(CMAKE_BUILD_TYPE STREQUAL Release)
    foreach(name install hardening spdx offline)
        add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/tests/install/${name}_test.sh
            ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
        set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77
            ENVIRONMENT "${test_environment};CC=${CMAKE_C_COMPILER}")
    endforeach()
endif()

# Report pages in a browser.  Exit 77: node, npm or Chromium is not installed.
if(CMAKE_BUILD_TYPE STREQUAL Release)
    add_test(NAME browser COMMAND ${PROJECT_SOURCE_DIR}/tests/browser/browser_test.sh
        ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(browser PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
endif()

# The page of lamemo serve in a browser, likewise.
if(CMAKE_BUILD_TYPE STREQUAL Release AND MICROHTTPD_FOUND)
    add_test(NAME browser_serve COMMAND ${PROJECT_SOURCE_DIR}/tests/browser/serve_test.sh
        ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(browser_serve PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
endif()

# Byte pairs against other people's tokenizers.  Exit 77: node, npm or the packages cannot be had.
if(CMAKE_BUILD_TYPE STREQUAL Release)
    add_test(NAME tokenizers COMMAND ${PROJECT_SOURCE_DIR}/tests/tokenizers/tokenizers_test.sh
        ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(tokenizers PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
endif()

# Files that PyTorch wrote, and models that it runs, where Debian's Python has it; exit 77: it has not.
find_program(LAMEMO_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(LAMEMO_PYTHON)
    add_test(NAME torch COMMAND ${LAMEMO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/torch/torch_test.py
        $<TARGET_FILE:lamemo_cli> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME huggingface COMMAND ${LAMEMO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/torch/hf_test.py
        $<TARGET_FILE:lamemo_cli> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(torch huggingface PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77
        ENVIRONMENT "${test_environment}")
endif()

# The server, asked by Debian's Python as clients would.
if(LAMEMO_PYTHON AND MICROHTTPD_FOUND)
    foreach(name serve robust)
        add_test(NAME serve_${name} COMMAND ${LAMEMO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/serve/${name}_test.py
            ${PROJECT_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(serve_${name} PROPERTIES TIMEOUT ${test_timeout} ENVIRONMENT "${test_environment}")
    endforeach()
endif()

# The Python package, with Debian's Python; sanitizers would have to be in that Python, too.
if(LAMEMO_PYTHON AND CMAKE_BUILD_TYPE STREQUAL Release)
    add_test(NAME python COMMAND ${LAMEMO_PYTHON} ${PROJECT_SOURCE_DIR}/tests/python/python_test.py
        ${PROJECT_BINARY_DIR} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    add_test(NAME wheel COMMAND ${PROJECT_SOURCE_DIR}/tests/python/wheel_test.sh
        ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(python wheel PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77
        ENVIRONMENT "${test_environment}")
endif()

# The rules of the source tree itself.  Exit 77: the tool is not installed.
foreach(name check-includes check-includes-test check-memories check-memories-test check-devices check-devices-test check-terms check-terms-test check-locks check-format)
    add_test(NAME ${name} COMMAND ${PROJECT_SOURCE_DIR}/scripts/${name}.sh)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout} SKIP_RETURN_CODE 77)
endforeach()
