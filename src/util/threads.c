/* SPDX-License-Identifier: MIT */
#include "util/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

struct mica_threads {
    pid_t process;        /* that has the workers: a child of fork() has a copy of this and no workers */
    pthread_mutex_t turn; /* held by the caller whose loop runs */
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    unsigned workers;    /* started threads, the caller not counted */
    unsigned long round; /* loops started so far */
    unsigned busy;       /* workers still in this round */
    bool quit;
    atomic_size_t next;
    size_t count;
    void (*body)(void *user, size_t index);
    void *user;
    pthread_t handles[];
};

unsigned mica_threads_default(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set))
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? (unsigned)count : 1;
}

static void run_share(struct mica_threads *threads)
{
    for (;;) {
        size_t index = atomic_fetch_add(&threads->next, 1);
        if (index >= threads->count)
            return;
        threads->body(threads->user, index);
    }
}

static void *worker(void *argument)
{
    struct mica_threads *threads = argument;
    unsigned long seen = 0;
    pthread_mutex_lock(&threads->lock);
    for (;;) {
        while (threads->round == seen && !threads->quit)
            pthread_cond_wait(&threads->wake, &threads->lock);
        if (threads->quit)
            break;
        seen = threads->round;
        pthread_mutex_unlock(&threads->lock);
        run_share(threads);
        pthread_mutex_lock(&threads->lock);
        if (--threads->busy == 0)
            pthread_cond_signal(&threads->done);
    }
    pthread_mutex_unlock(&threads->lock);
    return NULL;
}

struct mica_threads *mica_threads_create(unsigned count)
{
    count = count < MICA_MAX_THREADS ? count : MICA_MAX_THREADS;
    unsigned extra = count > 1 ? count - 1 : 0;
    struct mica_threads *threads = calloc(1, sizeof *threads + extra * sizeof threads->handles[0]);
    if (!threads)
        return NULL;
    threads->process = getpid();
    pthread_mutex_init(&threads->turn, NULL);
    pthread_mutex_init(&threads->lock, NULL);
    pthread_cond_init(&threads->wake, NULL);
    pthread_cond_init(&threads->done, NULL);
    while (threads->workers < extra && !pthread_create(&threads->handles[threads->workers], NULL, worker, threads))
        threads->workers++;
    return threads;
}

unsigned mica_threads_count(const struct mica_threads *threads)
{
    return threads ? threads->workers + 1 : 1;
}

static void stop_workers(struct mica_threads *threads)
{
    pthread_mutex_lock(&threads->lock);
    threads->quit = true;
    pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->lock);
    for (unsigned i = 0; i < threads->workers; i++)
        pthread_join(threads->handles[i], NULL);
}

void mica_threads_destroy(struct mica_threads *threads)
{
    if (!threads)
        return;
    if (threads->process != getpid()) { /* what waits for them here would wait for ever */
        free(threads);
        return;
    }
    stop_workers(threads);
    pthread_cond_destroy(&threads->done);
    pthread_cond_destroy(&threads->wake);
    pthread_mutex_destroy(&threads->lock);
    pthread_mutex_destroy(&threads->turn);
    free(threads);
}

void mica_parallel_for(struct mica_threads *threads, size_t count, void (*body)(void *user, size_t index), void *user)
{
    if (!threads || threads->workers == 0 || count <= 1 || threads->process != getpid()) {
        for (size_t i = 0; i < count; i++)
            body(user, i);
        return;
    }
    pthread_mutex_lock(&threads->turn);
    pthread_mutex_lock(&threads->lock);
    threads->body = body;
    threads->user = user;
    threads->count = count;
    atomic_store(&threads->next, 0);
    threads->busy = threads->workers;
    threads->round++;
    pthread_cond_broadcast(&threads->wake);
    pthread_mutex_unlock(&threads->lock);
    run_share(threads);
    pthread_mutex_lock(&threads->lock);
    while (threads->busy)
        pthread_cond_wait(&threads->done, &threads->lock);
    pthread_mutex_unlock(&threads->lock);
    pthread_mutex_unlock(&threads->turn);
}
