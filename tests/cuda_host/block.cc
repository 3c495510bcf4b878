/* cuda_host/block.cc -- blocks one after the other, their threads as fibers that take turns.
 *
 * A thread runs until it has to wait for others; then the next one goes on.  Warps take turns too, each as
 * far as it comes.  When nobody can go on, either the barriers where all have come that they wait for open, or
 * something in the background happens (hopper.cc); if there is nothing the threads have gone ways that never
 * meet: what each waits for is printed, and the program ends.
 *
 * Every other launch begins with the last block, warp and lane, and launches differ in who goes on first, and in
 * whether things in the background happen as late as they may or now and then: what depends on an order that
 * nothing promises gives different results then. */
#include "block.h"
#include "ops/cuda/ptx.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <map>
#include <string>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
enum { STACK_BYTES = 256 << 10 };
#else
enum { STACK_BYTES = 64 << 10 };
#endif
enum { BARRIERS = 16 };

dim3 threadIdx, blockIdx, blockDim, gridDim;

/* ---- fibers -------------------------------------------------------------------------------------- */

using emu::AT_BARRIER;
using emu::copy;
using emu::DONE;
using emu::draw;
using emu::fiber;
using emu::fibers;
using emu::MOST_THREADS;
using emu::place_of;
using emu::READY;
using emu::self;
using emu::threads;
using emu::WARP;
using emu::WITH_LANES;

/* Lanes that meet, under the number of the lowest. */
struct meeting {
    unsigned mask, here;
    void (*meet)(unsigned, void **);
    void *given[WARP];
};

/* How a launch goes on. */
struct manners {
    bool backwards; /* the last block, warp and lane first */
    bool unfair;    /* a warp runs again before those behind it get their turn */
    bool lively; /* things in the background happen now and then, not only when nobody can go on */
    bool barriers; /* when nobody can go on: first the barriers open, then things happen */
    bool chained;  /* launched so that it may begin early */
};

fiber emu::fibers[MOST_THREADS];
int emu::self, emu::threads;
static meeting meetings[MOST_THREADS];
static emu::context scheduler;
static const std::function<void()> *work;
static manners mode;

/* Leaves `from`, goes on in `to`.  swapcontext asks the kernel about signals each time, longjmp does not; but
 * ASan understands only the former. */
static void change(emu::context *from, emu::context *to)
{
#ifdef __SANITIZE_ADDRESS__
    swapcontext(&from->full, &to->full);
#else
    if (_setjmp(from->quick) != 0)
        return;
    if (to->begun)
        _longjmp(to->quick, 1);
    to->begun = true;
    setcontext(&to->full);
#endif
}

void emu::wait(state now, int what, int much, const char *file, int line)
{
    fiber *f = &fibers[self];
    f->now = now;
    f->what = what;
    f->much = much;
    f->file = file;
    f->line = line;
    change(&f->at, &scheduler);
}

/* A fiber serves one thread of a block after the other. */
static void live(void)
{
    for (;;) {
        (*work)();
        if (mode.chained && !fibers[self].chained)
            emu::die("a thread that may begin early has not waited for the kernel in front");
        emu::wait(DONE, 0, 0, "", 0);
    }
}

/* Lets thread t run until it waits. */
static void go_on(int t)
{
    fiber *f = &fibers[t];
    stack_t *stack = &f->at.full.uc_stack;
    if (!stack->ss_sp) {
        getcontext(&f->at.full);
        stack->ss_size = STACK_BYTES;
        stack->ss_sp = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack->ss_sp == MAP_FAILED)
            emu::die("no memory for a stack");
        makecontext(&f->at.full, live, 0);
    }
    self = t;
    threadIdx = f->index;
    scheduler.begun = true;
    change(&scheduler, &f->at);
}

/* ---- meeting ------------------------------------------------------------------------------------- */

