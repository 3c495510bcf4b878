/* codec_fuzz.c -- any bytes as the coded bytes of a block decode to something or to a message; any bytes as a block come
 * back from what they were coded to. */
#include "compress/codec.h"
#include "model/configure.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static lam_engine *small_engine(void)
{
    static lam_engine engine = {.name = "fuzz"};
    const lam_ops *ops;
    lam_config cfg;
    require(
        lam_config_parse(&cfg,
                         "{\"n_token\":256,\"n_layer\":1,\"n_head\":1,\"d_model\":4,\"d_head\":4,"
                         "\"d_inner\":4,\"tgt_len\":3,\"mem_len\":2,\"memory\":\"lamemo\"}",
                         "config") == LAM_OK);
    require(lam_ops_find(&ops, "ref") == LAM_OK);
    require(ops->open(&engine.dev, &(lam_dev_options){.exact = 1}) == LAM_OK);
    require(lam_model_create_as(&engine.model, &cfg, engine.dev, LAM_BYTE, LAM_BYTE) == LAM_OK);
    require(lam_model_init(engine.model, 1) == LAM_OK);
    require(lam_vocab_create_bytes(&engine.vocab) == LAM_OK);
    return &engine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static lam_engine *engine;
    enum { MOST = 200 };
    uint8_t coded[4 * MOST], back[MOST];
    size_t n;
    lam_codec *c;
    if (!engine)
        engine = small_engine();
    if (size < 2 || size > MOST)
        return 0;
    require(lam_codec_create(&c, engine,
                             &(lam_codec_options){.streams = 1 + data[0] % 3,
                                                  .segment = 3,
                                                  .memory = 2,
                                                  .adapt = (lam_adapt)(data[0] / 3 % 2)}) ==
            LAM_OK);
    require(lam_codec_encode(c, coded, sizeof coded, &n, data, size, NULL) == LAM_OK);
    if (n > 0) {
        require(lam_codec_decode(c, back, size, coded, n, NULL) == LAM_OK);
        require(memcmp(back, data, size) == 0);
    }
    const lam_status status =
        lam_codec_decode(c, back, 1 + data[1] % MOST, data + 2, size - 2, NULL);
    require(status == LAM_OK || status == LAM_ERR_FORMAT);
    lam_codec_free(c);
    return 0;
}
