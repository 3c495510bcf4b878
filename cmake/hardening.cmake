# Hardening of what is shipped: the program, the shared library and the objects in the static library.
# Gives the target lamemo_hardening, and lamemo_host_flags for what nvcc compiles.  tests/install/hardening_test.sh looks for its traces in the built files.
#
# The flags stop a memory error from becoming more than a crash: a smashed stack or an overrun of a libc call ends the
# program, addresses are random, and tables of function pointers are read-only once the program runs.  Speed is the
# same with and without them (docs/security.md).  Under a sanitizer they are left out: it sees more, and
# _FORTIFY_SOURCE would hide calls from it.
add_library(lamemo_hardening INTERFACE)
set(lamemo_host_flags "")
string(TOUPPER "${CMAKE_BUILD_TYPE}" kind)
set(flags "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${kind}}")

if(NOT flags MATCHES "-fsanitize" AND flags MATCHES "-O[1-3s]") # _FORTIFY_SOURCE needs an optimiser
    include(CheckCCompilerFlag)
    include(CheckLinkerFlag)
    include(CheckPIESupported)
    check_pie_supported(LANGUAGES C)
    set(wanted -fstack-protector-strong -fcf-protection -mbranch-protection=standard)
    # clang 14 loses the doubles of a variadic call when it probes a large frame: messages had 0 for every number.
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        list(APPEND wanted -fstack-clash-protection)
    endif()
    foreach(flag IN LISTS wanted)
        string(MAKE_C_IDENTIFIER "LAMEMO_HAS${flag}" has)
        check_c_compiler_flag("-Werror ${flag}" ${has})
        if(${has})
            list(APPEND lamemo_host_flags ${flag})
        endif()
    endforeach()
    # Asserts and debugging information name files from the root of the tree, not from the disk of whoever built them.
    # Where both match the last one counts.
    list(APPEND lamemo_host_flags
        -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
    # A C library that knows only level 2 takes 3 for 2.
    target_compile_options(lamemo_hardening INTERFACE
        ${lamemo_host_flags} -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)

    check_linker_flag(C LINKER:-z,relro,-z,now,-z,noexecstack LAMEMO_HAS_RELRO)
    if(LAMEMO_HAS_RELRO)
        target_link_options(lamemo_hardening INTERFACE LINKER:-z,relro,-z,now,-z,noexecstack)
    endif()
endif()
