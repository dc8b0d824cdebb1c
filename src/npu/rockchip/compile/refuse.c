/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/refuse.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "util/checked.h"

int rk_refuse(char *reason, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, size, format, arguments);
    va_end(arguments);
    return -ENOTSUP;
}

/* Most channels a surface has on any chip: a cube may need so much more memory than the tensor. */
#define CHANNEL_STEP 16u

const char *rk_tensor_problem(const struct mica_tensor *tensor)
{
    if (!tensor)
        return "it is missing";
    if (tensor->problem)
        return tensor->problem;
    if (tensor->type != MICA_TYPE_UINT8 && tensor->type != MICA_TYPE_INT8)
        return "the NPU computes with uint8 and int8 only";
    if (tensor->quant.count != 1)
        return "it needs one scale and zero point for the whole tensor";
    struct rk_shape shape = rk_shape_of(tensor);
    if ((uint64_t)shape.w * shape.h > MICA_MAX_TENSOR_BYTES / mica_align(shape.c, CHANNEL_STEP))
        return "its channels, padded to what the NPU's memory layout has, need too much memory";
    return NULL;
}

const char *rk_image_problem(const struct mica_tensor *tensor)
{
    const char *problem = rk_tensor_problem(tensor);
    if (problem)
        return problem;
    if (tensor->rank < 3 || tensor->rank > 4)
        return "it is no image of rows, columns and channels";
    if (tensor->rank == 4 && tensor->dims[0] != 1)
        return "only batch size 1 is supported";
    return NULL;
}

int rk_check_tensors(const struct mica_graph *graph, const struct mica_op *op, uint32_t first, uint32_t inputs,
                     char *reason, size_t size)
{
    for (uint32_t i = first; i < inputs; i++) {
        const char *problem = rk_tensor_problem(mica_op_input(graph, op, i));
        if (problem)
            return rk_refuse(reason, size, "input %u can't be used: %s", i, problem);
    }
    for (uint32_t i = 0; i < op->output_count; i++) {
        const char *problem = rk_tensor_problem(mica_op_output(graph, op, i));
        if (problem)
            return rk_refuse(reason, size, "output %u can't be used: %s", i, problem);
    }
    return 0;
}

bool rk_same_quantization(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->quant.scale[0] == b->quant.scale[0] && rk_stored_zero(a) == rk_stored_zero(b);
}

static int32_t clamp(double value)
{
    return value < INT8_MIN ? INT8_MIN : value > INT8_MAX ? INT8_MAX : (int32_t)value;
}

void rk_activation_range(enum mica_activation activation, const struct mica_tensor *out, int32_t *min, int32_t *max)
{
    double scale = (double)out->quant.scale[0], zero = rk_stored_zero(out);
    *min = activation == MICA_ACT_NONE           ? INT8_MIN
           : activation == MICA_ACT_RELU_N1_TO_1 ? clamp(zero + round(-1 / scale))
                                                 : clamp(zero);
    *max = activation == MICA_ACT_RELU6          ? clamp(zero + round(6 / scale))
           : activation == MICA_ACT_RELU_N1_TO_1 ? clamp(zero + round(1 / scale))
                                                 : INT8_MAX;
}
