/* cuda_host/hopper.cc -- what Hopper does in the background: copies that report to mbarriers, products of
 * warpgroups, bulk stores; and the registers that warpgroups hand over.
 *
 * Each may happen as soon as it is asked for, or as late as the rules allow; a block draws which.  What a rule
 * forbids ends the program: a product of what was not published, accumulators that were touched too early, a
 * warp that left the others of its group, more arrivals than a phase takes, a block that ends before what
 * it began.  (A tile that is overwritten too early gives wrong numbers in one of the orders.) */
#include "block.h"
#include "ops/cuda/tma.cuh"
#include "ops/cuda/wgmma.cuh"

#include <limits.h>

#include <map>
#include <memory>

using namespace emu;

enum { WARPS = MOST_THREADS / WARP, GROUP_WARPS = 4, REGISTERS = 64 << 10 };

/* What of a block comes as soon as it is asked for; and whether the first warp of a group that makes a product
 * reads its operands for all of them. */
static struct {
    bool copies, stores, products;
} soon;
static bool together;

/* ---- mbarriers ----------------------------------------------------------------------------------- */

enum mark { NEW = 0xb0, PUBLISHED = 0xb1 };

/* Eight bytes of shared memory. */
struct mbarrier {
    int32_t bytes; /* still to come */
    uint8_t arrivals, left, phase, mark;
};

static std::vector<uint32_t> unpublished_bars;

static mbarrier *bar_at(uint32_t bar)
{
    mbarrier *m = (mbarrier *)place_of(bar, 8);
    if (m->mark != PUBLISHED)
        die("an mbarrier that was not initialised, or not published");
    return m;
}

static void turn_if_complete(mbarrier *m)
{
    if (m->left == 0 && m->bytes == 0) {
        m->phase ^= 1;
        m->left = m->arrivals;
    }
}

static bool is_over(uint32_t bar, int phase)
{
    return (bar_at(bar)->phase & 1) != phase;
}

void emu::bar_init(uint32_t bar, int arrivals)
{
    const uint8_t n = (uint8_t)arrivals;
    if (n != arrivals || n == 0)
        die("an mbarrier of so many arrivals");
    *(mbarrier *)place_of(bar, 8) = {0, n, n, 0, NEW};
    unpublished_bars.push_back(bar);
}

void emu::bar_publish(void)
{
    for (const uint32_t bar : unpublished_bars)
        ((mbarrier *)place_of(bar, 8))->mark = PUBLISHED;
    unpublished_bars.clear();
}

void emu::bar_arrive(uint32_t bar)
{
    mbarrier *m = bar_at(bar);
    if (m->left == 0)
        die("more arrivals at an mbarrier than its phase takes");
    m->left--;
    turn_if_complete(m);
}

void emu::bar_expect(uint32_t bar, uint32_t bytes)
{
    bar_at(bar)->bytes += (int32_t)bytes;
    bar_arrive(bar);
}

void emu::bar_wait(uint32_t bar, uint32_t phase, const char *file, int line)
{
    if (phase > 1)
        die("a phase is 0 or 1");
    if (!is_over(bar, (int)phase))
        wait(FOR_PHASE, (int)bar, (int)phase, file, line);
}

/* ---- what was written to shared memory, for those in the background to read ------------------------ */

enum { CHUNK = 16 };

/* Chunks written by matrix stores and not yet published, and by whom: the thread's number + 1. */
static uint16_t written[(256 << 10) / CHUNK];
static std::vector<uint32_t> chunks_of[MOST_THREADS];

static void check_published(uint32_t chunk)
{
    if (written[chunk / CHUNK])
        die("what was written to shared memory is read in the background, but was not published");
}

/* The inverse of load4: lane l gives the address of row l % 8 of matrix l / 8. */
void emu::stored4(unsigned, void **given)
{
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 8; row++) {
            const int owner = 8 * i + row, thread = self / WARP * WARP + owner;
            const uint32_t to = ((matrices *)given[owner])->row;
            uint32_t words[4];
            for (int t = 0; t < 4; t++)
                words[t] = ((matrices *)given[4 * row + t])->r[i];
            memcpy(place_of(to, CHUNK), words, CHUNK);
            written[to / CHUNK] = (uint16_t)(thread + 1);
            chunks_of[thread].push_back(to);
        }
}

static void publish_of(int thread)
{
    for (const uint32_t chunk : chunks_of[thread])
        if (written[chunk / CHUNK] == thread + 1)
            written[chunk / CHUNK] = 0;
    chunks_of[thread].clear();
}

