# lamemo-mpi.so, through which the program speaks to MPI: loaded at run time, and only when a launcher has started
# several processes.  It belongs to the MPI it was compiled with; for another one, configure with its
# -DMPI_C_COMPILER=... and build the target lamemo_mpi.
option(LAMEMO_MPI "Build the module for MPI, where mpi.h is found" ON)
set(LAMEMO_MPI_FOUND "no MPI")
if(LAMEMO_MPI)
    find_package(MPI QUIET COMPONENTS C)
endif()
if(LAMEMO_MPI AND MPI_C_FOUND)
    set(LAMEMO_MPI_FOUND "MPI ${MPI_C_VERSION}")
    add_library(lamemo_mpi MODULE src/comm/mpi_module.c)
    set_target_properties(lamemo_mpi PROPERTIES PREFIX "" OUTPUT_NAME lamemo-mpi)
    target_include_directories(lamemo_mpi PRIVATE src)
    target_link_libraries(lamemo_mpi PRIVATE MPI::MPI_C lamemo_warnings lamemo_hardening)
    add_dependencies(lamemo_cli lamemo_mpi)
    install(TARGETS lamemo_mpi DESTINATION ${CMAKE_INSTALL_LIBDIR}/lamemo)
endif()
