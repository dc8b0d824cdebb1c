/* SPDX-License-Identifier: MIT */
/* An NN descriptor as numbers (specification, section 3). */
#ifndef MICA_VIVANTE_SIM_NN_JOB_H
#define MICA_VIVANTE_SIM_NN_JOB_H

#include "npu/vivante/sim/internal.h"

enum viv_pooling {
    VIV_POOL_NONE = 0,
    VIV_POOL_MAX = 1,
    VIV_POOL_AVERAGE = 2, /* never seen, not simulated */
    VIV_POOL_FIRST_PIXEL = 3,
};

struct viv_nn {
    uint32_t descriptor; /* its address */
    struct viv_nn_job cost;
    enum viv_pooling pooling;
    uint32_t pool_size; /* 2 or 3 columns and rows */
    uint32_t in_address, out_address, coefficients;
    uint8_t border; /* value of pixels outside the image */
    uint8_t weight_zero_point;
    uint32_t out_row_bytes;       /* after pooling */
    uint32_t out_plane_bytes;     /* from one channel to the next, where kernels don't say it themselves */
    uint32_t stored_w, stored_h;  /* output image after pooling */
    uint64_t in_circular, in_end; /* bytes, 0 = off; end address */
    uint64_t out_circular, out_end;
    struct viv_post post;
};

/* Reads and checks a descriptor of VIV_NN_WORDS words. -EIO for what the chip, or the simulator, doesn't do. */
int viv_nn_parse(struct viv_sim *sim, uint32_t address, const uint32_t *words, struct viv_nn *job);

#endif
