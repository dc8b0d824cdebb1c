/* SPDX-License-Identifier: MIT */
/* What an operation costs, from its shapes alone and as one job: for the cost model of partitions. */
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/hw/timing.h"
#include "util/checked.h"

#define TILE_ROWS 4u
#define LANES 64.0 /* of an NN core */
/* Input channels that a depthwise kernel is written with where there is no depthwise mode (section 7.4). */
#define DEPTHWISE_CHANNELS 16u

static uint32_t dimension(const struct mica_tensor *tensor, uint32_t from_last)
{
    return tensor->rank > from_last ? (uint32_t)tensor->dims[tensor->rank - 1 - from_last] : 1;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The layer as it would be without padding, strides or tiling that fits its buffers: about right is enough here. */
static double nn_us(const struct mica_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    const struct viv_chip *parameters = chip->parameters;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *weights = mica_op_input(graph, op, 1),
                             *out = mica_op_output(graph, op, 0);
    bool image = op->kind != MICA_OP_FULLY_CONNECTED, depthwise = op->kind == MICA_OP_DEPTHWISE_CONV_2D;
    struct viv_nn_job job = {
        .in_w = image ? dimension(out, 1) : 1,
        .in_h = image ? dimension(out, 2) : 1,
        .in_channels = image ? dimension(in, 0) : dimension(weights, 0),
        .kernel_w = image ? smaller((uint32_t)op->window.kernel_x, parameters->max_kernel) : 1,
        .kernel_h = image ? smaller((uint32_t)op->window.kernel_y, parameters->max_kernel) : 1,
        .out_channels = dimension(out, 0),
        .coefficient_bytes = weights->bytes,
        .density = 1,
        .depthwise = depthwise && parameters->hardware_depthwise,
        .image_cached = true,
        .kernel_cached = true,
    };
    if (depthwise && !job.depthwise) {
        job.in_channels = smaller(job.in_channels, DEPTHWISE_CHANNELS);
        job.density = 1.0 / job.in_channels;
    }
    job.in_row_bytes = job.in_w;
    job.in_plane_bytes = job.in_w * job.in_h;
    job.out_w = job.in_w;
    job.out_h = job.in_h;
    job.tile_x = smaller(job.out_w, parameters->max_tile);
    job.tile_y = smaller(job.out_h, TILE_ROWS);
    job.kernels_per_core =
        smaller((uint32_t)mica_cdiv(job.out_channels, parameters->nn_cores), parameters->max_superblock);
    return (double)viv_nn_cost(parameters, &viv_default_memory, &job).cycles / chip->clock_mhz;
}

/* Anything else: its values moved once, its multiplications at one a lane and cycle. */
static double other_us(const struct mica_chip *chip, const struct mica_graph *graph, const struct mica_op *op)
{
    const struct viv_chip *parameters = chip->parameters;
    uint64_t bytes = mica_op_output(graph, op, 0)->bytes / parameters->tp_cores;
    struct viv_tp_job job = {.elements = bytes, .in_bytes = bytes, .out_bytes = bytes};
    double nn_cycles = (double)mica_op_macs(graph, op) / (LANES * parameters->nn_cores);
    return ((double)viv_tp_cost(parameters, &job).cycles + nn_cycles) / chip->clock_mhz;
}

double viv_operation_us(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op_index)
{
    const struct mica_op *op = &graph->ops[op_index];
    switch (op->kind) {
    case MICA_OP_CONV_2D:
    case MICA_OP_DEPTHWISE_CONV_2D:
    case MICA_OP_FULLY_CONNECTED:
        return nn_us(chip, graph, op);
    case MICA_OP_RESHAPE:
    case MICA_OP_CONCATENATION:
        return 0; /* mostly addresses */
    default:
        return other_us(chip, graph, op);
    }
}
