/* SPDX-License-Identifier: MIT */
/* Images of one pixel that become larger: copies. */
#include <errno.h>

#include "npu/vivante/compile/coef.h"
#include "npu/vivante/compile/requant.h"
#include "npu/vivante/compile/resize.h"
#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define MOST_COPIES (1 << 20) /* in jobs of up to VIV_MAX_CHANNELS kernels, coefficients of their own each */

bool viv_resize_is_single(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    return in->dims[1] == 1 && in->dims[2] == 1 && in->dims[3] <= (int32_t)VIV_MAX_IMAGE &&
           (int64_t)out->dims[1] * out->dims[2] <= MOST_COPIES;
}

/* 2x2 kernels of which the first tap counts: each makes a copy. */
static struct viv_weights *make_copies(struct viv_plan *plan, uint32_t count, uint8_t zero, uint32_t *index)
{
    struct viv_weights *weights = viv_plan_weights(plan, index);
    if (!weights)
        return NULL;
    weights->kernels = count;
    weights->channels = weights->phases = 1;
    weights->taps = weights->kernel_stride = 4;
    weights->tap_stride = 1;
    for (int16_t i = 0; i < 4; i++)
        weights->map[0][i] = i;
    weights->owned = mica_new_array(count, 4);
    weights->bias = mica_new_array(count, sizeof(*weights->bias));
    if (!weights->owned || !weights->bias) {
        mica_fail_nomem(plan->log);
        return NULL;
    }
    for (uint32_t k = 0; k < count; k++) {
        weights->owned[4 * k] = 1;
        weights->bias[k] = plan->chip->bias_input_zero - zero;
    }
    weights->source = weights->data = weights->owned;
    return weights;
}

/* Outside, the channels are a row of an image of one channel; every pixel of the output is a copy of it. */
int viv_lower_single(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *in = mica_op_input(plan->graph, op, 0), *out = mica_op_output(plan->graph, op, 0);
    uint32_t channels = (uint32_t)in->dims[3], pixels = (uint32_t)(out->bytes / channels);
    uint32_t most = pixels < VIV_MAX_CHANNELS ? pixels : VIV_MAX_CHANNELS;
    struct viv_nn nn = {.kernel_w = 2, .kernel_h = 2, .in_w = channels, .in_h = 1, .in_c = 1};
    struct viv_requant one = {0};
    viv_requant_factor(plan->chip, 1, &one);
    nn.post_multiplier = one.multiplier;
    nn.post_shift = one.shift;
    nn.in_zero_point = nn.out_zero_point = viv_zero_point(in);
    nn.out_w = nn.in_x_stride = nn.out_x_stride = channels;
    nn.out_h = nn.in_y_stride = nn.out_y_stride = 1;
    int error = viv_need_nhwc(plan, (uint32_t)op->inputs[0], op_index, &nn.in);
    if (!error)
        error = viv_make_nhwc(plan, (uint32_t)op->outputs[0], &nn.out);
    const struct viv_weights *weights = error ? NULL : make_copies(plan, most, nn.in_zero_point, &nn.weights);
    if (!weights)
        return error ? error : -ENOMEM;
    struct viv_weights_profile profile = viv_weights_profile(weights);
    for (uint32_t first = 0; first < pixels; first += most) {
        nn.out_c = pixels - first < most ? pixels - first : most;
        viv_tile_choose(plan->chip, &nn, viv_coef_estimate(plan->chip, nn.out_c, 1, 4, &profile), profile.density);
        struct viv_job *job = viv_plan_job(plan, op_index, true);
        if (!job)
            return -ENOMEM;
        job->nn = nn;
        nn.out.offset += (uint64_t)nn.out_c * channels;
    }
    return 0;
}
