/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static void erase_locked(struct cli_progress *progress)
{
    if (progress->visible)
        fputs("\r\033[K", progress->stream);
    progress->visible = false;
}

static void draw_locked(struct cli_progress *progress, unsigned seconds)
{
    fprintf(progress->stream, "\r\033[K%s... %u s", progress->what, seconds);
    if (progress->total > 1)
        fprintf(progress->stream, ", %u of %u", progress->done, progress->total);
    fflush(progress->stream);
    progress->visible = true;
}

static void *tick(void *user)
{
    struct cli_progress *progress = user;
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    unsigned seconds = 0;
    pthread_mutex_lock(&progress->mutex);
    while (!progress->stopping) {
        next.tv_sec++;
        int woken = 0;
        while (!progress->stopping && woken != ETIMEDOUT)
            woken = pthread_cond_timedwait(&progress->wake, &progress->mutex, &next);
        if (!progress->stopping)
            draw_locked(progress, ++seconds);
    }
    erase_locked(progress);
    fflush(progress->stream);
    pthread_mutex_unlock(&progress->mutex);
    return NULL;
}

static int start_thread(struct cli_progress *progress)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes))
        return -1;
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int failed = pthread_cond_init(&progress->wake, &attributes);
    pthread_condattr_destroy(&attributes);
    if (failed)
        return -1;
    if (pthread_mutex_init(&progress->mutex, NULL))
        goto no_mutex;
    if (pthread_create(&progress->thread, NULL, tick, progress))
        goto no_thread;
    return 0;

no_thread:
    pthread_mutex_destroy(&progress->mutex);
no_mutex:
    pthread_cond_destroy(&progress->wake);
    return -1;
}

void cli_progress_start(struct cli_progress *progress, FILE *stream, const char *what, unsigned total)
{
    int descriptor = fileno(stream); /* -1 for streams in memory */
    if (progress->running || descriptor < 0 || !isatty(descriptor))
        return;
    *progress = (struct cli_progress){.stream = stream, .what = what, .total = total};
    progress->running = start_thread(progress) == 0;
}

void cli_progress_step(struct cli_progress *progress)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->mutex);
    progress->done++;
    pthread_mutex_unlock(&progress->mutex);
}

void cli_progress_erase(struct cli_progress *progress)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->mutex);
    erase_locked(progress);
    pthread_mutex_unlock(&progress->mutex);
}

void cli_progress_stop(struct cli_progress *progress)
{
    if (!progress->running)
        return;
    pthread_mutex_lock(&progress->mutex);
    progress->stopping = true;
    pthread_cond_signal(&progress->wake);
    pthread_mutex_unlock(&progress->mutex);
    pthread_join(progress->thread, NULL);
    pthread_mutex_destroy(&progress->mutex);
    pthread_cond_destroy(&progress->wake);
    progress->running = false;
}
