/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/query.h"

#include <stdarg.h>
#include <stdio.h>

#include "npu/vivante/compile/lower.h"
#include "npu/vivante/compile/requant.h"

#define MAX_KERNEL_CHANNELS 0xfffffu /* 20 bits */

bool viv_refuse(const struct viv_query *query, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(query->reason, query->size, format, arguments);
    va_end(arguments);
    return false;
}

bool viv_is_byte(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_UINT8 || tensor->type == MICA_TYPE_INT8;
}

/* A tensor that the device computes or reads as 8-bit data. */
bool viv_check_data(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!tensor)
        return viv_refuse(query, "the %s tensor is missing", what);
    if (tensor->problem)
        return viv_refuse(query, "the %s tensor can't be used: %s", what, tensor->problem);
    if (!viv_is_byte(tensor))
        return viv_refuse(query, "the %s is %s; the NPU computes with uint8 and int8 only", what,
                          mica_type_name(tensor->type));
    if (tensor->data)
        return viv_refuse(query, "the %s is a constant; the NPU reads only computed tensors there", what);
    return true;
}

bool viv_check_quantized(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!viv_check_data(query, tensor, what))
        return false;
    if (tensor->quant.count != 1)
        return viv_refuse(query, "the %s needs one scale and zero point for the whole tensor", what);
    return true;
}

bool viv_check_same_type(const struct viv_query *query, const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->type == b->type || viv_refuse(query, "inputs and output mix uint8 and int8");
}

/* An image of batch 1 that the TP cores can transpose, should a neighbour need it in the other layout. */
bool viv_check_image(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    if (tensor->rank == 4 && tensor->dims[0] != 1)
        return viv_refuse(query, "the %s has batch size %d, which is not supported here", what, tensor->dims[0]);
    return viv_check_layouts(query, tensor, what);
}

bool viv_check_layouts(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    struct viv_shape shape = viv_shape_of(tensor);
    if (!viv_shape_flat(shape) && !viv_shape_transposable(shape))
        return viv_refuse(query, "the %s has a dimension above %d, too large for the TP cores", what, INT16_MAX);
    return true;
}

bool viv_check_image4(const struct viv_query *query, const struct mica_tensor *tensor, const char *what)
{
    if (!viv_check_quantized(query, tensor, what))
        return false;
    if (tensor->rank != 4)
        return viv_refuse(query, "the %s has rank %u, only images of rank 4 are supported", what, tensor->rank);
    return viv_check_image(query, tensor, what);
}

bool viv_check_scale(const struct viv_query *query, float in, float weight, float out)
{
    struct viv_requant requant;
    return viv_requant_make(query->chip, in, weight, out, &requant) ||
           viv_refuse(query, "the scales %g, %g and %g give a factor outside the NN cores' range", (double)in,
                      (double)weight, (double)out);
}

bool viv_check_channels(const struct viv_query *query, uint32_t inputs, uint32_t outputs)
{
    if (outputs > VIV_MAX_CHANNELS)
        return viv_refuse(query, "%u output channels, the NN cores count to %u", outputs, VIV_MAX_CHANNELS);
    if (inputs > MAX_KERNEL_CHANNELS)
        return viv_refuse(query, "%u input channels, the NN cores count to %u", inputs, MAX_KERNEL_CHANNELS);
    return true;
}

bool viv_same_shape(const struct mica_tensor *a, const struct mica_tensor *b)
{
    bool same = a->rank == b->rank;
    for (uint32_t i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

bool viv_same_quantization(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->type == b->type && a->quant.scale[0] == b->quant.scale[0] &&
           a->quant.zero_point[0] == b->quant.zero_point[0];
}
