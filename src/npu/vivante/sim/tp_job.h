/* SPDX-License-Identifier: MIT */
/* A TP descriptor as numbers (specification, section 4). */
#ifndef MICA_VIVANTE_SIM_TP_JOB_H
#define MICA_VIVANTE_SIM_TP_JOB_H

#include "npu/vivante/sim/internal.h"

#define VIV_TP_LOOPS 7u

/* Maximum over neighbours in one direction (specification, section 4.4a); window 1, step 1: none. */
struct viv_tp_pool {
    uint32_t window, step;
};

struct viv_tp {
    uint32_t descriptor; /* its address */
    uint32_t in_w, in_h, in_slices;
    uint32_t in_row_bytes, in_slice_bytes;
    int32_t x_start, y_start, x_end, y_end; /* scan window, ends inclusive */
    uint32_t slices_before, slices_after;   /* of padding */
    uint32_t tile_w, tile_h, tile_x_step, tile_y_step;
    struct viv_tp_pool across, down;
    uint32_t in_address, out_address;
    uint32_t step[VIV_TP_LOOPS],
        count[VIV_TP_LOOPS];                    /* count 0: nothing but a reset, or nothing at all, ends the loop */
    bool reset_row, reset_tile_2, reset_tile_3; /* loop 1 ends with the tile's row; 2 and 3 with the tile */
    uint8_t outside;                            /* what is read outside the image */
    uint8_t values[256];                        /* what a byte becomes */
};

/* Reads and checks a descriptor of VIV_TP_WORDS words, and its table if it has one. */
int viv_tp_parse(struct viv_sim *sim, uint32_t address, const uint32_t *words, struct viv_tp *job);

/* Scanned elements, all tiles; UINT64_MAX at most. */
uint64_t viv_tp_elements(const struct viv_tp *job);

/* The job as a plain loop nest, if it is one: 1 = done, 0 = it is none, negative = failed. */
int viv_tp_run_nest(struct viv_sim *sim, const struct viv_tp *job);

#endif
