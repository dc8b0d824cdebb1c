/* SPDX-License-Identifier: MIT */
/* Decodes arbitrary bytes as a Huffman coefficient buffer. The first eight bytes say for which job. */
#include "npu/vivante/sim/coef_huffman.h"

#include <stdlib.h>
#include <string.h>

#define JOB_BYTES 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct viv_huffman_shape shape_of(const uint8_t *job)
{
    return (struct viv_huffman_shape){
        .chip = job[0] & 1 ? &viv_s905d3 : &viv_imx8mp,
        .depthwise = job[0] >> 1 & 1,
        .kernels_per_core = job[1] & 127,
        .kernel_w = job[2] & 15,
        .kernel_h = job[2] >> 4,
        .channels = job[3] | (uint32_t)(job[0] >> 2) << 8,
        .zero_point = job[4],
        .kernels = job[5] | (job[6] & 63u) << 8,
        .plane = job[7],
    };
}

/* What comes out of a good buffer must be all there. */
static void touch(const struct viv_coefs *coefs)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < (size_t)coefs->kernels * coefs->taps; i++)
        sum += coefs->weights[i];
    for (uint32_t i = 0; i < coefs->kernels; i++)
        sum += coefs->bias[i] + (uint64_t)coefs->offset[i];
    if (coefs->nonzero > (uint64_t)coefs->kernels * coefs->taps || sum == UINT64_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mica_log log = {.sink = NULL};
    struct viv_coefs coefs;
    uint64_t expected;
    if (size < JOB_BYTES)
        return 0;
    struct viv_huffman_shape shape = shape_of(data);
    size -= JOB_BYTES;
    uint8_t *copy = malloc(size ? size : 1); /* exactly as long as the buffer */
    if (!copy)
        return 0;
    memcpy(copy, data + JOB_BYTES, size);
    if (size >= VIV_HUFFMAN_HEADER_BYTES)
        viv_coef_huffman_size(copy, &shape, 0, &log, &expected);
    if (!viv_coef_huffman_decode(copy, size, &shape, 0, NULL, &log, &coefs)) {
        touch(&coefs);
        viv_coefs_release(&coefs);
    }
    free(copy);
    return 0;
}
