# What a report page needs to stand alone, as C arrays in ${PROJECT_BINARY_DIR}/assets.c: our style sheet and
# script, and uPlot from npm.  Without npm, or without a network, the page draws plain SVG.
# Defines lamemo_assets (the C files) and LAMEMO_UPLOT_FOUND (words for the log).
set(LAMEMO_UPLOT AUTO CACHE STRING "uPlot in report pages: AUTO (where npm can install it), ON or OFF")
set_property(CACHE LAMEMO_UPLOT PROPERTY STRINGS AUTO ON OFF)
set(web ${PROJECT_SOURCE_DIR}/src/draw/web)
set(npm ${PROJECT_BINARY_DIR}/npm)
set(uplot_js "")
set(uplot_css "")
set(LAMEMO_UPLOT_FOUND "no uPlot")

if(NOT LAMEMO_UPLOT STREQUAL "OFF")
    # The lock file says which version, with its hash; npm ci installs that or nothing.
    file(COPY ${web}/package.json ${web}/package-lock.json DESTINATION ${npm})
    set(uplot ${npm}/node_modules/uplot)
    if(NOT EXISTS ${uplot}/dist/uPlot.iife.min.js OR ${web}/package-lock.json IS_NEWER_THAN ${uplot}/package.json)
        find_program(LAMEMO_NPM npm)
        if(LAMEMO_NPM)
            execute_process(COMMAND ${LAMEMO_NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
                    --fetch-retries=0 --fetch-timeout=20000
                WORKING_DIRECTORY ${npm} TIMEOUT 120 OUTPUT_QUIET ERROR_VARIABLE npm_error RESULT_VARIABLE npm_failed)
            if(NOT npm_failed)
                file(TOUCH_NOCREATE ${uplot}/package.json)
            endif()
        endif()
    endif()
    if(EXISTS ${uplot}/dist/uPlot.iife.min.js)
        set(uplot_js ${uplot}/dist/uPlot.iife.min.js)
        set(uplot_css ${uplot}/dist/uPlot.min.css)
        file(READ ${uplot}/package.json uplot_package)
        string(JSON uplot_version GET "${uplot_package}" version)
        set(LAMEMO_UPLOT_FOUND "uPlot ${uplot_version}")
    elseif(LAMEMO_UPLOT STREQUAL "ON")
        message(FATAL_ERROR "LAMEMO_UPLOT=ON: npm could not install uplot: ${npm_error}")
    else()
        message(STATUS "uPlot: npm is not installed or cannot reach its registry; report pages draw plain SVG")
    endif()
endif()

set(page_js base.js probe.js lines.js cells.js tokens.js data.js page.js)
list(TRANSFORM page_js PREPEND ${web}/)
list(JOIN page_js "|" page_js_joined)
# The page of lamemo serve; scripts are joined in this order.
set(serve_web ${PROJECT_SOURCE_DIR}/src/serve/web)
file(GLOB serve_html CONFIGURE_DEPENDS ${serve_web}/index.html)
set(serve_css "")
set(serve_js "")
if(serve_html)
    set(serve_css ${serve_web}/style.css)
    set(serve_js common.js client.js text.js heat.js curves.js memory.js branch.js app.js)
    list(TRANSFORM serve_js PREPEND ${serve_web}/)
endif()
list(JOIN serve_js "|" serve_js_joined)
set(lamemo_assets ${PROJECT_BINARY_DIR}/assets.c)
add_custom_command(OUTPUT ${lamemo_assets}
    COMMAND ${CMAKE_COMMAND} -DOUT=${lamemo_assets} -DHEADER=draw/assets.h
            "-DFILES=page_css=${web}/page.css;page_js=${page_js_joined};uplot_css=${uplot_css};uplot_js=${uplot_js};serve_html=${serve_html};serve_css=${serve_css};serve_js=${serve_js_joined}"
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${web}/page.css ${page_js} ${uplot_css} ${uplot_js}
            ${serve_html} ${serve_css} ${serve_js} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the report page" VERBATIM)

# The PyTorch module that `lamemo export --hf` writes.
set(hf_module ${PROJECT_SOURCE_DIR}/python/hf/modeling_lamemo.py)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/hf_module.c
    COMMAND ${CMAKE_COMMAND} -DOUT=${PROJECT_BINARY_DIR}/hf_module.c -DHEADER=convert/huggingface.h
            -DFILES=modeling_lamemo=${hf_module} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${hf_module} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding the PyTorch module" VERBATIM)
list(APPEND lamemo_assets ${PROJECT_BINARY_DIR}/hf_module.c)
