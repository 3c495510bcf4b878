/* foreign_fuzz.c -- whatever somebody saved with torch.save, importing it ends: with a message, or with a
 * configuration whose parameters were all checked against the tensors. */
#include "convert/foreign.h"
#include "convert/vocabulary.h"
#include "fuzz/torch_archive.h"
#include "model/model.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

/* As import.c does, up to the writing. */
static lam_status use_model(lam_torch *file, lam_tensors *all, json_t **known)
{
    const lam_py *module;
    lam_config cfg;
    lam_model model = {0};
    lam_dev plain = {.act = LAM_F32, .wide = LAM_F32, .pad = 1};
    LAM_TRY(lam_tensors_from_torch(all, file, &module));
    LAM_TRY(lam_foreign_known(known, file, module));
    LAM_TRY(lam_foreign_config(&cfg, *known, all));
    if (cfg.n_layer > 8) /* more of the same, only slower */
        return LAM_OK;
    lam_status status = lam_model_declare(&model, &cfg, &plain);
    model.dev = model.params.dev = NULL;
    if (status == LAM_OK)
        status = lam_foreign_check(all, &model.params, &cfg);
    lam_model_undeclare(&model);
    return status;
}

static void use_file(const void *data, size_t size)
{
    lam_torch *file;
    lam_tensors all = {.label = "input"};
    lam_vocab *vocab = NULL;
    json_t *known = NULL;
    if (lam_torch_parse(&file, "input", data, size) != LAM_OK)
        return;
    lam_status status = use_model(file, &all, &known);
    require(status == LAM_OK || lam_error()[0] != '\0');
    status = lam_vocabulary_from_torch(&vocab, file);
    require(status == LAM_OK || vocab == NULL);
    for (int i = 0; vocab && i < lam_vocab_size(vocab); i++) {
        size_t n;
        const char *text = lam_vocab_symbol(vocab, i, &n);
        require(lam_vocab_find(vocab, text, n) == i);
    }
    lam_vocab_free(vocab);
    json_decref(known);
    lam_tensors_free(&all);
    lam_torch_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_pickle(data, size, use_file);
    return 0;
}
