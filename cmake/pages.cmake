# Manual pages, one for each command, and completion for bash, zsh and fish: printed by the program from its option tables
# when it is built, so that none can be out of date.  docs/lamemo.1, the overview, is part of the tree.
set(pages ${PROJECT_BINARY_DIR}/pages)
file(GLOB commands CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/cmd_*.c)
set(made "")
foreach(file IN LISTS commands)
    cmake_path(GET file STEM name)
    string(REPLACE "cmd_" "" name ${name})
    add_custom_command(OUTPUT ${pages}/lamemo-${name}.1
        COMMAND lamemo_cli help --man ${name} > ${pages}/lamemo-${name}.1 DEPENDS lamemo_cli VERBATIM)
    list(APPEND made ${pages}/lamemo-${name}.1)
endforeach()
install(FILES docs/lamemo.1 ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)

function(lamemo_completion shell file folder)
    add_custom_command(OUTPUT ${pages}/${file}
        COMMAND lamemo_cli help --completion ${shell} > ${pages}/${file} DEPENDS lamemo_cli VERBATIM)
    install(FILES ${pages}/${file} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} ${ARGN})
    set(made ${made} ${pages}/${file} PARENT_SCOPE)
endfunction()
file(MAKE_DIRECTORY ${pages})
lamemo_completion(bash lamemo.bash bash-completion/completions RENAME lamemo)
lamemo_completion(zsh _lamemo zsh/vendor-completions)
lamemo_completion(fish lamemo.fish fish/vendor_completions.d)
add_custom_target(pages ALL DEPENDS ${made})
