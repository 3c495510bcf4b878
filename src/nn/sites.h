/* sites.h -- the places where dropout is applied; place, step and seed determine a mask. */
#ifndef LAM_NN_SITES_H
#define LAM_NN_SITES_H

#include <stdint.h>

typedef enum lam_site {
    LAM_SITE_EMBED,
    LAM_SITE_PAST,   /* positional rows of the causal attention, once a step for all layers */
    LAM_SITE_AHEAD,  /* positional rows of the look-ahead attention */
    LAM_SITE_OUTPUT, /* the last hidden rows before the softmax */
    LAM_SITE_ATTN,   /* per layer from here on: probabilities of the causal attention */
    LAM_SITE_ATTN_AHEAD,
    LAM_SITE_ATTN_OUT, /* after W_o */
    LAM_SITE_INNER,    /* after the ReLU */
    LAM_SITE_FFN_OUT,  /* after W_2 */
    LAM_SITES
} lam_site;

static inline uint32_t lam_site_of(lam_site site, int layer)
{
    return (uint32_t)layer * LAM_SITES + (uint32_t)site;
}

#endif
