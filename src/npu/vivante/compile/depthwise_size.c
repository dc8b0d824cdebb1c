/* SPDX-License-Identifier: MIT */
/*
 * On chips with V7 streams the zeros between the channels of a group are most
 * of what is stored, but each job has a header and each core a padded stream:
 * which size of a group is best depends on how well these blocks fill up.
 */
#include "npu/vivante/compile/depthwise_size.h"

#include <stdlib.h>

#include "npu/vivante/compile/coef.h"
#include "util/checked.h"

#define MOST_PER_CORE 8u
/* A job is worth as many bytes, else nearly all groups would be one channel a core. */
#define JOB_BYTES 100u

static bool encoded_bytes(const struct viv_chip *chip, const struct viv_weights *weights, uint32_t group,
                          uint64_t *bytes)
{
    *bytes = 0;
    for (uint32_t first = 0; first < weights->kernels; first += group) {
        uint32_t left = weights->kernels - first;
        struct viv_kernel_set set = {.count = left < group ? left : group, .stored_channels = weights->phases};
        set.channels = set.count * set.stored_channels;
        set.taps = weights->taps;
        set.diagonal = true;
        set.zero_point = weights->zero_point;
        set.data = weights->data + first * viv_weights_per_kernel(weights);
        set.bias = weights->bias + first;
        set.plane = 1;
        struct viv_coef_job job = {.kernels_per_core = mica_cdiv(set.count, chip->nn_cores)};
        struct viv_coefficients coefficients;
        if (!viv_coef_encode(chip, &set, &job, &coefficients))
            return false;
        *bytes += coefficients.size + JOB_BYTES;
        free(coefficients.data);
    }
    return true;
}

int viv_depthwise_smallest_group(const struct viv_plan *plan, struct viv_weights *weights, uint32_t *group)
{
    uint64_t best = UINT64_MAX;
    if (!viv_weights_prepare(weights))
        return mica_fail_nomem(plan->log);
    for (uint32_t count = 1; count <= MOST_PER_CORE; count++) {
        uint32_t size = count * plan->chip->nn_cores;
        uint64_t bytes;
        size = size < weights->kernels ? size : weights->kernels;
        if (!encoded_bytes(plan->chip, weights, size, &bytes))
            return mica_fail_nomem(plan->log);
        if (bytes < best) {
            best = bytes;
            *group = size;
        }
    }
    return 0;
}
