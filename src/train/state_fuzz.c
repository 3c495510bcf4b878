/* state_fuzz.c -- whatever is in training_state.json, loading fails with a message naming the file or gives a
 * state that is the same when it was saved and loaded again. */
#include "train/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int claim)
{
    if (!claim)
        abort();
}

static void check_again(const lam_train_state *s)
{
    const lam_params none = {0};
    char dir[] = "/dev/shm/state_fuzz.XXXXXX", path[64];
    lam_train_state again;
    require(mkdtemp(dir) != NULL);
    snprintf(path, sizeof path, "%s/state", dir);
    require(lam_train_state_save(s, &none, path) == LAM_OK);
    require(lam_train_state_load(&again, NULL, path) == LAM_OK);
    require(unlink(path) == 0 && rmdir(dir) == 0);
    require(again.step == s->step && again.grown == s->grown && again.n_shifts == s->n_shifts &&
            again.position.row == s->position.row &&
            again.position.rng.key == s->position.rng.key && again.best_loss == s->best_loss &&
            again.elapsed == s->elapsed && again.log_nll == s->log_nll &&
            again.log_aux == s->log_aux && again.corpus.crc == s->corpus.crc &&
            strcmp(again.corpus.path, s->corpus.path) == 0);
    require(memcmp(again.shifts, s->shifts, (size_t)s->n_shifts * sizeof *s->shifts) == 0);
    require(lam_settings_same_state(&again.settings, &s->settings) == LAM_OK);
    lam_train_state_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[64];
    lam_train_state s;
    const int fd = memfd_create("fuzz", 0);
    require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const lam_status status = lam_train_state_load(&s, NULL, path);
    close(fd);
    if (status != LAM_OK) {
        require(strncmp(lam_error(), path, strlen(path)) == 0);
        return 0;
    }
    check_again(&s);
    lam_train_state_free(&s);
    return 0;
}
