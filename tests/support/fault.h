/* fault.h -- lets one write, fsync or rename of core/file fail, or the process end there.
 *
 *     for (int n = 1; test_fault_at(n, ENOSPC); n++) { status = save(...); ... }
 *
 * runs the body with the 1st, 2nd, ... such call failing with that errno, and a last time with
 * none. */
#ifndef TEST_FAULT_H
#define TEST_FAULT_H

/* Lets the nth guarded call from now on fail with `error`.  Returns 0, and removes the hook, when the
 * previous setting was never reached. */
int test_fault_at(int nth, int error);
/* The same in a child: runs body(arg) in a fork that ends without a word at the nth call, as if
 * killed.  Returns 0 when the body ran to its end. */
int test_crash_at(int nth, void (*body)(void *arg), void *arg);

/* Has the fault chosen by the last test_fault_at() happened? */
int test_fault_happened(void);

/* While on, the system cannot exchange two names (ENOSYS); that is neither a fault nor counted. */
void test_fault_no_exchange(int on);

#endif
