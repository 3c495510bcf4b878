# The kernels of src/ops/cuda where there is no GPU: compiled as C++ over tests/cuda_host, which runs them on the
# host, and put in the place of the back-end `cuda` of two programs, opcases and lamemo.  Needs no CUDA.
enable_language(CXX)
foreach(kind "" _DEBUG _RELEASE)
    set(CMAKE_CXX_FLAGS${kind} "${CMAKE_C_FLAGS${kind}}")
endforeach()
set(cuda_host ${PROJECT_SOURCE_DIR}/tests/cuda_host)
file(GLOB kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/cuda/*.cu)
list(FILTER kernels EXCLUDE REGEX "/tma\\.cu$") # asks the driver
set(rewritten "")
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda_host)
foreach(source IN LISTS kernels)
    cmake_path(GET source STEM name)
    set(file ${PROJECT_BINARY_DIR}/cuda_host/${name}.cc)
    add_custom_command(OUTPUT ${file} COMMAND sed -E -f ${cuda_host}/cuda.sed ${source} > ${file}
        DEPENDS ${source} ${cuda_host}/cuda.sed VERBATIM)
    list(APPEND rewritten ${file})
endforeach()

file(GLOB runtime CONFIGURE_DEPENDS ${cuda_host}/*.cc)
add_library(cuda_host OBJECT ${runtime} ${rewritten})
target_include_directories(cuda_host PRIVATE ${cuda_host} ${PROJECT_SOURCE_DIR}/src) # ptx.cuh is ours
target_compile_features(cuda_host PRIVATE cxx_std_17)
# What a product in the background reads and writes (hopper.cc) may not share its place on the stack with what comes later.
set(keep_registers $<IF:$<CXX_COMPILER_ID:Clang>,SHELL:-mllvm -no-stack-coloring,-fstack-reuse=none>)
# Vectors are read as other types; #pragma unroll; the first round of a loop may move what is not there yet; a
# longjmp to another stack is what fibers are made of.
target_compile_options(cuda_host PRIVATE -O1 -ffp-contract=off -UNDEBUG -U_FORTIFY_SOURCE -fno-strict-aliasing -Wall -Wextra
    -Wno-unknown-pragmas ${keep_registers} $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>
    $<$<BOOL:${LAMEMO_WERROR}>:-Werror>)

# Objects come before the library, whose own `cuda` is then not taken.
add_executable(opcases_cuda_host ${PROJECT_SOURCE_DIR}/tests/opcases_main.c ${opcases})
target_link_libraries(opcases_cuda_host PRIVATE cuda_host lamemo lamemo_warnings)
add_executable(lamemo_cuda_host ${PROJECT_SOURCE_DIR}/src/cli/main.c)
target_link_libraries(lamemo_cuda_host PRIVATE cuda_host lamemo_commands lamemo_warnings)
foreach(name opcases_cuda_host lamemo_cuda_host)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests LINKER_LANGUAGE CXX)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE LAM_VERSION="${PROJECT_VERSION}")
endforeach()

# Exact arithmetic: the known answers, and its operations beside those of ref.
foreach(name exact:infer/exact_test.c exact_ops:ops/exact_test.c)
    string(REGEX REPLACE "^(.*):(.*)$" "\\1;\\2" name ${name})
    list(GET name 0 test)
    list(GET name 1 file)
    add_executable(${test}_cuda_host ${PROJECT_SOURCE_DIR}/src/${file})
    target_link_libraries(${test}_cuda_host PRIVATE cuda_host lamemo_support)
    set_target_properties(${test}_cuda_host PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests LINKER_LANGUAGE CXX)
    add_test(NAME cuda_host_${test} COMMAND ${test}_cuda_host WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(cuda_host_${test} PROPERTIES TIMEOUT ${test_timeout}
        ENVIRONMENT "${test_environment};LAM_TEST_DEVICE=cuda")
endforeach()

# Left out is what takes long: in float32 the attention, whose plain loops run in bf16 too, where no tiles fit; under
# a sanitizer all of it but what models need.
set(attention -attn_fwd -attn_bwd -attn_next -attn_stats -attn_tiles)
set(long -gemm_inner -attn_tiles) # in float32, or in cuda_host_hopper
if(NOT CMAKE_BUILD_TYPE STREQUAL Release)
    list(APPEND long ${attention})
endif()
add_test(NAME cuda_host_bf16 COMMAND opcases_cuda_host cuda ${long})
add_test(NAME cuda_host_float32 COMMAND opcases_cuda_host cuda ${attention})
if(CMAKE_BUILD_TYPE STREQUAL Release)
    set(hopper attn_tiles)
endif()
add_test(NAME cuda_host_hopper COMMAND opcases_cuda_host cuda ${hopper} gemm_inner)
add_test(NAME cuda_host_models COMMAND sh ${cuda_host}/models_test.sh)
set_tests_properties(cuda_host_bf16 cuda_host_float32 cuda_host_hopper cuda_host_models PROPERTIES
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} TIMEOUT ${test_timeout}
    ENVIRONMENT "${test_environment};LAM_OPCASES_FULL_PREC=0;LAM_OPCASES_LARGE=0;LAMEMO=$<TARGET_FILE:lamemo_cuda_host>")
set_property(TEST cuda_host_hopper APPEND PROPERTY ENVIRONMENT CUDA_HOST_HOPPER=1)
set_property(TEST cuda_host_float32 APPEND PROPERTY ENVIRONMENT LAM_OPCASES_FULL_PREC=1)
# The longest begin first where tests run side by side.
set_tests_properties(cuda_host_bf16 tests_naive16_test PROPERTIES COST 100)

# Several processes with such a GPU each, and a library in the place of NCCL's.
add_library(nccl_host SHARED ${PROJECT_SOURCE_DIR}/tests/nccl_host/nccl.c)
target_compile_definitions(nccl_host PRIVATE _GNU_SOURCE)
target_link_libraries(nccl_host PRIVATE lamemo_warnings)
set_target_properties(nccl_host PROPERTIES OUTPUT_NAME nccl SOVERSION 2 C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/nccl_host)
add_test(NAME nccl_host_ranks COMMAND sh ${PROJECT_SOURCE_DIR}/tests/nccl_host/ranks_test.sh)
set_tests_properties(nccl_host_ranks PROPERTIES WORKING_DIRECTORY ${PROJECT_SOURCE_DIR} SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "${test_environment};LAMEMO=$<TARGET_FILE:lamemo_cuda_host>;NCCL_HOST=${PROJECT_BINARY_DIR}/tests/nccl_host;LAMEMO_MPI_MODULE=${PROJECT_BINARY_DIR}/lamemo-mpi.so")
