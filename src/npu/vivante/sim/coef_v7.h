/* SPDX-License-Identifier: MIT */
/*
 * Decoder of V7 coefficient buffers (specification, section 5.1). Input is
 * untrusted: nothing is read past the end and nothing is allocated that the
 * buffer's bytes can't fill.
 */
#ifndef MICA_VIVANTE_SIM_COEF_V7_H
#define MICA_VIVANTE_SIM_COEF_V7_H

#include <stddef.h>
#include <stdint.h>

#include "util/log.h"
#include "util/threads.h"

#define VIV_MAX_CORES 16u
/* Weights of one kernel and of one job that a simulator takes on; real jobs stay far below. */
#define VIV_MAX_TAPS (UINT32_C(1) << 20)
#define VIV_MAX_WEIGHTS (UINT32_C(1) << 27)

/* What the descriptor and the chip say about a buffer. */
struct viv_coef_shape {
    uint32_t cores, kernels_per_core; /* cores <= VIV_MAX_CORES */
    uint32_t kernel_w, kernel_h, channels;
    uint32_t zero_run_bits; /* longest that the chip knows */
    uint8_t zero_point;     /* of the weights */
};

struct viv_coefs {
    uint32_t kernels;      /* of all cores: core 0's first, in stream order */
    uint32_t taps;         /* weights of a kernel */
    uint64_t nonzero;      /* weights that differ from the zero point */
    uint64_t stream_bytes; /* sum of the cores' streams */
    uint8_t *weights;      /* [kernel][channel][row][column] */
    uint32_t *bias;        /* [kernel], two's complement, with the input's zero point folded in */
    uint32_t *offset;      /* [kernel], bytes from the job's output address */
};

/* Bytes before the first stream. */
size_t viv_coef_v7_header_bytes(uint32_t cores);

/* Size of the whole buffer from its header; -EIO when the header makes no sense. `address` is for messages. */
int viv_coef_v7_size(const uint8_t *header, uint32_t cores, uint64_t address, struct mica_log *log, uint64_t *size);

/* Decodes a buffer of `size` bytes, as viv_coef_v7_size() gave it; on success `coefs` owns memory. */
int viv_coef_v7_decode(const uint8_t *buffer, uint64_t size, const struct viv_coef_shape *shape, uint64_t address,
                       struct mica_threads *threads, struct mica_log *log, struct viv_coefs *coefs);
void viv_coefs_release(struct viv_coefs *coefs);

#endif
