/* md5_test.c -- the sums of RFC 1321, however the text is cut. */
#include "data/md5.h"

#include "support/suite.h"

#include <string.h>

static const char *const sums[][2] = {
    {"", "d41d8cd98f00b204e9800998ecf8427e"},
    {"a", "0cc175b9c0f1b6a831c399e269772661"},
    {"abc", "900150983cd24fb0d6963f7d28e17f72"},
    {"message digest", "f96b697d7cb7938d525a2f31aaf161d0"},
    {"abcdefghijklmnopqrstuvwxyz", "c3fcd3d76192e4007dfb496cca67e13b"},
    {"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
     "d174ab98d277d9f5a5611c2c9f419d9f"},
    {"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
     "57edf4a22be3c955ac49da2e2107b67a"}};

START_TEST(the_sums_are_those_of_the_rfc)
{
    const size_t n = strlen(sums[_i][0]);
    for (size_t cut = 0; cut <= n; cut++) {
        char hex[33];
        lam_md5 m;
        lam_md5_start(&m);
        lam_md5_add(&m, sums[_i][0], cut);
        lam_md5_add(&m, sums[_i][0] + cut, n - cut);
        lam_md5_finish(&m, hex);
        ck_assert_str_eq(hex, sums[_i][1]);
    }
}
END_TEST

/* Lengths around the block and the padding; sums from md5sum. */
START_TEST(padding_is_right_at_block_edges)
{
    static const struct {
        size_t n;
        const char *sum;
    } edges[] = {{55, "ef1772b6dff9a122358552954ad0df65"},
                 {56, "3b0c8ac703f828b04c6c197006d17218"},
                 {63, "b06521f39153d618550606be297466d5"},
                 {64, "014842d480b571495a4a0363793f7367"},
                 {65, "c743a45e0d2e6a95cb859adae0248435"}};
    char text[65], hex[33];
    memset(text, 'a', sizeof text);
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        lam_md5 m;
        lam_md5_start(&m);
        lam_md5_add(&m, text, edges[i].n);
        lam_md5_finish(&m, hex);
        ck_assert_str_eq(hex, edges[i].sum);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("all");
    tcase_add_loop_test(tests, the_sums_are_those_of_the_rfc, 0, 7);
    tcase_add_test(tests, padding_is_right_at_block_edges);
    return test_run("data/md5", tests);
}
