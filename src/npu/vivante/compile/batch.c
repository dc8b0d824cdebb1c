/* SPDX-License-Identifier: MIT */
/*
 * Operations on several images are lowered image by image: for each the graph gets two tensors and an operation
 * more, which are the same but for the batch.
 */
#include "npu/vivante/compile/batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool viv_is_batched(const struct mica_graph *graph, const struct mica_op *op)
{
    switch (op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_TRANSPOSE_CONV:
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MAX_POOL_2D:
    case MICA_OP_RESIZE_BILINEAR:
        break;
    default:
        return false;
    }
    const struct mica_tensor *in = mica_op_input(graph, op, mica_op_data_input(op)),
                             *out = mica_op_output(graph, op, 0);
    return in->rank == 4 && out->rank == 4 && in->dims[0] == out->dims[0] && in->dims[0] > 1 &&
           in->dims[0] <= VIV_MAX_BATCH && op->input_count <= VIV_BATCH_INPUTS;
}

int viv_batch_graph_make(const struct mica_graph *graph, struct viv_batch_graph *batch)
{
    batch->graph = *graph;
    batch->graph.tensors = malloc((graph->tensor_count + 2) * sizeof(*graph->tensors));
    batch->graph.ops = malloc((graph->op_count + 1) * sizeof(*graph->ops));
    if (!batch->graph.tensors || !batch->graph.ops)
        return -ENOMEM;
    memcpy(batch->graph.tensors, graph->tensors, graph->tensor_count * sizeof(*graph->tensors));
    memcpy(batch->graph.ops, graph->ops, graph->op_count * sizeof(*graph->ops));
    batch->graph.tensor_count += 2;
    batch->graph.op_count++;
    return 0;
}

void viv_batch_graph_finish(struct viv_batch_graph *batch)
{
    free(batch->graph.tensors);
    free(batch->graph.ops);
    *batch = (struct viv_batch_graph){0};
}

static void make_image(const struct mica_tensor *tensor, struct mica_tensor *image)
{
    *image = *tensor;
    image->bytes /= (size_t)tensor->dims[0];
    image->dims[0] = 1;
}

uint32_t viv_batch_select(struct viv_batch_graph *batch, uint32_t op_index)
{
    struct mica_graph *graph = &batch->graph;
    struct mica_op *op = &graph->ops[graph->op_count - 1];
    uint32_t data = mica_op_data_input(&graph->ops[op_index]);
    *op = graph->ops[op_index];
    int32_t tensor = (int32_t)graph->tensor_count - 2;
    make_image(&graph->tensors[op->inputs[data]], &graph->tensors[tensor]);
    make_image(&graph->tensors[op->outputs[0]], &graph->tensors[tensor + 1]);
    memcpy(batch->inputs, op->inputs, op->input_count * sizeof(*op->inputs));
    batch->inputs[data] = tensor;
    batch->output = tensor + 1;
    op->inputs = batch->inputs;
    op->outputs = &batch->output;
    return graph->op_count - 1;
}

void viv_batch_image(const struct mica_graph *graph, const struct mica_op *op, struct viv_batch_image *image)
{
    uint32_t data = mica_op_data_input(op);
    *image = (struct viv_batch_image){.graph = *graph, .op = *op, .output = (int32_t)op->input_count};
    for (uint32_t i = 0; i < op->input_count; i++) {
        const struct mica_tensor *input = mica_op_input(graph, op, i);
        image->inputs[i] = input ? (int32_t)i : MICA_NO_TENSOR;
        if (input)
            image->tensors[i] = *input;
    }
    make_image(mica_op_input(graph, op, data), &image->tensors[data]);
    make_image(mica_op_output(graph, op, 0), &image->tensors[image->output]);
    image->op.inputs = image->inputs;
    image->op.outputs = &image->output;
    image->graph.tensors = image->tensors;
    image->graph.tensor_count = op->input_count + 1;
    image->graph.ops = &image->op;
    image->graph.op_count = 1;
}

/* One image: its bytes outside are a piece of the batch's. */
static int lower_image(struct viv_plan *plan, uint32_t image, int (*lower)(struct viv_plan *plan, uint32_t op),
                       struct viv_ref in, struct viv_ref out, uint64_t offset)
{
    uint32_t tensor = plan->graph->tensor_count - 2;
    const struct mica_tensor *result = &plan->graph->tensors[tensor + 1];
    struct viv_ref ref;
    plan->values[tensor] = plan->values[tensor + 1] =
        (struct viv_value){{VIV_NONE, 0}, {VIV_NONE, 0}, VIV_NONE, VIV_NONE};
    plan->values[tensor].nhwc = in;
    int error = lower(plan, image);
    if (!error)
        error = viv_clamp_finish(plan, image);
    if (!error)
        error = viv_need_nhwc(plan, tensor + 1, image, &ref);
    return error ? error : viv_place(plan, ref, result->bytes, out, offset, viv_tensor_zero(result), image);
}

int viv_lower_batch(struct viv_plan *plan, uint32_t op_index, int (*lower)(struct viv_plan *plan, uint32_t op))
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t input = (uint32_t)op->inputs[mica_op_data_input(op)], output = (uint32_t)op->outputs[0];
    const struct mica_tensor *from = &plan->graph->tensors[input], *to = &plan->graph->tensors[output];
    uint32_t images = (uint32_t)from->dims[0], first = plan->job_count;
    struct viv_ref in, out;
    int error = viv_need_nhwc(plan, input, op_index, &in);
    if (!error)
        error = viv_make_nhwc(plan, output, &out);
    for (uint32_t i = 0; !error && i < images; i++) {
        uint32_t image = viv_batch_select(&plan->batch, op_index);
        error = lower_image(plan, image, lower, in, out, to->bytes / images * i);
        in.offset += from->bytes / images;
    }
    for (uint32_t i = first; i < plan->job_count; i++)
        plan->jobs[i].op = op_index;
    return error;
}
