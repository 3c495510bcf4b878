# Which library multiplies matrices in src/ops/cpu: oneDNN (faster, measured) or any CBLAS.
# Gives the target lamemo_gemm, which defines LAM_HAVE_ONEDNN or LAM_HAVE_CBLAS.
add_library(lamemo_gemm INTERFACE)
set(LAMEMO_GEMM_FOUND "")

if(LAMEMO_GEMM MATCHES "^(auto|onednn)$")
    find_package(dnnl CONFIG QUIET)
    if(TARGET DNNL::dnnl)
        target_link_libraries(lamemo_gemm INTERFACE DNNL::dnnl)
        target_compile_definitions(lamemo_gemm INTERFACE LAM_HAVE_ONEDNN)
        set(LAMEMO_GEMM_FOUND "oneDNN ${dnnl_VERSION}")
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
