/* SPDX-License-Identifier: MIT */
/*
 * The input of a convolution as the kernels want it: every pixel that any tap
 * reads, border included, copied so that a tap at all positions of the output
 * is one contiguous run of bytes.
 *
 * With step 2 (first-pixel pooling) only every second output exists, and the
 * image is taken apart into its even and odd columns and rows.
 */
#ifndef MICA_VIVANTE_SIM_IMAGE_H
#define MICA_VIVANTE_SIM_IMAGE_H

#include "npu/vivante/sim/nn_job.h"

struct viv_image {
    const struct viv_nn *job;
    uint32_t step;               /* input pixels per output pixel */
    uint32_t columns, rows;      /* of the output */
    uint32_t phases_x, phases_y; /* 1 or 2 */
    size_t pitch;                /* bytes from one row of a phase to the next; also from one output row to the next */
    size_t phase;                /* bytes of one phase */
    size_t plane;                /* bytes of one channel */
    uint32_t x, x_end, y, y_end; /* what the job reads of the image in memory: columns [x, x_end), rows [y, y_end) */
    size_t positions;            /* from the first output pixel to the last, at `pitch` a row */
    uint8_t *data;
};

/* Fetches the job's image into the simulator's buffer. */
int viv_image_fetch(struct viv_sim *sim, const struct viv_nn *job, struct viv_image *image);

/* offsets[tap] = where tap (channel, row, column) lies for output position 0. */
void viv_image_tap_offsets(const struct viv_image *image, uint32_t *offsets);

#endif