void emu::die(const char *what)
{
    fprintf(stderr, "cuda_host: %s: thread %u,%u,%u of block %u,%u,%u\n", what, threadIdx.x,
            threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
    abort();
}

int emu::lane(void)
{
    return self % WARP;
}

void emu::barrier(int id, int count, const char *file, int line)
{
    wait(AT_BARRIER, id, count, file, line);
}

void emu::gather(unsigned mask, void (*meet)(unsigned, void **), void *given)
{
    const int first = self - lane();
    meeting *m = &meetings[first + __builtin_ctz(mask)];
    if (!(mask >> lane() & 1))
        die("a lane meets others without itself");
    if (m->here && (m->mask != mask || m->meet != meet))
        die("lanes of a warp meet for different things");
    m->mask = mask;
    m->meet = meet;
    m->given[lane()] = given;
    m->here |= 1u << lane();
    if (m->here != mask) {
        wait(WITH_LANES, 0, 0, "", 0);
        return;
    }
    m->here = 0;
    meet(mask, m->given);
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1)
            fibers[first + i].now = READY;
}

/* Opens the barriers where everybody is; false: none. */
static bool open_barriers(void)
{
    int here[BARRIERS] = {}, alive = 0;
    bool opened = false;
    for (int t = 0; t < threads; t++) {
        alive += fibers[t].now != DONE;
        if (fibers[t].now == AT_BARRIER)
            here[fibers[t].what]++;
    }
    const fiber *first[BARRIERS] = {};
    for (int t = 0; t < threads; t++) {
        fiber *f = &fibers[t];
        const int id = f->what; /* of a barrier, in this state */
        if (f->now != AT_BARRIER || here[id] != (f->much > 0 ? f->much : alive))
            continue;
        if (!first[id])
            first[id] = f;
        if (f->line != first[id]->line || strcmp(f->file, first[id]->file) != 0)
            emu::die("threads of a block wait at different barriers");
        f->now = READY;
        opened = true;
    }
    return opened;
}

/* ---- blocks -------------------------------------------------------------------------------------- */

static unsigned char *dynamic_shared;
size_t emu::dynamic_bytes;
static std::map<int, void *> shared_blocks;

/* Memory on a border of `border` bytes, full of NaN. */
static void *fresh(size_t border, size_t bytes)
{
    void *p = NULL;
    if (posix_memalign(&p, border, bytes > 0 ? bytes : 1) != 0)
        emu::die("no memory");
    return memset(p, 0xff, bytes);
}

unsigned char *emu::shared_memory(void)
{
    return dynamic_shared;
}

void *emu::shared_at(int place, size_t bytes)
{
    void *&p = shared_blocks[place];
    if (!p)
        p = fresh(16, bytes);
    return p;
}

/* Lets a warp go as far as it comes; the number of its threads that end meanwhile is added to `done`. */
static bool run_warp(int first, int &done)
{
    const int lanes = threads - first < WARP ? threads - first : WARP;
    bool moved = false;
    for (bool again = true; again; moved |= again) {
        again = false;
        for (int i = 0; i < lanes; i++) {
            const int t = first + (mode.backwards ? lanes - 1 - i : i);
            fiber *f = &fibers[t];
            if (f->now == AT_BARRIER || f->now == WITH_LANES || f->now == DONE ||
                (f->now != READY && !emu::has_come(*f)))
                continue;
            f->now = READY;
            go_on(t);
            done += f->now == DONE;
            again = true;
        }
    }
    return moved;
}

static std::string what_it_waits_for(const fiber &f)
{
    char text[256];
    if (f.now != AT_BARRIER)
        return f.now == DONE         ? "has ended"
               : f.now == WITH_LANES ? "waits for other lanes of its warp"
                                     : emu::told(f);
    snprintf(text, sizeof text, "waits at barrier %d for %s threads, %s:%d", f.what,
             f.much > 0 ? std::to_string(f.much).c_str() : "all", f.file, f.line);
    return text;
}

/* Nobody can go on, and nothing more will happen. */
[[noreturn]] static void give_up(void)
{
    for (int t = 0, end; t < threads; t = end) {
        const std::string why = what_it_waits_for(fibers[t]);
        for (end = t + 1; end < threads && what_it_waits_for(fibers[end]) == why;)
            end++;
        fprintf(stderr, "cuda_host: threads %d to %d: %s\n", t, end - 1, why.c_str());
    }
    emu::die("threads wait for others that do not come");
}

