/* watch.h -- reports the progress of long work to a callback, which may cancel it. */
#ifndef LAM_CORE_WATCH_H
#define LAM_CORE_WATCH_H

#include "core/status.h"

/* Called now and then with the part that is done, 0 to 1; a return other than 0 ends the work. */
typedef struct lam_watch {
    int (*call)(void *user, double part);
    void *user;
} lam_watch;

/* LAM_ERR_INTERRUPTED: it is to end.  No watch, or one without a call, lets it go on. */
static inline lam_status lam_watch_tell(const lam_watch *watch, double part)
{
    if (!watch || !watch->call || watch->call(watch->user, part) == 0)
        return LAM_OK;
    return lam_fail(LAM_ERR_INTERRUPTED, "stopped by the caller");
}

#endif
