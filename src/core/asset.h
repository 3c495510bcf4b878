/* asset.h -- a file that the build puts into the program (cmake/embed.cmake). */
#ifndef LAM_CORE_ASSET_H
#define LAM_CORE_ASSET_H

#include <stddef.h>

typedef struct lam_asset {
    const char *data; /* ends with a NUL that is not counted */
    size_t size;      /* 0: not in this build */
} lam_asset;

#endif