void emu::publish(void)
{
    publish_of(self);
}

/* ---- copies --------------------------------------------------------------------------------------- */

struct bringing {
    uint32_t to, bytes, bar;
    const void *from; /* a line, or NULL: */
    CUtensorMap map;  /* a tile */
    int x, y, z;
};

static std::vector<bringing> copies;

bool lam_cuda_tma_map(CUtensorMap *map, const void *p, const lam_tma_shape &s)
{
    const size_t row = s.ld * sizeof(lam_bf16), stream = s.step * sizeof(lam_bf16);
    *map = {p, s};
    return s.cols > 0 && s.rows > 0 && s.streams > 0 && (uintptr_t)p % 16 == 0 && row % 16 == 0 &&
           (s.streams == 1 || stream % 16 == 0);
}

static void land_tile(const bringing &c)
{
    const lam_tma_shape &s = c.map.shape;
    for (int row = 0; row < LAM_TMA_ROWS; row++) {
        uint16_t line[64] = {};
        const int y = c.y + row, first = c.x < 0 ? -c.x : 0;
        const int end = s.cols - c.x < 64 ? s.cols - c.x : 64;
        if (y >= 0 && y < s.rows && c.z >= 0 && c.z < s.streams && first < end)
            memcpy(line + first,
                   (const uint16_t *)c.map.p + (size_t)c.z * s.step + (size_t)y * s.ld +
                       (size_t)(c.x + first),
                   (size_t)(end - first) * 2);
        for (int x = 0; x < 8; x++)
            memcpy(place_of(c.to, 1024) + 128 * row + CHUNK * (x ^ row % 8), line + 8 * x, CHUNK);
    }
}

static void land(const bringing &c)
{
    if (c.from)
        memcpy(place_of(c.to, CHUNK), c.from, c.bytes);
    else
        land_tile(c);
    mbarrier *m = bar_at(c.bar);
    m->bytes -= (int32_t)c.bytes;
    turn_if_complete(m);
}

static void bring(const bringing &c)
{
    bar_at(c.bar);
    if ((size_t)c.to + c.bytes > dynamic_bytes)
        die("a copy beyond the shared memory");
    memset(place_of(c.to, CHUNK), 0xff, c.bytes);
    if (soon.copies)
        land(c);
    else
        copies.push_back(c);
}

void emu::bring_tile(uint32_t to, const CUtensorMap *map, int x, int y, int z, uint32_t bar)
{
    if (to % 1024 != 0)
        die("a tile that does not begin on its border");
    bring({to, LAM_TMA_TILE, bar, NULL, *map, x, y, z});
}

void emu::bring_line(uint32_t to, const void *from, uint32_t bytes, uint32_t bar)
{
    if ((to | (uintptr_t)from | bytes) % CHUNK != 0)
        die("a line that does not begin or end on its border");
    bring({to, bytes, bar, from, {}, 0, 0, 0});
}

static bool a_copy_lands(bool)
{
    if (copies.empty())
        return false;
    const size_t i = draw((unsigned)copies.size());
    const bringing c = copies[i];
    copies.erase(copies.begin() + (ptrdiff_t)i);
    land(c);
    return true;
}

/* ---- stores --------------------------------------------------------------------------------------- */

struct storing {
    int thread;
    char *to;
    uint32_t from, bytes;
    bool was_read;
    std::vector<char> data;
};

static std::vector<storing> stores;

/* The next thing that happens to a store; true: it has arrived. */
static bool go_on(storing &s)
{
    const char *from = (const char *)place_of(s.from, CHUNK);
    if (s.was_read)
        memcpy(s.to, s.data.data(), s.bytes);
    else
        s.data.assign(from, from + s.bytes);
    return std::exchange(s.was_read, true);
}

void emu::store_line(void *to, uint32_t from, uint32_t bytes)
{
    if ((from | (uintptr_t)to | bytes) % CHUNK != 0 || (size_t)from + bytes > dynamic_bytes)
        die("a store that does not begin or end on its border");
    for (uint32_t x = from; x < from + bytes; x += CHUNK)
        check_published(x);
    storing s = {self, (char *)to, from, bytes, false, {}};
    if (soon.stores)
        while (!go_on(s)) {
        }
    else
        stores.push_back(s);
}

