# What others need to use the library: the shared one, the header, a pkg-config file, a CMake package.
#
#   pkg-config --cflags --libs lamemo [--static]
#   find_package(lamemo)  -> lamemo::lamemo, the shared library, and lamemo::static
#
# The shared library holds what the public interface reaches and exports nothing else.  While the major
# version is 0 its soname changes with the minor one.
add_library(lamemo_shared SHARED $<TARGET_OBJECTS:lamemo_api>)
set_target_properties(lamemo_shared PROPERTIES
    OUTPUT_NAME lamemo EXPORT_NAME lamemo VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/lamemo.map)
target_include_directories(lamemo_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(lamemo_shared PRIVATE lamemo lamemo_hardening)
target_link_options(lamemo_shared PRIVATE
    LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/lamemo.map)

install(TARGETS lamemo)
install(TARGETS lamemo_shared EXPORT lamemo-targets)
install(FILES include/lamemo.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# What a program with the static library must link too: a name where the compiler finds the library itself, so that
# no path of this machine's compiler goes out (libgomp lies beside gcc, and libpthread is part of newer C libraries),
# else its path.  A target that stands for libraries is followed to them.
function(lamemo_link_names out target)
    set(names "")
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    foreach(library IN LISTS libraries)
        if(library MATCHES "LINK_ONLY|lamemo_warnings|NOTFOUND$")
            continue() # warnings, and what is compiled in already
        elseif(NOT TARGET ${library})
            list(APPEND names ${library})
            continue()
        endif()
        get_target_property(kind ${library} TYPE)
        if(NOT kind STREQUAL INTERFACE_LIBRARY)
            get_target_property(file ${library} IMPORTED_LOCATION)
            if(NOT file)
                get_target_property(file ${library} IMPORTED_LOCATION_RELEASE)
            endif()
            list(APPEND names ${file})
        endif()
        lamemo_link_names(more ${library})
        list(APPEND names ${more})
    endforeach()
    set(${out} ${names} PARENT_SCOPE)
endfunction()

lamemo_link_names(lamemo_static_libraries lamemo)
foreach(folder IN LISTS CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
    list(TRANSFORM lamemo_static_libraries REPLACE "^${folder}/lib([^/]+)\\.(so|a)$" "\\1")
endforeach()
list(REMOVE_DUPLICATES lamemo_static_libraries)
set(lamemo_private_libs "")
foreach(library IN LISTS lamemo_static_libraries)
    if(library MATCHES "^[-/]")
        string(APPEND lamemo_private_libs " ${library}")
    else()
        string(APPEND lamemo_private_libs " -l${library}")
    endif()
endforeach()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lamemo)
install(EXPORT lamemo-targets NAMESPACE lamemo:: DESTINATION ${package_dir})
configure_package_config_file(cmake/lamemo-config.cmake.in lamemo-config.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(lamemo-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lamemo-config.cmake
    ${PROJECT_BINARY_DIR}/lamemo-config-version.cmake DESTINATION ${package_dir})

# prefix is found from where the file lies, so that an installed tree can be moved.
string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
configure_file(cmake/lamemo.pc.in lamemo.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lamemo.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