static void begin_block(void)
{
    for (int t = 0; t < threads; t++) {
        const unsigned x = (unsigned)t;
        fibers[t].index =
            dim3(x % blockDim.x, x / blockDim.x % blockDim.y, x / blockDim.x / blockDim.y);
        fibers[t].now = READY;
        fibers[t].chained = false;
        fibers[t].copies.assign(1, {});
        meetings[t].here = 0;
    }
    emu::begin_background();
}

static bool something_happens(void)
{
    if (mode.barriers)
        return open_barriers() || emu::background_happens(true);
    return emu::background_happens(true) || open_barriers();
}

static void run_block(void)
{
    begin_block();
    for (int done = 0; done < threads;) {
        bool moved = false;
        for (int w = 0; w < threads && !(moved && mode.unfair); w += WARP) {
            moved |= run_warp(mode.backwards ? (threads - 1 - w) / WARP * WARP : w, done);
            if (mode.lively && draw(4) == 0)
                moved |= draw(2) ? open_barriers() : emu::background_happens(false);
        }
        if (!moved && done < threads && !something_happens())
            give_up();
    }
    emu::end_background();
}

static uint64_t luck;

unsigned emu::draw(unsigned n)
{
    luck = luck * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(luck >> 33) % n;
}

void emu::run_grid(const cudaLaunchConfig_t &config, const std::function<void()> &thread)
{
    static unsigned launches;
    const dim3 g = config.gridDim, b = config.blockDim;
    const size_t blocks = (size_t)g.x * g.y * g.z;
    mode.backwards = launches++ % 2;
    mode.unfair = draw(2);
    mode.lively = draw(2);
    mode.barriers = draw(2);
    mode.chained = config.numAttrs > 0;
    work = &thread;
    gridDim = g;
    blockDim = b;
    threads = (int)(b.x * b.y * b.z);
    for (size_t i = 0; i < blocks; i++) {
        const size_t at = mode.backwards ? blocks - 1 - i : i;
        blockIdx =
            dim3((unsigned)(at % g.x), (unsigned)(at / g.x % g.y), (unsigned)(at / g.x / g.y));
        dynamic_bytes = config.dynamicSmemBytes;
        dynamic_shared = (unsigned char *)fresh(1024, dynamic_bytes);
        run_block();
        free(dynamic_shared);
        for (auto &room : shared_blocks)
            free(room.second);
        shared_blocks.clear();
    }
}

void emu::chain(void)
{
    fibers[self].chained = true;
}

/* ---- what lanes do together ---------------------------------------------------------------------- */

void emu::nothing(unsigned, void **) {}

void emu::any(unsigned mask, void **given)
{
    unsigned x = 0;
    for (int i = 0; i < WARP; i++)
        x |= mask >> i & 1 ? *(unsigned *)given[i] : 0;
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1)
            *(unsigned *)given[i] = x;
}

void emu::match(unsigned mask, void **given)
{
    unsigned x[WARP] = {};
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1)
            x[i] = *(unsigned *)given[i];
    for (int i = 0; i < WARP; i++)
        if (mask >> i & 1) {
            unsigned equal = 0;
            for (int j = 0; j < WARP; j++)
                equal |= (mask >> j & 1 && x[j] == x[i]) << j;
            *(unsigned *)given[i] = equal;
        }
}

unsigned char *emu::place_of(uint32_t address, int bytes)
{
    if (address % (uint32_t)bytes != 0 || address + (size_t)bytes > dynamic_bytes)
        emu::die("an address outside the shared memory, or not on its border");
    return dynamic_shared + address;
}

