/* SPDX-License-Identifier: MIT */
/* Do values flow in execution order? */
#include "graph/graph.h"

#include "util/checked.h"

#include <errno.h>
#include <stdio.h>

enum {
    NO_VALUE,
    CONSTANT,
    GRAPH_INPUT,
    COMPUTED,
};

static const char *const writer_text[] = {
    [CONSTANT] = "which is a constant",
    [GRAPH_INPUT] = "which is an input of the graph",
    [COMPUTED] = "which another operation computes",
};

static void mark_given(const struct mica_graph *graph, uint8_t *state)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        if (graph->tensors[i].data)
            state[i] = CONSTANT;
    for (uint32_t i = 0; i < graph->input_count; i++)
        state[graph->inputs[i]] = GRAPH_INPUT;
}

static bool reads_nothing_missing(const struct mica_graph *graph, const struct mica_op *op, const uint8_t *state,
                                  char *text, size_t size)
{
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *input = mica_op_input(graph, op, i);
        if (!input || state[op->inputs[i]] != NO_VALUE)
            continue;
        snprintf(text, size, "it reads \"%.100s\", which nothing before it computes", input->name);
        return false;
    }
    return true;
}

static bool writes_only_new(const struct mica_graph *graph, const struct mica_op *op, uint8_t *state, char *text,
                            size_t size)
{
    bool good = true;
    for (uint32_t i = 0; i < op->output_count; i++) {
        uint8_t *output = &state[op->outputs[i]];
        if (*output != NO_VALUE) {
            good = false;
            snprintf(text, size, "it writes \"%.100s\", %s", graph->tensors[op->outputs[i]].name, writer_text[*output]);
        } else {
            *output = COMPUTED;
        }
    }
    return good;
}

static int check_ops(struct mica_graph *graph, uint8_t *state, struct mica_log *log)
{
    for (uint32_t i = 0; i < graph->op_count; i++) {
        struct mica_op *op = &graph->ops[i];
        char text[200];
        bool good = reads_nothing_missing(graph, op, state, text, sizeof text);
        good = writes_only_new(graph, op, state, text, sizeof text) && good;
        if (good || op->problem)
            continue;
        op->problem = mica_graph_strdup(graph, text);
        if (!op->problem)
            return mica_fail_nomem(log);
    }
    return 0;
}

static int check_outputs(const struct mica_graph *graph, const uint8_t *state, struct mica_log *log)
{
    for (uint32_t i = 0; i < graph->output_count; i++)
        if (state[graph->outputs[i]] == NO_VALUE)
            return mica_fail(log, -EINVAL, "no operation computes output %u of the model, \"%.100s\"", i,
                             graph->tensors[graph->outputs[i]].name);
    return 0;
}

int mica_graph_check_flow(struct mica_graph *graph, struct mica_log *log)
{
    uint8_t *state = mica_new_array(graph->tensor_count, sizeof *state);
    if (!state)
        return mica_fail_nomem(log);
    mark_given(graph, state);
    int error = check_ops(graph, state, log);
    if (!error)
        error = check_outputs(graph, state, log);
    free(state);
    return error;
}