static bool a_store_goes_on(bool)
{
    if (stores.empty())
        return false;
    const size_t i = draw((unsigned)stores.size());
    if (go_on(stores[i]))
        stores.erase(stores.begin() + (ptrdiff_t)i);
    return true;
}

/* Has thread t no store that must still be read, or arrive? */
static bool are_over(int t, bool arrived)
{
    for (const storing &s : stores)
        if (s.thread == t && (arrived || !s.was_read))
            return false;
    return true;
}

void emu::wait_for_stores(bool arrived, const char *file, int line)
{
    if (!are_over(self, arrived))
        wait(FOR_STORES, arrived, 0, file, line);
}

/* ---- products ------------------------------------------------------------------------------------- */

enum { MOST_COLUMNS = 128 };
static const uint32_t untouched = 0x7ffadbad; /* a NaN */

/* Accumulators of a warp that products are under way for. */
struct sums {
    int columns, products; /* those under way */
    float *d[WARP];
    float at[16][MOST_COLUMNS];
};

/* What is in shared memory of the operands: by rows of the product, or 16 deep by columns. */
struct tiles {
    alignas(64) float a[GROUP_WARPS * 16][16], b[16][MOST_COLUMNS];
    int warps; /* that have used it */
};

struct multiplying {
    operands o; /* of lane 0; left and d of all: */
    const uint32_t *left[WARP];
    int group;       /* of products: how many were closed before */
    uint64_t number; /* of the warp's products in this block */
    std::shared_ptr<sums> into;
};

static struct warp_products {
    std::deque<multiplying> ops;
    std::map<float *, std::shared_ptr<sums>> busy; /* by those of lane 0 */
    int closed, target;                            /* groups; those that somebody waits for */
    bool open;                                     /* lam_wg_begin() since the last wait */
    uint64_t count;                                /* products so far */
    uint64_t trace;                                /* of all that was asked for */
} products[WARPS];

/* Element of an accumulator tile: row g + 8 half, column 8 n + 2 t + x. */
template <typename F>
static void each_sum(sums &s, F f)
{
    for (int lane = 0; lane < WARP; lane++)
        for (int i = 0; i < s.columns / 2; i++)
            f(s.d[lane][i], s.at[lane / 4 + i / 2 % 2 * 8][i / 4 * 8 + lane % 4 * 2 + i % 2]);
}

static void hide(sums &s)
{
    each_sum(s, [](float &d, float &at) {
        at = d;
        memcpy(&d, &untouched, 4);
    });
}

static void show(sums &s)
{
    each_sum(s, [](float &d, float &at) {
        if (memcmp(&d, &untouched, 4) != 0)
            die("accumulators were written while products were under way");
        d = at;
    });
}

/* Eight elements of an operand in shared memory: from logical address `at` on, where the swizzle put them. */
static void read_chunk(float *to, int apart, uint32_t at)
{
    uint16_t bits[8];
    const uint32_t place = at ^ (at >> 3 & 0x70);
    memcpy(bits, place_of(place & ~15u, CHUNK), CHUNK);
    check_published(place & ~15u);
    for (int x = 0; x < 8; x++)
        to[x * apart] = __uint_as_float((uint32_t)bits[x] << 16);
}

/* Rows first .. first + n - 1 of an operand (columns of a right one), 16 deep: element (i, k) goes to
 * to[i * row + k * depth]. */
static void read_operand(float *to, int row, int depth, uint32_t operand, lam_wg_by by, int first,
                         int n)
{
    const uint32_t start = (operand & 0x3fff) << 4, apart = (operand >> 16 & 0x3fff) << 4;
    if (start % 1024 >= (by == BY_ROWS ? 128 : 1))
        die("an operand that does not begin on its border");
    if (by == BY_ROWS)
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 16; k += 8)
                read_chunk(to + i * row + k * depth, depth,
                           start + (uint32_t)((first + i) * 128 + 2 * k));
    else
        for (int k = 0; k < 16; k++)
            for (int i = 0; i < n; i += 8)
                read_chunk(to + i * row + k * depth, row,
                           start + (uint32_t)((first + i) / 64) * apart +
                               (uint32_t)(k * 128 + (first + i) % 64 * 2));
}

static void read_registers(float (&a)[16][16], const multiplying &m)
{
    for (int lane = 0; lane < WARP; lane++)
        for (int x = 0; x < 8; x++)
            a[lane / 4 + x / 2 % 2 * 8][lane % 4 * 2 + x / 4 * 8 + x % 2] = __uint_as_float(
                x % 2 ? m.left[lane][x / 2] & 0xffff0000u : m.left[lane][x / 2] << 16);
}

