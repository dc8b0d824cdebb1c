/* SPDX-License-Identifier: MIT */
/*
 * Decoded coefficients of either format in the form that the kernels take, kept
 * while the buffer they came from holds the same bytes.
 */
#ifndef MICA_VIVANTE_SIM_WEIGHTS_H
#define MICA_VIVANTE_SIM_WEIGHTS_H

#include <stdbool.h>

#include "npu/vivante/sim/coef_huffman.h"
#include "npu/vivante/sim/coef_v7.h"

/* A coefficient buffer and what the descriptor says about it. */
struct viv_weights_source {
    uint64_t address, size;
    enum viv_coef_format format;
    struct viv_huffman_shape shape; /* for both formats */
};

struct viv_weights {
    uint32_t kernels;
    uint32_t taps; /* places (channel, row, column) of the image that a kernel may look at */
    uint64_t stream_bytes;
    double density;   /* share of the weights that differ from the zero point */
    uint32_t *bias;   /* [kernel], for sums over the image as it is in memory */
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

/* Bytes that have to be there for viv_weights_size(), and the size of the whole buffer by what they say. */
size_t viv_weights_header_bytes(const struct viv_weights_source *source);
int viv_weights_size(const struct viv_weights_source *source, const uint8_t *header, struct mica_log *log,
                     uint64_t *size);

/*
 * The weights in `buffer`, which is what `source` describes, decoded if they
 * aren't in the cache. They stay valid until the next call.
 */
int viv_weights_get(struct viv_weights_cache *cache, const uint8_t *buffer, const struct viv_weights_source *source,
                    struct mica_threads *threads, struct mica_log *log, const struct viv_weights **weights);
void viv_weights_cache_clear(struct viv_weights_cache *cache);

#endif
