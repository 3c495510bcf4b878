/* cuda_host/block.h -- the threads of the block that runs: block.cc lets them take turns, hopper.cc does
 * what goes on in the background meanwhile. */
#ifndef LAM_CUDA_HOST_BLOCK_H
#define LAM_CUDA_HOST_BLOCK_H

#include "cuda_runtime.h"

#include <setjmp.h>
#include <ucontext.h>

#include <string>

namespace emu
{

enum { MOST_THREADS = 1024, WARP = 32 };

/* What a thread waits for. */
enum state {
    READY,
    AT_BARRIER, /* number `what`, of `much` threads */
    WITH_LANES,
    DONE,
    FOR_PHASE,    /* `much` of the mbarrier at byte `what` */
    FOR_PRODUCTS, /* until `much` groups of its warp's are done */
    FOR_STORES,   /* until its bulk stores have been read (`what` 0) or have arrived (1) */
    FOR_REGISTERS
};

struct copy {
    uint32_t to;
    const void *from;
    int bytes;
    bool valid;
};

struct context {
    ucontext_t full;
    jmp_buf quick;
    bool begun;
};

struct fiber {
    context at; /* has a stack from its first thread on */
    dim3 index;
    state now;
    int what, much;   /* as `now` says */
    const char *file; /* where it waits */
    int line;
    bool chained;                          /* it has called lam_chain() */
    std::vector<std::vector<copy>> copies; /* cp.async: groups, the newest one open */
};

extern fiber fibers[MOST_THREADS];
extern int self, threads; /* the thread that runs; how many the block has */
extern size_t dynamic_bytes;

/* Leaves this thread until what it waits for has come. */
void wait(state now, int what, int much, const char *file, int line);

/* `bytes` of the dynamic shared memory, which must be there. */
unsigned char *place_of(uint32_t address, int bytes);

/* A number below n, another one each time: the same in every run of the program. */
unsigned draw(unsigned n);

/* ---- hopper.cc ---- */

/* A block begins; it ends, and nothing may be left of what it began. */
void begin_background(void);
void end_background(void);

/* Has what the thread waits for come?  Only for the states that this file does not know. */
bool has_come(const fiber &f);

/* One thing that is under way in the background happens, needed: that somebody waits for; false: there is none. */
bool background_happens(bool needed);

/* What such a thread waits for, in words. */
std::string told(const fiber &f);

} // namespace emu

#endif