/* By number of the warpgroup and of the product, where `together`. */
static std::map<std::pair<int, uint64_t>, tiles> read_before;

/* The operands of a warp's product: its own sixteen rows, or those of its whole group. */
static void read_tiles(tiles &t, const multiplying &m, int row, int rows)
{
    if (!m.o.left)
        read_operand(t.a[row], 16, 1, m.o.a, m.o.a_by, row, rows);
    read_operand(t.b[0], 1, MOST_COLUMNS, m.o.b, m.o.b_by, 0, m.o.columns);
}

/* Makes the product of one warp: sixteen rows. */
static void multiply(const multiplying &m, const tiles &t, int row)
{
    typedef float vector __attribute__((vector_size(64)));
    float left[16][16];
    const float(*a)[16] = m.o.left ? left : t.a + row;
    sums &s = *m.into;
    if (m.o.left)
        read_registers(left, m);
    for (int i = 0; i < 16; i++)
        for (int n = 0; n < m.o.columns; n += 16) {
            vector sum = {};
            for (int k = 0; k < 16; k++)
                sum += a[i][k] * *(const vector *)&t.b[k][n];
            for (int x = 0; x < 16; x++)
                s.at[i][n + x] = sum[x] + (m.o.add ? s.at[i][n + x] : 0.0f);
        }
}

static void read_and_multiply(const multiplying &m, int warp)
{
    const int row = warp % GROUP_WARPS * 16;
    if (!together) {
        tiles t;
        read_tiles(t, m, row, 16);
        multiply(m, t, row);
        return;
    }
    const auto at = read_before.try_emplace({warp / GROUP_WARPS, m.number}).first;
    tiles &t = at->second;
    if (t.warps++ == 0)
        read_tiles(t, m, 0, GROUP_WARPS * 16);
    multiply(m, t, row);
    if (t.warps == GROUP_WARPS)
        read_before.erase(at);
}

/* The oldest product of a warp that is under way. */
static void oldest_is_made(int warp)
{
    warp_products &w = products[warp];
    const multiplying m = w.ops.front();
    w.ops.pop_front();
    read_and_multiply(m, warp);
    if (--m.into->products == 0) {
        show(*m.into);
        w.busy.erase(m.into->d[0]);
    }
}

static void mix(uint64_t &trace, uint64_t x)
{
    trace = (trace ^ x) * 1099511628211u;
}

void emu::product(unsigned, void **given)
{
    const int warp = self / WARP;
    warp_products &w = products[warp];
    multiplying m = {
        *(operands *)given[0], {}, w.closed, w.count++, w.busy[((operands *)given[0])->d]};
    if (!w.open)
        die("a product without lam_wg_begin()");
    if (!m.into) {
        m.into = w.busy[m.o.d] = std::make_shared<sums>();
        m.into->columns = m.o.columns;
    }
    for (int lane = 0; lane < WARP; lane++) {
        const operands *o = (operands *)given[lane];
        if (o->a != m.o.a || o->b != m.o.b || o->add != m.o.add || o->columns != m.o.columns)
            die("the lanes of a warp want different products");
        m.left[lane] = o->left;
        m.into->d[lane] = o->d;
    }
    if (m.into->columns != m.o.columns)
        die("products of different widths into the same accumulators");
    if (m.into->products++ == 0)
        hide(*m.into);
    mix(w.trace, m.o.a);
    mix(w.trace, m.o.b);
    mix(w.trace, (uint64_t)(m.o.columns * 8 + m.o.a_by * 4 + m.o.b_by * 2 + m.o.add));
    w.ops.push_back(m);
    if (soon.products)
        oldest_is_made(warp);
}

void emu::open_products(unsigned, void **)
{
    products[self / WARP].open = true;
}

void emu::close_products(unsigned, void **)
{
    products[self / WARP].closed++;
}

/* Are the products over that somebody waits for? */
static bool are_made(const warp_products &w, int groups)
{
    return w.ops.empty() || w.ops.front().group >= groups;
}

void emu::wait_for_products(int but, const char *file, int line)
{
    warp_products &w = products[self / WARP];
    gather(~0u, nothing, NULL); /* no lane waits for what another has closed meanwhile */
    const int target = w.closed > but ? w.closed - but : 0;
    w.open = false;
    w.target = target > w.target ? target : w.target;
    if (!are_made(w, target))
        wait(FOR_PRODUCTS, 0, target, file, line);
    gather(~0u, nothing, NULL);
}

