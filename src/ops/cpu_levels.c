/* cpu_levels.c -- see cpu_levels.h.  The only file that asks the processor what it can do; itself compiled for the
 * oldest one. */
#include "ops/cpu_levels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define LEVEL(table, name) extern const lam_ops table;
#include "ops/cpu_levels.inc"
#undef LEVEL

static const lam_cpu_level levels[] = {
#define LEVEL(table, name) {&table, name},
#include "ops/cpu_levels.inc"
#undef LEVEL
};

enum { LEVELS = sizeof levels / sizeof *levels };

const lam_cpu_level *lam_cpu_levels(int *n)
{
    *n = LEVELS;
    return levels;
}

static int has(uint64_t word, uint64_t bits)
{
    return (word & bits) == bits;
}

static uint32_t bit(int n)
{
    return UINT32_C(1) << n;
}

/* An instruction that uses registers which the operating system does not save is illegal, or its registers change
 * under it, whatever cpuid says: so XCR0 is asked as well.  No level has AMX or AVX512-BF16, which virtual machines
 * have been seen to report and not to run; AMX would moreover need arch_prctl(ARCH_REQ_XCOMP_PERM). */
int lam_cpu_facts_allow(const lam_cpu_facts *f, const char *name)
{
    enum { SSE_AVX = 0x6, SSE_AVX_AVX512 = 0xe6 };
    const uint32_t ssse3_sse4_popcnt = bit(9) | bit(19) | bit(20) | bit(23);
    const uint32_t osxsave_avx_fma_movbe_f16c = bit(27) | bit(28) | bit(12) | bit(22) | bit(29);
    const uint32_t avx2_bmi1_bmi2 = bit(5) | bit(3) | bit(8);
    const uint32_t avx512_f_dq_cd_bw_vl = bit(16) | bit(17) | bit(28) | bit(30) | bit(31);
    const int v2 = has(f->ecx1, ssse3_sse4_popcnt);
    const int v3 = v2 && has(f->ecx1, osxsave_avx_fma_movbe_f16c) && has(f->ebx7, avx2_bmi1_bmi2) &&
                   has(f->extended, bit(5)) /* LZCNT */ && has(f->saved, SSE_AVX);
    const int v4 = v3 && has(f->ebx7, avx512_f_dq_cd_bw_vl) && has(f->saved, SSE_AVX_AVX512);
    if (strcmp(name, "x86-64-v2") == 0)
        return v2;
    if (strcmp(name, "x86-64-v3") == 0)
        return v3;
    return strcmp(name, "x86-64-v4") == 0 ? v4 : 1;
}

static lam_cpu_facts ask(void)
{
    lam_cpu_facts f = {0};
#if defined(__x86_64__)
    unsigned a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d))
        f.ecx1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        f.ebx7 = b;
    if (__get_cpuid(0x80000001, &a, &b, &c, &d))
        f.extended = c;
    if (has(f.ecx1, bit_OSXSAVE)) { /* else xgetbv is illegal */
        uint32_t low, high;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        f.saved = (uint64_t)high << 32 | low;
    }
#endif
    return f;
}

int lam_cpu_level_runs(const char *name)
{
    const lam_cpu_facts facts = ask();
    return lam_cpu_facts_allow(&facts, name);
}

/* "x86-64-v2, x86-64-v3": all levels of the build, or those that run here. */
static const char *list(char *out, size_t size, int only_running)
{
    size_t at = 0;
    out[0] = '\0';
    for (int i = 0; i < LEVELS && at < size; i++)
        if (!only_running || lam_cpu_level_runs(levels[i].name))
            at += (size_t)snprintf(out + at, size - at, "%s%s", at > 0 ? ", " : "", levels[i].name);
    return out;
}

lam_status lam_cpu_choose(const lam_ops **out)
{
    const char *const asked = getenv("LAMEMO_ISA");
    char text[256];
    *out = NULL;
    for (int i = LEVELS - 1; i >= 0; i--) {
        const int runs = lam_cpu_level_runs(levels[i].name);
        if (asked && asked[0] && strcmp(asked, levels[i].name) != 0)
            continue;
        if (asked && asked[0] && !runs)
            return lam_fail(LAM_ERR_ARG,
                            "LAMEMO_ISA=%s: this machine lacks these instructions; it has %s",
                            asked, list(text, sizeof text, 1));
        if (runs) {
            *out = levels[i].ops;
            return LAM_OK;
        }
    }
    if (asked && asked[0])
        return lam_fail(LAM_ERR_ARG, "LAMEMO_ISA=%s: this build has %s", asked,
                        list(text, sizeof text, 0));
    return lam_fail(LAM_ERR_UNSUPPORTED,
                    "device cpu: this machine has none of the instruction sets of this build (%s)",
                    list(text, sizeof text, 0));
}
