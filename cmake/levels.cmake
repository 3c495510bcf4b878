# The instruction sets that src/ops/cpu is compiled for.
#
#   LAMEMO_ARCH=portable  x86-64-v2, -v3 and -v4 (elsewhere: the compiler's base), one of which is chosen when the program
#                         starts (src/ops/cpu_levels.c)
#   LAMEMO_ARCH=native    or another -march: that one alone
#
# Each level is all of src/ops/cpu linked into one object that exports its table, lam_ops_cpu_LEVEL, and nothing else: so the
# same names are no conflict, and no kernel can call one of another level.
set(LAMEMO_ARCH portable CACHE STRING "Instruction sets of src/ops/cpu: portable (chosen at start), native, or a -march")
find_package(OpenMP REQUIRED)

set(lamemo_levels ${LAMEMO_ARCH})
if(LAMEMO_ARCH STREQUAL portable AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    set(lamemo_levels x86-64-v2 x86-64-v3 x86-64-v4)
elseif(LAMEMO_ARCH STREQUAL portable)
    set(lamemo_levels ${CMAKE_SYSTEM_PROCESSOR})
endif()

# Flags of a level, as a target.  A fused multiply-add rounds once instead of twice, nothing more.
function(lamemo_level_flags target level)
    add_library(${target} INTERFACE)
    target_compile_options(${target} INTERFACE
        -O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math -Wno-psabi
        $<$<C_COMPILER_ID:Clang>:-Wno-pass-failed>) # said of `omp simd` loops under a sanitizer
    if(NOT level STREQUAL CMAKE_SYSTEM_PROCESSOR)
        target_compile_options(${target} INTERFACE -march=${level})
    endif()
    # In the compiler's generic order int8 decoding takes 3 % longer than with -march=native on a Zen 5.
    if(level STREQUAL x86-64-v4)
        target_compile_options(${target} INTERFACE -mtune=znver3)
    endif()
endfunction()

set(lamemo_level_objects "")
set(lines "")
foreach(level IN LISTS lamemo_levels)
    string(MAKE_C_IDENTIFIER ${level} id)
    set(table lam_ops_cpu_${id})
    string(APPEND lines "LEVEL(${table}, \"${level}\")\n")
    lamemo_level_flags(lamemo_flags_${id} ${level})
    add_library(lamemo_cpu_${id} OBJECT ${cpu_sources})
    target_include_directories(lamemo_cpu_${id} PRIVATE src)
    target_compile_definitions(lamemo_cpu_${id} PRIVATE _GNU_SOURCE LAM_CPU_TABLE=${table} LAM_CPU_LEVEL="${level}")
    target_link_libraries(lamemo_cpu_${id} PRIVATE
        lamemo_warnings lamemo_hardening lamemo_flags_${id} lamemo_gemm OpenMP::OpenMP_C)
    set(whole ${PROJECT_BINARY_DIR}/cpu_${id})
    add_custom_command(OUTPUT ${whole}.o
        COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${whole}.part $<TARGET_OBJECTS:lamemo_cpu_${id}>
        COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${table} ${whole}.part ${whole}.o
        COMMAND ${CMAKE_COMMAND} -E rm ${whole}.part
        DEPENDS lamemo_cpu_${id} $<TARGET_OBJECTS:lamemo_cpu_${id}>
        COMMENT "Joining src/ops/cpu for ${level}" COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND lamemo_level_objects ${whole}.o)
endforeach()
set_source_files_properties(${lamemo_level_objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/generated/ops/cpu_levels.inc CONTENT "${lines}" @ONLY)

# For the tests of src/ops/cpu itself: the highest level that this machine can run, else the lowest.
list(GET lamemo_levels 0 lamemo_test_level)
if(NOT CMAKE_CROSSCOMPILING)
    include(CheckCSourceRuns)
    foreach(level IN LISTS lamemo_levels)
        set(needs 1)
        if(level STREQUAL x86-64-v3)
            set(needs "__builtin_cpu_supports(\"avx2\")")
        elseif(level STREQUAL x86-64-v4)
            set(needs "__builtin_cpu_supports(\"avx512bw\")")
        endif()
        string(MAKE_C_IDENTIFIER ${level} id)
        check_c_source_runs("int main(void) { return !(${needs}); }" LAMEMO_RUNS_${id})
        if(LAMEMO_RUNS_${id})
            set(lamemo_test_level ${level})
        endif()
    endforeach()
endif()
string(MAKE_C_IDENTIFIER ${lamemo_test_level} lamemo_test_level)
