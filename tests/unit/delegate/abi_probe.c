/* SPDX-License-Identifier: MIT */
/*
 * A delegate that takes nothing. In a real interpreter it compares what the
 * nodes' parameter structures say with what the file says, which is read by
 * other code from another format: the structures' layouts are right where both
 * agree. test_abi.py loads it; the file's name is in MICA_ABI_PROBE_MODEL. What
 * does not agree is reported, and fails the delegate.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delegate/context_graph.h"
#include "frontend/tflite/reader.h"

__attribute__((visibility("default"))) struct tfl_delegate *tflite_plugin_create_delegate(char **, char **, size_t,
                                                                                          void (*)(const char *));
__attribute__((visibility("default"))) void tflite_plugin_destroy_delegate(struct tfl_delegate *);

/* A file's bytes at an address that suits the reader; NULL when there is none. */
static void *read_file(const char *path, size_t *size)
{
    FILE *file = path ? fopen(path, "rb") : NULL;
    void *data = NULL;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    if (posix_memalign(&data, 16, *size) || fread(data, 1, *size, file) != *size) {
        free(data);
        data = NULL;
    }
    fclose(file);
    return data;
}

static bool same_window(const struct mica_window *a, const struct mica_window *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool same_parameters(const struct mica_op *a, const struct mica_op *b)
{
    switch (a->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_TRANSPOSE_CONV:
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
        return same_window(&a->window, &b->window);
    case MICA_OP_FULLY_CONNECTED:
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
    case MICA_OP_DIV:
        return a->activation == b->activation;
    case MICA_OP_SOFTMAX:
        return a->beta == b->beta;
    case MICA_OP_LEAKY_RELU:
        return a->alpha == b->alpha;
    case MICA_OP_RESIZE_BILINEAR:
    case MICA_OP_RESIZE_NEAREST:
        return memcmp(&a->resize, &b->resize, sizeof a->resize) == 0;
    case MICA_OP_SLICE:
        return memcmp(&a->slice, &b->slice, sizeof a->slice) == 0;
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
        return a->block == b->block;
    case MICA_OP_MEAN:
    case MICA_OP_SUM:
    case MICA_OP_REDUCE_MAX:
    case MICA_OP_REDUCE_MIN:
        return a->keep_dims == b->keep_dims;
    case MICA_OP_MIRROR_PAD:
        return a->mirror_symmetric == b->mirror_symmetric;
    case MICA_OP_BATCH_MATMUL:
        return memcmp(&a->matmul, &b->matmul, sizeof a->matmul) == 0;
    default:
        return true;
    }
}

/* Operations that both can use must be the same; whether they can may differ only by shapes that a host computes. */
static const char *compare(const struct mica_op *host, const struct mica_op *file)
{
    if (file->kind == MICA_OP_DETECTION_POSTPROCESS) /* custom operations have no structure */
        return NULL;
    if (host->kind != file->kind && !host->problem)
        return "another kind";
    if (file->problem && !host->problem)
        return "usable here only";
    if (host->problem)
        return file->problem || strstr(host->problem, "shape") ? NULL : host->problem;
    if (host->axis != file->axis || host->axes != file->axes)
        return "another axis";
    return same_parameters(host, file) ? NULL : "other parameters";
}

static int compare_graphs(struct tfl_context *context, const struct mica_graph *host, const struct mica_graph *file)
{
    unsigned used = 0;
    if (host->op_count != file->op_count) {
        fprintf(stderr, "abi probe: %u nodes instead of %u: another subgraph\n", host->op_count, file->op_count);
        return TFL_OK;
    }
    for (uint32_t i = 0; i < host->op_count; i++) {
        const char *difference = compare(&host->ops[i], &file->ops[i]);
        used += !host->ops[i].problem;
        if (difference) {
            context->ReportError(context, "node %u, %s: %s", i, file->ops[i].type, difference);
            return TFL_ERROR;
        }
    }
    fprintf(stderr, "abi probe: %u of %u nodes are usable and agree\n", used, host->op_count);
    return TFL_OK;
}

static int prepare(struct tfl_context *context, struct tfl_delegate *delegate)
{
    struct mica_log log = {.sink = NULL};
    struct mica_context_graph host = {0};
    struct mica_graph *file = NULL;
    size_t size = 0;
    int status = TFL_ERROR;
    void *data = read_file(getenv("MICA_ABI_PROBE_MODEL"), &size);
    if (data && !mica_tflite_read(data, size, &log, &file) && !mica_context_graph_create(context, &log, &host))
        status = compare_graphs(context, host.graph, file);
    else
        context->ReportError(context, "abi probe: %s", data ? log.last_error : "no file");
    mica_context_graph_finish(&host);
    mica_graph_destroy(file);
    free(data);
    return status;
}

struct tfl_delegate *tflite_plugin_create_delegate(char **keys, char **values, size_t count,
                                                   void (*report)(const char *))
{
    struct tfl_delegate *delegate = calloc(1, sizeof *delegate);
    if (delegate)
        delegate->Prepare = prepare;
    return delegate;
}

void tflite_plugin_destroy_delegate(struct tfl_delegate *delegate)
{
    free(delegate);
}
