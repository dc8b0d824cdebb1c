/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/lower.h"

#include <errno.h>

struct viv_shape viv_shape_of(const struct mica_tensor *tensor)
{
    struct viv_shape shape = {1, 1, 1};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        uint32_t size = (uint32_t)tensor->dims[i];
        if (i + 1 == tensor->rank)
            shape.c = size;
        else if (i + 2 == tensor->rank)
            shape.w = size;
        else
            shape.h *= size;
    }
    return shape;
}

bool viv_shape_transposable(struct viv_shape shape)
{
    return shape.w <= INT16_MAX && shape.h <= INT16_MAX && shape.c <= INT16_MAX;
}

uint8_t viv_tensor_zero(const struct mica_tensor *tensor)
{
    if (tensor->quant.count)
        return (uint8_t)(tensor->quant.zero_point[0] + (tensor->type == MICA_TYPE_INT8 ? 128 : 0));
    return 0;
}

/* A reshape that keeps the channels leaves planes as they are. */
static bool same_channels(const struct viv_plan *plan, uint32_t a, uint32_t b)
{
    return viv_shape_of(&plan->graph->tensors[a]).c == viv_shape_of(&plan->graph->tensors[b]).c;
}

static bool flat(const struct viv_plan *plan, uint32_t tensor)
{
    return viv_shape_flat(viv_shape_of(&plan->graph->tensors[tensor]));
}

/* Records a value in one layout, and in the other if that is the same. */
static void set_value(struct viv_plan *plan, uint32_t tensor, bool planar, struct viv_ref ref)
{
    struct viv_value *value = &plan->values[tensor];
    if (planar || flat(plan, tensor))
        value->planar = ref;
    if (!planar || flat(plan, tensor))
        value->nhwc = ref;
}

/*
 * Reshapes make no jobs: their output is found through their input. A chain of
 * them is followed to where the value is; returns that tensor, or VIV_NONE.
 */
static uint32_t find(const struct viv_plan *plan, uint32_t tensor, bool planar)
{
    for (uint32_t t = tensor;;) {
        const struct viv_value *value = &plan->values[t];
        if ((planar ? value->planar : value->nhwc).storage != VIV_NONE)
            return t;
        if (value->reshape_of == VIV_NONE || (planar && !same_channels(plan, t, value->reshape_of)))
            return VIV_NONE;
        t = value->reshape_of;
    }
}

bool viv_has_nhwc(const struct viv_plan *plan, uint32_t tensor)
{
    return find(plan, tensor, false) != VIV_NONE;
}

bool viv_has_planar(const struct viv_plan *plan, uint32_t tensor)
{
    return find(plan, tensor, true) != VIV_NONE || (flat(plan, tensor) && viv_has_nhwc(plan, tensor));
}

int viv_make_planar(struct viv_plan *plan, uint32_t tensor, struct viv_ref *ref)
{
    int error = viv_plan_storage(plan, plan->graph->tensors[tensor].bytes, ref);
    if (!error)
        set_value(plan, tensor, true, *ref);
    return error;
}

int viv_make_nhwc(struct viv_plan *plan, uint32_t tensor, struct viv_ref *ref)
{
    int error = viv_plan_storage(plan, plan->graph->tensors[tensor].bytes, ref);
    if (!error)
        set_value(plan, tensor, false, *ref);
    return error;
}

int viv_need_nhwc(struct viv_plan *plan, uint32_t tensor, uint32_t op, struct viv_ref *ref)
{
    uint32_t found = find(plan, tensor, false);
    if (found != VIV_NONE) {
        *ref = plan->values[found].nhwc;
        set_value(plan, tensor, false, *ref);
        return 0;
    }
    /* Nowhere along the reshapes: the tensor they began with is planar only. */
    uint32_t base = tensor;
    while (plan->values[base].reshape_of != VIV_NONE)
        base = plan->values[base].reshape_of;
    if (plan->values[base].planar.storage == VIV_NONE)
        return mica_fail(plan->log, -EINVAL, "operation %u reads tensor \"%s\" before anything has made it", op,
                         plan->graph->tensors[tensor].name);
    const struct mica_tensor *t = &plan->graph->tensors[base];
    struct viv_ref planar = plan->values[base].planar;
    int error = viv_make_nhwc(plan, base, ref);
    if (!error)
        error = viv_tp_detranspose(plan, op, viv_shape_of(t), planar, *ref, viv_tensor_zero(t));
    set_value(plan, tensor, false, *ref);
    return error;
}

int viv_need_planar(struct viv_plan *plan, uint32_t tensor, uint32_t op, struct viv_ref *ref)
{
    uint32_t found = find(plan, tensor, true);
    if (found != VIV_NONE) {
        *ref = plan->values[found].planar;
        set_value(plan, tensor, true, *ref);
        return 0;
    }
    struct viv_ref nhwc;
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    int error = viv_need_nhwc(plan, tensor, op, &nhwc);
    if (error || flat(plan, tensor)) {
        *ref = nhwc;
        return error;
    }
    error = viv_make_planar(plan, tensor, ref);
    return error ? error : viv_tp_transpose(plan, op, viv_shape_of(t), nhwc, *ref, viv_tensor_zero(t));
}

int viv_place(struct viv_plan *plan, struct viv_ref ref, uint64_t size, struct viv_ref parent, uint64_t offset,
              uint8_t zero_point, uint32_t op)
{
    if (viv_plan_claim(plan, ref, size, parent.storage, parent.offset + offset))
        return 0;
    struct viv_ref copy;
    int error = viv_plan_storage(plan, size, &copy);
    if (error)
        return error;
    viv_plan_claim(plan, copy, size, parent.storage, parent.offset + offset);
    return viv_tp_copy(plan, op, size, ref, copy, zero_point);
}
