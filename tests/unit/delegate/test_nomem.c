/* SPDX-License-Identifier: MIT */
/*
 * Lets the first allocation fail, then the second, and so on, through
 * everything that a delegate does on a simulated NPU, until a run needs none
 * that fails. Each failure must end in an error, with all released: the leak
 * checker of the sanitized build sees to that. Linked with --wrap.
 */
#include <stdio.h>
#include <stdlib.h>

#include "delegate/delegate.h"
#include "models.h"

static bool armed; /* the code under test is running, not the host */
static bool hit;   /* the allocation has failed */
static long countdown;

static bool fails(void)
{
    if (!armed || countdown-- != 0)
        return false;
    hit = true;
    return true;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

/* ---- the host's own allocations don't fail ---------------------------- */

static void *(*kernel_init)(struct tfl_context *context, const char *buffer, size_t length);
static int (*host_replace)(struct tfl_context *context, struct tfl_registration registration,
                           const struct tfl_int_array *nodes, struct tfl_delegate *delegate);

static void *armed_init(struct tfl_context *context, const char *buffer, size_t length)
{
    armed = true;
    void *kernel = kernel_init(context, buffer, length);
    armed = false;
    return kernel;
}

static int disarmed_replace(struct tfl_context *context, struct tfl_registration registration,
                            const struct tfl_int_array *nodes, struct tfl_delegate *delegate)
{
    armed = false;
    kernel_init = registration.init;
    registration.init = armed_init;
    int status = host_replace(context, registration, nodes, delegate);
    armed = true;
    return status;
}

/* ---- one run ---------------------------------------------------------- */

static int run(struct host *host)
{
    char threads[] = "threads", profile[] = "profile", one[] = "1";
    char *keys[] = {threads, profile}, *values[] = {one, one};
    armed = true;
    struct tfl_delegate *delegate = tflite_plugin_create_delegate(keys, values, 2, NULL);
    int status = host_delegate(host, delegate);
    armed = false;
    bool allocated = host_allocate(host);
    armed = true;
    if (status == TFL_OK && allocated)
        status = host_invoke(host);
    armed = false;
    tflite_plugin_destroy_delegate(delegate);
    return status;
}

/* True when nothing was left to fail. */
static bool sweep_step(struct host *(*model)(void), long step, bool *good)
{
    struct host *host = model();
    host_replace = host->context.ReplaceNodeSubsetsWithDelegateKernels;
    host->context.ReplaceNodeSubsetsWithDelegateKernels = disarmed_replace;
    hit = false;
    countdown = step;
    int status = run(host);
    if (!hit && (status != TFL_OK || !host_kernel_count(host))) {
        printf("without a failure: %s\n", host->error);
        *good = false;
    }
    if (status != TFL_OK && !host->error[0]) {
        printf("allocation %ld failed without a message\n", step);
        *good = false;
    }
    host_destroy(host);
    return !hit;
}

static struct host *chain(void)
{
    return model_chain(3);
}

int main(void)
{
    struct host *(*const models[])(void) = {chain, model_conv_per_tensor};
    bool good = true;
    for (int i = 0; i < 2; i++) {
        long steps = 0;
        while (!sweep_step(models[i], steps, &good))
            steps++;
        printf("model %d: %ld allocations, each failed once\n", i, steps);
    }
    return good ? 0 : 1;
}
