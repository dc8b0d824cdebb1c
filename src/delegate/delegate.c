/* SPDX-License-Identifier: MIT */
/* The plugin's two entry points and Prepare(), which offers an interpreter's operations to the NPU. */
#include "delegate/delegate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/kernel.h"
#include "runtime/cost.h"
#include "util/checked.h"

#define EXPORT __attribute__((visibility("default")))

/* ---- messages --------------------------------------------------------- */

/* Errors don't go here: each is reported to the host, which shows it. */
static void print_message(void *user, enum mica_log_level level, const char *message)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (level != MICA_LOG_ERROR)
        fprintf(stderr, "mica: %s: %s\n", names[level], message);
}

int mica_delegate_report(struct mica_delegate *delegate, struct tfl_context *context)
{
    if (context->ReportError)
        context->ReportError(context, "Mica: %s", delegate->log.last_error);
    return TFL_ERROR;
}

/* ---- choosing nodes --------------------------------------------------- */

/* 1 when the NPU takes operation `index`; 0: `reason` says why not; -ENOMEM. */
static int takes(const struct mica_delegate *delegate, const struct mica_graph *graph, uint32_t index, char *reason,
                 size_t size)
{
    const struct mica_chip *chip = delegate->device.chip;
    const char *problem = graph->ops[index].problem;
    if (problem || !chip) {
        snprintf(reason, size, "%s", problem ? problem : "device cpu has no NPU");
        return 0;
    }
    int answer = chip->family->supports(chip, graph, index, reason, size);
    return answer == -ENOMEM ? answer : !answer;
}

static int offer(struct mica_delegate *delegate, const struct mica_choice *choice, uint32_t index)
{
    const struct mica_graph *graph = delegate->preparing.graph;
    const struct mica_tensor *output = mica_op_output(graph, &graph->ops[index], 0);
    char reason[256] = "";
    bool left = mica_choice_reason(choice, reason, sizeof reason);
    int taken = left ? 0 : takes(delegate, graph, index, reason, sizeof reason);
    if (taken < 0)
        return taken;
    mica_log(&delegate->log, MICA_LOG_INFO, "node %d, %.64s making \"%.100s\": %s%s", delegate->preparing.nodes[index],
             graph->ops[index].type, output ? output->name : "", taken ? "taken" : "left to the host, ", reason);
    return taken;
}

/* What the cost model leaves to the host, one entry an operation. NULL: out of memory. */
static struct mica_choice *make_choices(struct mica_delegate *delegate)
{
    const struct mica_graph *graph = delegate->preparing.graph;
    bool *npu = mica_new_array(graph->op_count, sizeof *npu);
    struct mica_choice *choices = mica_new_array(graph->op_count, sizeof *choices);
    const struct mica_compile_options *options = &delegate->options.compile;
    bool made = npu && choices &&
                (!options->cost_cpu_macs ||
                 !mica_place_by_cost(graph, delegate->device.chip, options, NULL, &delegate->log, npu, choices));
    free(npu);
    if (made)
        return choices;
    free(choices);
    return NULL;
}

/* The nodes to take, in the form that the host wants. NULL: out of memory. */
static struct tfl_int_array *choose_from(struct mica_delegate *delegate, const struct mica_choice *choices)
{
    uint32_t count = delegate->preparing.graph->op_count;
    struct tfl_int_array *nodes = mica_new_array((size_t)count + 1, sizeof(int));
    for (uint32_t i = 0; nodes && i < count; i++) {
        int taken = offer(delegate, &choices[i], i);
        if (taken < 0) {
            free(nodes);
            return NULL;
        }
        if (taken)
            nodes->data[nodes->size++] = delegate->preparing.nodes[i];
    }
    return nodes;
}

static struct tfl_int_array *choose_nodes(struct mica_delegate *delegate)
{
    struct mica_choice *choices = make_choices(delegate);
    struct tfl_int_array *nodes = choices ? choose_from(delegate, choices) : NULL;
    free(choices);
    return nodes;
}

static int replace_nodes(struct mica_delegate *delegate, struct tfl_context *context)
{
    struct tfl_int_array *nodes = choose_nodes(delegate);
    if (!nodes) {
        mica_fail_nomem(&delegate->log);
        return mica_delegate_report(delegate, context);
    }
    mica_log(&delegate->log, MICA_LOG_INFO, "%d of %u nodes run on %s", nodes->size,
             delegate->preparing.graph->op_count, delegate->device.name);
    int status = TFL_OK;
    if (nodes->size)
        status = context->ReplaceNodeSubsetsWithDelegateKernels(context, mica_delegate_kernel, nodes, &delegate->base);
    free(nodes);
    return status;
}

