/* SPDX-License-Identifier: MIT */
/* A line "compiling... 3 s" on the terminal while something takes more than a second; nothing where there is none. */
#ifndef MICA_CLI_PROGRESS_H
#define MICA_CLI_PROGRESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

struct cli_progress {
    FILE *stream;
    const char *what;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool running, stopping, visible;
    unsigned done, total; /* "2 of 10", when total is above 1 */
};

/* `what` must be a static string. A progress that can't be shown is not an error. */
void cli_progress_start(struct cli_progress *progress, FILE *stream, const char *what, unsigned total);
void cli_progress_step(struct cli_progress *progress);
void cli_progress_erase(struct cli_progress *progress); /* before something else is printed to the stream */
void cli_progress_stop(struct cli_progress *progress);

#endif
