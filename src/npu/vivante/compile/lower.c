/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/lower.h"

#include <errno.h>

#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/elementwise.h"

static int lower_inputs(struct viv_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    for (uint32_t i = 0; i < partition->input_count; i++) {
        struct viv_ref ref;
        int error = viv_make_nhwc(plan, partition->inputs[i], &ref);
        if (error)
            return error;
        plan->storages[ref.storage].is_input = true;
        plan->storages[ref.storage].external = true;
    }
    return 0;
}

/* Then planes follow each other, and most inputs can be made where they belong. */
static bool joins_channels(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    return op->axis == (int32_t)out->rank - 1 && viv_shape_transposable(viv_shape_of(out));
}

static int lower_op(struct viv_plan *plan, uint32_t op)
{
    switch (plan->graph->ops[op].kind) {
    case MICA_OP_CONV_2D:
        return viv_lower_conv(plan, op);
    case MICA_OP_DEPTHWISE_CONV_2D:
        return viv_lower_depthwise(plan, op);
    case MICA_OP_FULLY_CONNECTED:
        return viv_lower_fully_connected(plan, op);
    case MICA_OP_ADD:
    case MICA_OP_SUB:
    case MICA_OP_MUL:
        return viv_constant_input(plan->graph, &plan->graph->ops[op]) >= 0 ? viv_lower_constant(plan, op)
                                                                           : viv_lower_add(plan, op);
    case MICA_OP_RESIZE_BILINEAR:
        return viv_lower_bilinear(plan, op);
    case MICA_OP_MAXIMUM:
    case MICA_OP_MINIMUM:
        return viv_lower_maximum(plan, op);
    case MICA_OP_QUANTIZE:
    case MICA_OP_RELU:
    case MICA_OP_RELU6:
    case MICA_OP_RELU_N1_TO_1:
    case MICA_OP_RELU_0_TO_1:
        return viv_lower_unary(plan, op);
    case MICA_OP_LEAKY_RELU:
    case MICA_OP_ABS:
        return viv_lower_fold(plan, op);
    case MICA_OP_TRANSPOSE_CONV:
        return viv_lower_transpose_conv(plan, op);
    case MICA_OP_AVERAGE_POOL_2D:
    case MICA_OP_MEAN:
        return viv_lower_average(plan, op);
    case MICA_OP_MAX_POOL_2D:
    case MICA_OP_REDUCE_MAX:
        return viv_lower_max_pool(plan, op);
    case MICA_OP_CONCATENATION:
        return joins_channels(plan->graph, &plan->graph->ops[op]) ? viv_lower_concatenation(plan, op)
                                                                  : viv_lower_move(plan, op);
    case MICA_OP_SLICE:
    case MICA_OP_SPLIT:
    case MICA_OP_PACK:
    case MICA_OP_UNPACK:
    case MICA_OP_TRANSPOSE:
    case MICA_OP_MIRROR_PAD:
    case MICA_OP_GATHER:
    case MICA_OP_GATHER_ND:
    case MICA_OP_REVERSE:
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
    case MICA_OP_RESIZE_NEAREST:
        return viv_lower_move(plan, op);
    case MICA_OP_PAD:
        return viv_lower_pad(plan, op);
    case MICA_OP_RESHAPE:
        return viv_lower_reshape(plan, op);
    default:
        return mica_fail(plan->log, -ENOTSUP, "%s can't be compiled for the NPU", plan->graph->ops[op].type);
    }
}

static int lower_output(struct viv_plan *plan, uint32_t tensor)
{
    struct viv_ref ref, copy;
    uint32_t op = plan->values[tensor].op;
    if (op == VIV_NONE)
        return mica_fail(plan->log, -EINVAL, "partition output \"%s\" is computed by none of its operations",
                         plan->graph->tensors[tensor].name);
    int error = viv_need_nhwc(plan, tensor, op, &ref);
    if (!error && plan->storages[ref.storage].is_input) { /* a reshaped input: the host must not get its own bytes */
        error = viv_make_nhwc(plan, tensor, &copy);
        if (!error)
            error = viv_tp_copy(plan, op, plan->graph->tensors[tensor].bytes, ref, copy, 0);
        ref = copy;
    }
    if (!error)
        plan->storages[viv_plan_resolve(plan, ref).storage].external = true;
    return error;
}

int viv_lower(struct viv_plan *plan)
{
    const struct mica_partition *partition = plan->partition;
    int error = lower_inputs(plan);
    for (uint32_t i = 0; !error && i < partition->op_count; i++) {
        uint32_t op = partition->ops[i];
        error = lower_op(plan, op);
        if (!error)
            error = viv_clamp_finish(plan, op);
        for (uint32_t j = 0; !error && j < plan->graph->ops[op].output_count; j++)
            plan->values[plan->graph->ops[op].outputs[j]].op = op;
    }
    for (uint32_t i = 0; !error && i < partition->output_count; i++)
        error = lower_output(plan, partition->outputs[i]);
    return error;
}
