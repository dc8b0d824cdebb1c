/* SPDX-License-Identifier: MIT */
/* What stands behind the types of mica.h, and the few helpers their files share. */
#ifndef MICA_RUNTIME_OBJECTS_H
#define MICA_RUNTIME_OBJECTS_H

#include <errno.h>
#include <pthread.h>

#include "mica/mica.h"
#include "runtime/cores.h"
#include "runtime/cost.h"
#include "runtime/device.h"
#include "runtime/instance.h"
#include "runtime/mapping.h"
#include "runtime/partition.h"
#include "runtime/run.h"

/* Alignment of a model's bytes: what the file format promises to its readers. */
#define MICA_MODEL_ALIGNMENT 16

/* The user's sink and the adapter to the tree's own log. */
struct mica_user_sink {
    void (*call)(void *user, enum mica_level level, const char *message);
    void *user;
};

struct mica_context {
    struct mica_log log;
    struct mica_user_sink sink;
    unsigned thread_count;        /* 0: one per processor */
    struct mica_threads *threads; /* made with the first device */
    pthread_mutex_t lock;         /* over the two below, which any waiting thread may write */
    char waited_error[sizeof((struct mica_log *)0)->last_error];
    bool has_waited_error;
};

struct mica_device {
    mica_context *context;
    struct mica_opened_device opened;
    struct mica_compile_options options; /* of what is compiled from now on */
    struct mica_cores cores;             /* everything that reaches the device goes through one of them */
};

struct mica_model {
    mica_context *context;
    char name[256]; /* of the file without folders, for people; "" when it came from memory */
    struct mica_graph *graph;
    const void *data; /* the .tflite bytes */
    size_t size;
    struct mica_mapping mapping; /* behind them, if this model mapped them */

    /* What the cost model chose for a chip and such options, kept because it is asked for operation by operation. */
    struct mica_choice *choices; /* one an operation; NULL: nothing yet */
    const struct mica_chip *choices_chip;
    struct mica_compile_options choices_options;
};

struct mica_executable {
    mica_context *context;
    mica_device *device;
    const mica_model *model;
    mica_model *owned_model;     /* the same when it came from an executable file, else NULL */
    struct mica_mapping mapping; /* that file */
    struct mica_plan plan;
    struct mica_program **programs; /* one per step, NULL for CPU steps */
};

/* Takes the model's name from the path of its file. */
void mica_model_set_name(mica_model *model, const char *path);

/* 1 = on the chip's NPU, 0 = on the CPU, -ENOTSUP = nowhere, -ENOMEM = it could not be found out; see
 * mica_model_placement(). `chip` may be NULL. */
int mica_place_operation(const struct mica_graph *graph, const struct mica_chip *chip, uint32_t op, char *reason,
                         size_t size);

/* Where each operation goes that the device runs: its chip's, or by cost as its options say. For choices (may be NULL)
 * see mica_place_by_cost(). */
int mica_place_model(const mica_model *model, const mica_device *device, bool *npu, struct mica_choice *choices,
                     struct mica_log *log);

/* Every operation in its place, once, with something to run it, and every value there when it is read? */
int mica_executable_check_plan(const mica_executable *executable);

/* Do the programs fit their partitions? Only for plans that passed. */
int mica_executable_check_programs(const mica_executable *executable);

enum mica_session_state {
    MICA_SESSION_FRESH, /* nothing was invoked yet */
    MICA_SESSION_RUNNING,
    MICA_SESSION_DONE,
};

struct mica_session {
    mica_context *context;
    mica_executable *executable;
    struct mica_run run;

    pthread_mutex_t lock; /* over the state, the result and what tells the thread */
    pthread_cond_t changed;
    enum mica_session_state state;
    int result;      /* of the last run */
    bool background; /* the last run's messages are in `log` */
    pthread_t thread;
    bool has_thread, wanted, quit;

    /* A run's messages: the context's log belongs to one thread, and sessions may run in several. */
    struct mica_log log;
    struct mica_user_sink sink;
};

/* The sink of a mica_log whose `user` is a struct mica_user_sink. */
void mica_user_sink_call(void *user, enum mica_log_level level, const char *message);

/* Keeps `message` as the context's last error, from any thread: it is asked for ahead of what failed meanwhile. */
void mica_context_keep_error(mica_context *context, const char *message);
/* Makes `message` the context's last error, from any thread that a run failed in. */
void mica_context_set_error(mica_context *context, const char *message);

/* The log of what an API function works on, NULL where there is none. */
#define MICA_LOG_OF(object) ((object) ? &(object)->context->log : NULL)

/* The one check of public arguments: what does not hold ends the function with -EINVAL. */
#define MICA_CHECK_ARG(log, condition)                                                      \
    do {                                                                                    \
        if (!(condition))                                                                   \
            return mica_fail(log, -EINVAL, "%s: this must hold: %s", __func__, #condition); \
    } while (0)

#endif