static int prepare(struct tfl_context *context, struct tfl_delegate *base)
{
    struct mica_delegate *delegate = base->data;
    pthread_mutex_lock(&delegate->lock);
    int status;
    delegate->preparing_core = NULL;
    if (mica_context_graph_create(context, &delegate->log, &delegate->preparing)) {
        status = mica_delegate_report(delegate, context);
    } else {
        status = replace_nodes(delegate, context);
        mica_context_graph_finish(&delegate->preparing);
    }
    pthread_mutex_unlock(&delegate->lock);
    return status;
}

/* ---- life ------------------------------------------------------------- */

static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static struct mica_delegate *create(void)
{
    struct mica_delegate *delegate = calloc(1, sizeof *delegate);
    if (!delegate)
        return NULL;
    delegate->base.data = delegate;
    delegate->base.Prepare = prepare;
    delegate->log = (struct mica_log){.sink = print_message, .level = MICA_LOG_WARNING};
    init_lock(&delegate->lock);
    mica_cores_init(&delegate->cores, &delegate->device, NULL);
    atomic_init(&delegate->references, 1);
    return delegate;
}

void mica_delegate_release(struct mica_delegate *delegate)
{
    if (atomic_fetch_sub(&delegate->references, 1) != 1)
        return;
    const struct mica_opened_device *device = &delegate->device;
    if (delegate->options.profile && device->chip)
        mica_profile_print(&delegate->profile, device->chip, mica_cores_clock(&delegate->cores),
                           device->winsys->simulated, stderr);
    mica_profile_finish(&delegate->profile);
    mica_cores_finish(&delegate->cores);
    mica_close_device(&delegate->device);
    mica_threads_destroy(delegate->threads);
    pthread_mutex_destroy(&delegate->lock);
    free(delegate);
}

/* Options that only the device can judge. */
static int apply_options(struct mica_delegate *delegate)
{
    const struct mica_delegate_options *options = &delegate->options;
    int error = 0;
    if (options->cores)
        error = mica_cores_set_limit(&delegate->cores, options->cores, &delegate->log);
    if (!error && options->clock_mhz)
        error = mica_cores_set_clock(&delegate->cores, options->clock_mhz, &delegate->log);
    if (!error && options->compile.split)
        error = mica_cores_check_split(&delegate->cores, options->compile.split, &delegate->log);
    return error;
}

static int open_device(struct mica_delegate *delegate)
{
    struct mica_core *first = &delegate->cores.cores[0];
    delegate->cores.threads = delegate->threads;
    mica_core_lock(first, &delegate->log);
    int error = mica_open_device(delegate->options.device, delegate->threads, &first->log, &delegate->device);
    mica_core_unlock(first);
    return error ? error : apply_options(delegate);
}

static int configure(struct mica_delegate *delegate, const char *const *keys, const char *const *values, size_t count)
{
    int error = mica_delegate_options_parse(keys, values, count, &delegate->log, &delegate->options);
    if (error)
        return error;
    delegate->log.level = delegate->options.log_level;
    unsigned threads = delegate->options.threads;
    delegate->threads = mica_threads_create(threads ? threads : mica_threads_default());
    if (!delegate->threads)
        return mica_fail_nomem(&delegate->log);
    return open_device(delegate);
}

/* ---- failing ---------------------------------------------------------- */

/*
 * A host that passes an error callback (Python) looks at the result; one that
 * passes none (TFLite's own external-delegate wrapper) doesn't, and would jump
 * to address 0. It gets a delegate whose Prepare() fails, so that the mistake
 * shows up as an error of the interpreter and not as a crash, nor as a model
 * that silently runs elsewhere.
 */
static int refuse(struct tfl_context *context, struct tfl_delegate *base)
{
    return mica_delegate_report(base->data, context);
}

static int refuse_nomem(struct tfl_context *context, struct tfl_delegate *base)
{
    if (context->ReportError)
        context->ReportError(context, "Mica: out of memory");
    return TFL_ERROR;
}

static struct tfl_delegate *fail(struct mica_delegate *delegate, void (*report_error)(const char *message))
{
    static struct tfl_delegate out_of_memory = {.Prepare = refuse_nomem}; /* destroying it does nothing */
    const char *message = delegate ? delegate->log.last_error : "out of memory";
    if (report_error) {
        report_error(message);
        if (delegate)
            mica_delegate_release(delegate);
        return NULL;
    }
    fprintf(stderr, "mica: error: %s\n", message);
    if (!delegate)
        return &out_of_memory;
    delegate->options.profile = false;
    delegate->base.Prepare = refuse;
    return &delegate->base;
}

EXPORT struct tfl_delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                                          void (*report_error)(const char *message))
{
    struct mica_delegate *delegate = create();
    if (!delegate || configure(delegate, (const char *const *)keys, (const char *const *)values, count))
        return fail(delegate, report_error);
    return &delegate->base;
}

EXPORT void tflite_plugin_destroy_delegate(struct tfl_delegate *base)
{
    if (base && base->data)
        mica_delegate_release(base->data);
}