/* Makes the oldest product of a warp that is drawn from those that have one; needed: that wait for it. */
static bool a_product_is_made(bool needed)
{
    int warps[WARPS], n = 0;
    for (int w = 0; w < threads / WARP; w++)
        if (!are_made(products[w], needed ? products[w].target : INT_MAX))
            warps[n++] = w;
    if (n > 0)
        oldest_is_made(warps[draw((unsigned)n)]);
    return n > 0;
}

/* ---- registers ------------------------------------------------------------------------------------ */

static int registers[WARPS], wanted[WARPS],
    unused; /* of a thread; free ones of the block, by warps */

static void hand_out(void)
{
    for (int w = 0; w < threads / WARP; w++)
        if (wanted[w] > registers[w] && unused >= wanted[w] - registers[w]) {
            unused -= wanted[w] - registers[w];
            registers[w] = wanted[w];
        }
}

void emu::give_registers(unsigned, void **given)
{
    const int warp = self / WARP, left = *(int *)given[0];
    if (left > registers[warp])
        die("more registers than it has are left to a warp that gives some away");
    unused += registers[warp] - left;
    registers[warp] = left;
    hand_out();
}

void emu::take_registers(int count, const char *file, int line)
{
    gather(~0u, nothing, NULL);
    wanted[self / WARP] = count;
    hand_out();
    if (registers[self / WARP] < count)
        wait(FOR_REGISTERS, count, 0, file, line);
}

/* ---- blocks --------------------------------------------------------------------------------------- */

void emu::begin_background(void)
{
    soon = {draw(2) == 0, draw(2) == 0, draw(2) == 0};
    together = draw(2) == 0;
    read_before.clear();
    unused = 0; /* only what a warp gives up can be taken */
    for (int w = 0; w < (threads + WARP - 1) / WARP; w++) {
        products[w].closed = products[w].target = 0;
        products[w].open = false;
        products[w].trace = products[w].count = 0;
        registers[w] = min(REGISTERS / threads, 255) / 8 * 8;
        wanted[w] = 0;
    }
}

void emu::end_background(void)
{
    for (storing &s : stores)
        if (!s.was_read || !go_on(s))
            die("a block ends before its stores were read");
    stores.clear();
    if (!copies.empty())
        die("a block ends before its copies have come");
    for (int t = 0; t < threads; t++)
        publish_of(t);
    for (int w = 0; w < threads / WARP; w++) {
        if (!products[w].ops.empty())
            die("a block ends before its products are made");
        if (products[w].trace != products[w / GROUP_WARPS * GROUP_WARPS].trace)
            die("the warps of a warpgroup wanted different products");
    }
}

bool emu::has_come(const fiber &f)
{
    const int t = (int)(&f - fibers);
    switch (f.now) {
    case FOR_PHASE:
        return is_over((uint32_t)f.what, f.much);
    case FOR_PRODUCTS:
        return are_made(products[t / WARP], f.much);
    case FOR_STORES:
        return are_over(t, f.what);
    default:
        return registers[t / WARP] >= f.what;
    }
}

/* Begins with a kind that is drawn: products may be later than copies, or the other way round. */
bool emu::background_happens(bool needed)
{
    bool (*const kinds[])(bool) = {a_copy_lands, a_product_is_made, a_store_goes_on};
    for (unsigned i = 0, first = draw(3); i < 3; i++)
        if (kinds[(first + i) % 3](needed))
            return true;
    return false;
}

std::string emu::told(const fiber &f)
{
    const std::string at = std::string(", ") + f.file + ":" + std::to_string(f.line);
    const auto n = [](int x) { return std::to_string(x); };
    if (f.now == FOR_PHASE) {
        const mbarrier *m = bar_at((uint32_t)f.what);
        return "waits for phase " + n(f.much) + " of the mbarrier at byte " + n(f.what) +
               ", which is in phase " + n(m->phase) + " and misses " + n(m->left) + " of " +
               n(m->arrivals) + " arrivals and " + n(m->bytes) + " bytes" + at;
    }
    if (f.now == FOR_REGISTERS)
        return "waits for " + n(f.what) + " registers, of which there are not so many" + at;
    return (f.now == FOR_PRODUCTS ? "waits for products" : "waits for its stores") + at;
}
