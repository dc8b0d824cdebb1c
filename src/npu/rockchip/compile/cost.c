/* SPDX-License-Identifier: MIT */
/* What an operation costs, from its shapes alone and as one task: for the cost model of partitions. */
#include "npu/rockchip/compile/plan.h"
#include "npu/rockchip/hw/timing.h"

static uint64_t channels_of(const struct mica_tensor *tensor)
{
    return tensor && tensor->rank ? (uint64_t)tensor->dims[tensor->rank - 1] : 1;
}

static uint64_t compute_cycles(const struct rk_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, mica_op_data_input(op)),
                             *out = mica_op_output(graph, op, 0);
    if (!in || !out || !mica_op_macs(graph, op))
        return 0;
    uint32_t channels = (uint32_t)channels_of(out);
    uint64_t pixels = out->bytes / channels;
    if (op->kind == MICA_OP_DEPTHWISE_CONV_2D || op->kind == MICA_OP_CONV_2D) {
        uint32_t taps = (uint32_t)op->window.kernel_x * (uint32_t)op->window.kernel_y;
        return op->kind == MICA_OP_CONV_2D ? rk_direct_cycles(chip, pixels, taps, (uint32_t)channels_of(in), channels)
                                           : rk_depthwise_cycles(chip, pixels, taps, channels);
    }
    /* As a 1x1 convolution of as many multiplications. */
    uint64_t inputs = mica_op_macs(graph, op) / out->bytes;
    return rk_direct_cycles(chip, pixels, 1, inputs < UINT32_MAX ? (uint32_t)inputs : UINT32_MAX, channels);
}

double rk_operation_us(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op_index)
{
    const struct rk_chip *parameters = chip->parameters;
    const struct mica_op *op = &graph->ops[op_index];
    double bytes = 0;
    if (op->kind == MICA_OP_RESHAPE)
        return 0;
    for (uint32_t i = 0; i < op->input_count; i++)
        bytes += mica_op_input(graph, op, i) ? (double)mica_op_input(graph, op, i)->bytes : 0;
    for (uint32_t i = 0; i < op->output_count; i++)
        bytes += mica_op_output(graph, op, i) ? (double)mica_op_output(graph, op, i)->bytes : 0;
    double compute_us = (double)compute_cycles(parameters, graph, op) / chip->clock_mhz;
    double memory_us = bytes / (parameters->bytes_per_ns * 1000);
    return (compute_us > memory_us ? compute_us : memory_us) + parameters->task_us;
}
