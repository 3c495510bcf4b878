# Writes files as C arrays: cmake -DOUT=assets.c -DHEADER=draw/assets.h "-DFILES=name=path|path;..." -P embed.cmake
# The header declares them.
# Several paths are joined; none gives an asset of size 0: "not in this build".
set(text "/* made by cmake/embed.cmake */\n#include \"${HEADER}\"\n")
foreach(pair IN LISTS FILES)
    string(REGEX MATCH "^([a-z_]+)=(.*)$" found "${pair}")
    set(name ${CMAKE_MATCH_1})
    string(REPLACE "|" ";" paths "${CMAKE_MATCH_2}")
    set(bytes "")
    foreach(path IN LISTS paths)
        file(READ "${path}" more HEX)
        string(APPEND bytes "${more}")
    endforeach()
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND text "static const unsigned char ${name}[] = {\n${bytes}0};\n"
                       "const lam_asset lam_asset_${name} = {(const char *)${name}, sizeof ${name} - 1};\n")
endforeach()
file(WRITE "${OUT}" "${text}")
