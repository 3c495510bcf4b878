/* md5.c -- RFC 1321, section 3.  Not for security: a file that wants to look like enwik8 can. */
#include "data/md5.h"

#include <stdio.h>
#include <string.h>

/* floor(2^32 abs(sin(i + 1))) */
static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
static const unsigned char turns[4][4] = {
    {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

static uint32_t word_at(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

typedef struct round_state {
    uint32_t a, b, c, d;
} round_state;

/* One of the 64 operations: f is the round's function of b, c, d; then the four words move on. */
static inline void operate(round_state *r, uint32_t f, uint32_t word, int i)
{
    const uint32_t sum = r->a + f + word + sines[i];
    const int turn = turns[i / 16][i % 4];
    r->a = r->d;
    r->d = r->c;
    r->c = r->b;
    r->b += sum << turn | sum >> (32 - turn);
}

static void digest_block(uint32_t state[4], const unsigned char *block)
{
    uint32_t x[16];
    round_state r = {state[0], state[1], state[2], state[3]};
    for (int i = 0; i < 16; i++)
        x[i] = word_at(block + 4 * i);
    for (int i = 0; i < 16; i++)
        operate(&r, (r.b & r.c) | (~r.b & r.d), x[i], i);
    for (int i = 16; i < 32; i++)
        operate(&r, (r.d & r.b) | (~r.d & r.c), x[(5 * i + 1) % 16], i);
    for (int i = 32; i < 48; i++)
        operate(&r, r.b ^ r.c ^ r.d, x[(3 * i + 5) % 16], i);
    for (int i = 48; i < 64; i++)
        operate(&r, r.c ^ (r.b | ~r.d), x[7 * i % 16], i);
    state[0] += r.a;
    state[1] += r.b;
    state[2] += r.c;
    state[3] += r.d;
}

void lam_md5_start(lam_md5 *m)
{
    *m = (lam_md5){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476}};
}

void lam_md5_add(lam_md5 *m, const void *data, size_t size)
{
    const unsigned char *p = data;
    while (size > 0) {
        const size_t used = m->size % 64, room = 64 - used, n = size < room ? size : room;
        if (n == 64) {
            digest_block(m->state, p);
        } else {
            memcpy(m->block + used, p, n);
            if (n == room)
                digest_block(m->state, m->block);
        }
        m->size += n;
        p += n;
        size -= n;
    }
}

void lam_md5_finish(lam_md5 *m, char hex[33])
{
    static const unsigned char padding[64] = {0x80};
    unsigned char bits[8];
    for (int i = 0; i < 8; i++)
        bits[i] = (unsigned char)(m->size << 3 >> 8 * i);
    lam_md5_add(m, padding, (119 - m->size % 64) % 64 + 1);
    lam_md5_add(m, bits, sizeof bits);
    for (int i = 0; i < 16; i++)
        snprintf(hex + 2 * i, 3, "%02x", m->state[i / 4] >> 8 * (i % 4) & 0xff);
}
