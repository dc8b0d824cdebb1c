/* SPDX-License-Identifier: MIT */
/* The process: is it recorded, who holds the lock, what a fork and an exit mean. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define DEFAULT_LIMIT (UINT64_C(4) << 30)

atomic_int ic_state;
static pid_t process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
/* Initial exec: reading it never allocates. */
static __thread bool inside __attribute__((tls_model("initial-exec")));

/* "4G", "500M", "1000": bytes. What makes no sense is the default. */
static uint64_t parse_limit(const char *text)
{
    char *end;
    if (!text || *text < '0' || *text > '9')
        return DEFAULT_LIMIT;
    uint64_t value = strtoull(text, &end, 10), factor = 1;
    factor = *end == 'K' ? 1u << 10 : *end == 'M' ? 1u << 20 : *end == 'G' ? 1u << 30 : 1;
    return __builtin_mul_overflow(value, factor, &value) ? UINT64_MAX : value;
}

static void before_fork(void)
{
    if (!inside)
        pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    if (!inside)
        pthread_mutex_unlock(&lock);
}

/* The child has the open files and their buffers, but nothing of what was written. */
static void in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    process = getpid();
    ic_output_reset();
    ic_flush_all(true);
}

static void start(void)
{
    const char *root = getenv("MICA_CAPTURE");
    if (!root || !*root) {
        atomic_store(&ic_state, IC_OFF);
        return;
    }
    inside = true;
    ic_real();
    process = getpid();
    ic_output_start(root, parse_limit(getenv("MICA_CAPTURE_LIMIT")));
    pthread_atfork(before_fork, after_fork, in_child);
    atomic_store(&ic_state, IC_ON);
    inside = false;
}

enum ic_state ic_start(void)
{
    if (inside)
        return IC_OFF;
    pthread_once(&once, start);
    return (enum ic_state)atomic_load(&ic_state);
}

bool ic_enter(struct ic_guard *guard)
{
    if (inside || getpid() != process)
        return false;
    guard->error = errno;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &guard->cancel);
    inside = true;
    pthread_mutex_lock(&lock);
    return true;
}

void ic_leave(const struct ic_guard *guard)
{
    pthread_mutex_unlock(&lock);
    inside = false;
    pthread_setcancelstate(guard->cancel, NULL);
    errno = guard->error;
}

__attribute__((constructor)) static void begin(void)
{
    ic_start();
}

__attribute__((destructor)) static void finish(void)
{
    struct ic_guard guard;
    if (!ic_on() || !ic_enter(&guard))
        return;
    ic_flush_all(false);
    ic_leave(&guard);
}
