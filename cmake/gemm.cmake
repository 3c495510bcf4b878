# Which library multiplies matrices in src/ops/cpu: oneDNN (faster, measured) or any CBLAS.
# Gives the target lamemo_gemm, which defines LAM_HAVE_ONEDNN or LAM_HAVE_CBLAS.
add_library(lamemo_gemm INTERFACE)
set(LAMEMO_GEMM_FOUND "")

# oneDNN without its own CMake package: that one insists on OpenCL's headers, which we do not use.
if(LAMEMO_GEMM MATCHES "^(auto|onednn)$")
    find_path(DNNL_INCLUDE_DIR dnnl.h)
    find_library(DNNL_LIBRARY dnnl)
    mark_as_advanced(DNNL_INCLUDE_DIR DNNL_LIBRARY)
    if(DNNL_INCLUDE_DIR AND DNNL_LIBRARY)
        target_include_directories(lamemo_gemm SYSTEM INTERFACE ${DNNL_INCLUDE_DIR})
        target_link_libraries(lamemo_gemm INTERFACE ${DNNL_LIBRARY})
        target_compile_definitions(lamemo_gemm INTERFACE LAM_HAVE_ONEDNN)
        set(LAMEMO_GEMM_FOUND oneDNN)
    endif()
endif()

if(NOT LAMEMO_GEMM_FOUND AND LAMEMO_GEMM MATCHES "^(auto|cblas)$")
    find_package(PkgConfig REQUIRED)
    foreach(module openblas cblas blas)
        pkg_check_modules(CBLAS QUIET IMPORTED_TARGET ${module})
        if(CBLAS_FOUND)
            target_link_libraries(lamemo_gemm INTERFACE PkgConfig::CBLAS)
            target_compile_definitions(lamemo_gemm INTERFACE LAM_HAVE_CBLAS)
            set(LAMEMO_GEMM_FOUND "${module} ${CBLAS_VERSION}")
            break()
        endif()
    endforeach()
endif()

if(NOT LAMEMO_GEMM_FOUND)
    message(FATAL_ERROR "LAMEMO_GEMM=${LAMEMO_GEMM}: not found; install libdnnl-dev (oneDNN) or "
                        "libopenblas-openmp-dev (CBLAS)")
endif()
