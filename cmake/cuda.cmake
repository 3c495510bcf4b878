# The CUDA back-end, src/ops/cuda/*.cu, where nvcc is found.  Defines lamemo_cuda_objects (a list) and
# LAMEMO_CUDA_FOUND (words for the log).
#
# nvcc is called by custom commands: with CMake's own CUDA language every program that links the
# library would be linked by nvcc, and configuring would take as long as compiling.  The runtime is
# linked statically and cuBLASLt is opened at run time, so that one program serves machines with and
# without a GPU.
set(LAMEMO_CUDA AUTO CACHE STRING "CUDA back-end: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE LAMEMO_CUDA PROPERTY STRINGS AUTO ON OFF)
set(LAMEMO_CUDA_ARCHS "80;90" CACHE STRING "Compute capabilities to compile for, e.g. 80;90")

set(lamemo_cuda_objects "")
set(LAMEMO_CUDA_FOUND "no CUDA")
if(NOT LAMEMO_CUDA STREQUAL "OFF")
    find_program(LAMEMO_NVCC nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES bin)
    if(LAMEMO_NVCC)
        cmake_path(GET LAMEMO_NVCC PARENT_PATH cuda_root)
        cmake_path(GET cuda_root PARENT_PATH cuda_root)
        find_library(LAMEMO_CUDART cudart_static PATHS ${cuda_root} PATH_SUFFIXES lib64 lib
            targets/x86_64-linux/lib targets/sbsa-linux/lib NO_DEFAULT_PATH)
        find_path(LAMEMO_CUBLAS_INCLUDE cublasLt.h PATHS ${cuda_root} PATH_SUFFIXES include
            targets/x86_64-linux/include targets/sbsa-linux/include)
    endif()
    if(LAMEMO_NVCC AND LAMEMO_CUDART AND LAMEMO_CUBLAS_INCLUDE)
        string(REPLACE ";" " " LAMEMO_CUDA_FOUND "CUDA for ${LAMEMO_CUDA_ARCHS}")
    elseif(LAMEMO_CUDA STREQUAL "ON")
        message(FATAL_ERROR "LAMEMO_CUDA=ON: nvcc, libcudart_static.a or cublasLt.h was not found")
    endif()
endif()

if(NOT LAMEMO_CUDA_FOUND STREQUAL "no CUDA")
    # Machine code for each, and PTX of the last for newer cards.
    set(cuda_flags -std=c++17 -O3 -I${PROJECT_SOURCE_DIR}/src -I${LAMEMO_CUBLAS_INCLUDE} --threads 0
        -Xcompiler=-Wall,-Wextra,-fPIC,-fvisibility=hidden,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics)
    foreach(flag IN LISTS lamemo_host_flags)
        list(APPEND cuda_flags -Xcompiler=${flag})
    endforeach()
    if(LAMEMO_WERROR)
        list(APPEND cuda_flags -Werror all-warnings)
    endif()
    set(cuda_targets "")
    foreach(arch IN LISTS LAMEMO_CUDA_ARCHS)
        list(APPEND cuda_targets -gencode arch=compute_${arch},code=sm_${arch})
    endforeach()
    list(GET LAMEMO_CUDA_ARCHS -1 arch)
    list(APPEND cuda_targets -gencode arch=compute_${arch},code=compute_${arch})
    # Files of Hopper's own instructions (wgmma), which sm_90 alone does not name; attn.cu calls
    # them on such a card only.
    set(hopper_targets -gencode arch=compute_90a,code=sm_90a)

    file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/ops/cuda/*.cu)
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/cuda)
    foreach(source IN LISTS cuda_sources)
        cmake_path(GET source STEM name)
        set(object ${PROJECT_BINARY_DIR}/cuda/${name}.o)
        set(targets ${cuda_targets})
        if(name MATCHES "_sm90")
            set(targets ${hopper_targets})
        endif()
        add_custom_command(OUTPUT ${object}
            COMMAND ${LAMEMO_NVCC} ${cuda_flags} ${targets} -MD -MF ${object}.d -MT ${object}
                    -c ${source} -o ${object}
            DEPENDS ${source} DEPFILE ${object}.d
            COMMENT "nvcc ops/cuda/${name}.cu" VERBATIM)
        list(APPEND lamemo_cuda_objects ${object})
    endforeach()
endif()
