# The warnings every file of ours is compiled with; gcc 12 and clang 14 both stay silent.
add_library(lamemo_warnings INTERFACE)
target_compile_options(lamemo_warnings INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    $<$<BOOL:${LAMEMO_WERROR}>:-Werror>)
