/* SPDX-License-Identifier: MIT */
/*
 * Decoded coefficients in the form that the kernels take, kept while the
 * buffer they came from holds the same bytes.
 */
#ifndef MICA_VIVANTE_SIM_WEIGHTS_H
#define MICA_VIVANTE_SIM_WEIGHTS_H

#include <stdbool.h>

#include "npu/vivante/sim/coef_v7.h"

struct viv_weights {
    uint32_t kernels, taps;
    uint64_t stream_bytes;
    double density;   /* share of the weights that differ from the zero point */
    uint32_t *bias;   /* [kernel] */
    uint32_t *offset; /* [kernel] */
    int16_t *values;  /* weight minus zero point; dense: [kernel / 4][pair][4][2]; sparse: as `places` */
    /* Sparse only: NULL `places` means dense. */
    uint32_t *places; /* tap numbers (channel, row, column), two a pair */
    size_t *first;    /* [kernels + 1]: a kernel's pairs */
    size_t bytes;     /* memory behind the pointers */
};

struct viv_weights_entry;

struct viv_weights_cache {
    struct viv_weights_entry *newest;
    size_t bytes;
};

/*
 * The weights in `buffer` (`size` bytes at device address `address`), decoded
 * if they aren't in the cache. They stay valid until the next call.
 */
int viv_weights_get(struct viv_weights_cache *cache, const uint8_t *buffer, uint64_t size, uint64_t address,
                    const struct viv_coef_shape *shape, struct mica_threads *threads, struct mica_log *log,
                    const struct viv_weights **weights);
void viv_weights_cache_clear(struct viv_weights_cache *cache);

#endif