static void load(void **given, bool transposed)
{
    for (int i = 0; i < 4; i++) {
        uint16_t m[8][8];
        for (int row = 0; row < 8; row++)
            memcpy(m[row], place_of(((emu::matrices *)given[8 * i + row])->row, 16), 16);
        for (int lane = 0; lane < WARP; lane++) {
            const int g = lane / 4, t = lane % 4;
            const uint32_t low = transposed ? m[2 * t][g] : m[g][2 * t];
            const uint32_t high = transposed ? m[2 * t + 1][g] : m[g][2 * t + 1];
            ((emu::matrices *)given[lane])->r[i] = high << 16 | low;
        }
    }
}

void emu::load4(unsigned, void **given)
{
    load(given, false);
}

void emu::load4_t(unsigned, void **given)
{
    load(given, true);
}

static float half_of(uint32_t pair, int half)
{
    return __uint_as_float(half ? pair & 0xffff0000u : pair << 16);
}

/* Register x of a left operand holds row g + x % 2 * 8, columns 2t + x / 2 * 8 and the next. */
void emu::mma(unsigned, void **given)
{
    float a[16][16], b[8][16]; /* b by columns */
    for (int lane = 0; lane < WARP; lane++) {
        const fragments *p = (const fragments *)given[lane];
        const int g = lane / 4, t = lane % 4;
        for (int x = 0; x < 8; x++)
            a[g + x / 2 % 2 * 8][2 * t + x / 4 * 8 + x % 2] = half_of(p->a[x / 2], x % 2);
        for (int x = 0; x < 4; x++)
            b[g][2 * t + x / 2 * 8 + x % 2] = half_of(p->b[x / 2], x % 2);
    }
    for (int lane = 0; lane < WARP; lane++) {
        fragments *p = (fragments *)given[lane];
        for (int x = 0; x < 4; x++) {
            const float *row = a[lane / 4 + x / 2 * 8], *col = b[lane % 4 * 2 + x % 2];
            float sum = 0.0f;
            for (int k = 0; k < 16; k++)
                sum += row[k] * col[k];
            p->d[x] += sum;
        }
    }
}

/* Register x of a left operand holds row g + x % 2 * 8, columns 4t + x / 2 * 16 and the next three. */
void emu::mma8(unsigned, void **given)
{
    int8_t a[16][32], b[8][32]; /* b by columns */
    for (int lane = 0; lane < WARP; lane++) {
        const fragments8 *p = (const fragments8 *)given[lane];
        const int g = lane / 4, t = lane % 4;
        for (int x = 0; x < 4; x++)
            memcpy(&a[g + x % 2 * 8][4 * t + x / 2 * 16], &p->a[x], 4);
        for (int x = 0; x < 2; x++)
            memcpy(&b[g][4 * t + x * 16], &p->b[x], 4);
    }
    for (int lane = 0; lane < WARP; lane++) {
        fragments8 *p = (fragments8 *)given[lane];
        for (int x = 0; x < 4; x++) {
            const int8_t *row = a[lane / 4 + x / 2 * 8], *col = b[lane % 4 * 2 + x % 2];
            int64_t sum = p->d[x];
            for (int k = 0; k < 32; k++)
                sum += row[k] * col[k];
            if (sum != (int32_t)sum)
                die("a product of integers overflows");
            p->d[x] = (int32_t)sum;
        }
    }
}

/* ---- copies in the background -------------------------------------------------------------------- */

void emu::copy_later(uint32_t to, const void *from, int bytes, bool valid)
{
    memset(place_of(to, bytes), 0xff, (size_t)bytes);
    fibers[self].copies.back().push_back({to, from, bytes, valid});
}

void emu::close_copies(void)
{
    fibers[self].copies.push_back({});
}

void emu::wait_for_copies(int but)
{
    auto &groups = fibers[self].copies;
    while ((int)groups.size() - 1 > but) { /* the open one is not waited for */
        for (const copy &c : groups.front()) {
            if (c.valid && (uintptr_t)c.from % (size_t)c.bytes != 0)
                die("a copy from an address not on its border");
            if (c.valid)
                memcpy(place_of(c.to, c.bytes), c.from, (size_t)c.bytes);
            else
                memset(place_of(c.to, c.bytes), 0, (size_t)c.bytes);
        }
        groups.erase(groups.begin());
    }
}
