# Writes files as C arrays: cmake -DOUT=assets.c -DFILES=name=path;... -P embed.cmake
# A path that is empty gives an asset of size 0: "not in this build".
set(text "/* made by cmake/embed.cmake */\n#include \"report/assets.h\"\n")
foreach(pair IN LISTS FILES)
    string(REGEX MATCH "^([a-z_]+)=(.*)$" found "${pair}")
    set(name ${CMAKE_MATCH_1})
    set(path "${CMAKE_MATCH_2}")
    set(bytes "")
    if(path)
        file(READ "${path}" bytes HEX)
        string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
        string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    endif()
    string(APPEND text "static const unsigned char ${name}[] = {\n${bytes}0};\n"
                       "const lam_asset lam_asset_${name} = {(const char *)${name}, sizeof ${name} - 1};\n")
endforeach()
file(WRITE "${OUT}" "${text}")
