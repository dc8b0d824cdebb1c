/* SPDX-License-Identifier: MIT */
/* mica_session_capture(): runs the model once beside the session, on buffers of its own, and writes what is submitted.
 */
#include <string.h>

#include "cpu/cpu.h"
#include "runtime/capture.h"
#include "runtime/objects.h"

static void copy_inputs(const mica_session *session, const struct mica_tensor_memory *memory)
{
    const struct mica_graph *graph = session->executable->model->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        int32_t tensor = graph->inputs[i];
        memcpy(memory->data[tensor], session->run.memory.data[tensor], graph->tensors[tensor].bytes);
    }
}

static int write_tensors(const struct mica_graph *graph, const struct mica_tensor_memory *memory, const char *kind,
                         const int32_t *tensors, uint32_t count, struct mica_capture *capture)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < count; i++)
        error = mica_capture_tensor(capture, kind, i, memory->data[tensors[i]], graph->tensors[tensors[i]].bytes);
    return error;
}

static bool cpu_takes_all(const struct mica_graph *graph, struct mica_log *log)
{
    char reason[256];
    for (uint32_t i = 0; i < graph->op_count; i++) {
        if (mica_cpu_supports(graph, i, reason, sizeof reason)) {
            mica_log(log, MICA_LOG_WARNING, "capture: without results of the CPU, because of operation %u (%.40s): %s",
                     i, graph->ops[i].type, reason);
            return false;
        }
    }
    return true;
}

static int run_on_cpu(const mica_session *session, const struct mica_tensor_memory *memory)
{
    mica_context *context = session->context;
    const struct mica_graph *graph = session->executable->model->graph;
    const struct mica_cpu_options options = {.arithmetic = MICA_ARITHMETIC_TFLITE, .threads = context->threads};
    int error = 0;
    copy_inputs(session, memory);
    for (uint32_t i = 0; !error && i < graph->op_count; i++)
        error = mica_cpu_run(graph, i, memory->data, &options, &context->log);
    return error;
}

/* What TFLite would answer to the session's inputs. */
static int capture_cpu(const mica_session *session, struct mica_capture *capture)
{
    struct mica_log *log = &session->context->log;
    const struct mica_graph *graph = session->executable->model->graph;
    struct mica_tensor_memory memory;
    struct mica_plan plan;
    if (!cpu_takes_all(graph, log))
        return 0;
    int error = mica_plan_create(graph, NULL, log, &plan);
    if (error)
        return error;
    error = mica_tensor_memory_create(graph, &plan, log, &memory);
    mica_plan_finish(&plan);
    if (error)
        return error;
    error = run_on_cpu(session, &memory);
    if (!error)
        error = write_tensors(graph, &memory, "cpu", graph->outputs, graph->output_count, capture);
    mica_tensor_memory_finish(&memory);
    return error;
}

/* New buffers, so that nothing of earlier runs is in them. */
static int capture_npu(const mica_session *session, struct mica_capture *capture)
{
    struct mica_log *log = &session->context->log;
    struct mica_run run;
    int error = mica_run_create(session->executable, log, &run);
    if (error)
        return error;
    copy_inputs(session, &run.memory);
    mica_run_start(&run);
    error = mica_capture_run(capture, &run);
    for (uint32_t i = 0; !error && i < session->executable->plan.step_count; i++)
        error = mica_run_step(&run, i, mica_capture_submit, capture, log);
    mica_run_finish(&run);
    return error;
}

int mica_session_capture(mica_session *session, const char *directory)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), directory);
    struct mica_log *log = &session->context->log;
    const struct mica_graph *graph = session->executable->model->graph;
    struct mica_capture *capture;
    pthread_mutex_lock(&session->lock);
    bool runs = session->state == MICA_SESSION_RUNNING;
    pthread_mutex_unlock(&session->lock);
    if (runs)
        return mica_fail(log, -EBUSY, "the session runs: mica_session_wait() first");
    int error = mica_capture_create(directory, session->executable->device->opened.chip, log, &capture);
    if (error)
        return error;
    error = write_tensors(graph, &session->run.memory, "in", graph->inputs, graph->input_count, capture);
    if (!error)
        error = capture_cpu(session, capture);
    if (!error)
        error = capture_npu(session, capture);
    mica_capture_destroy(capture);
    return error;
}
