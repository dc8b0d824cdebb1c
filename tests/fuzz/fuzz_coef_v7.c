/* SPDX-License-Identifier: MIT */
/* The V7 coefficient decoder: six bytes of geometry, then the buffer. */
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/sim/coef_v7.h"

#define GEOMETRY 6u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < GEOMETRY)
        return 0;
    const struct viv_coef_shape shape = {
        .cores = 8,
        .kernels_per_core = data[0] & 127,
        .kernel_w = data[1] & 15,
        .kernel_h = data[1] >> 4,
        .channels = data[2] | (uint32_t)data[3] << 8,
        .zero_run_bits = data[4] & 7,
        .zero_point = data[5],
    };
    uint8_t *buffer = malloc(size - GEOMETRY + 1); /* of the very size, so that the sanitizer sees each byte too far */
    struct viv_coefs coefs;
    if (!buffer)
        return 0;
    memcpy(buffer, data + GEOMETRY, size - GEOMETRY);
    if (!viv_coef_v7_decode(buffer, size - GEOMETRY, &shape, 0, NULL, NULL, &coefs)) {
        if (coefs.nonzero > (uint64_t)coefs.kernels * coefs.taps)
            abort();
        viv_coefs_release(&coefs);
    }
    free(buffer);
    return 0;
}
