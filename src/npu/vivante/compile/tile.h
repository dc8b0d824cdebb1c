/* SPDX-License-Identifier: MIT */
/* Tiles, superblocks and on-chip memory of an NN job (specification, sections 9.1, 9.2, 12.6; timing model). */
#ifndef MICA_VIVANTE_COMPILE_TILE_H
#define MICA_VIVANTE_COMPILE_TILE_H

#include "npu/vivante/compile/plan.h"

/*
 * Fills in nn->tile with a good choice for streams of about `stream_bytes` whose
 * density is `density`: quick, for what is compared with many others. Both
 * figures are kept in `nn`.
 */
void viv_tile_choose(const struct viv_chip *chip, struct viv_nn *nn, uint64_t stream_bytes, double density);

/* The same from all useful tiles, for the figures, strides and places that `nn` has now. */
void viv_tile_refine(const struct viv_chip *chip, struct viv_nn *nn);

/* Do the chip's input and accumulator buffers hold such a tile? */
bool viv_tile_fits(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile);

/* The job as the timing model sees it, with the tile it has. */
struct viv_nn_job viv_tile_job(const struct viv_nn *nn);

struct viv_sram {
    bool image, kernel; /* cached at all */
    uint32_t image_start, image_end, kernel_start, kernel_end;
};

/* Where in the SRAM a job with such a tile keeps what; `kernel_bytes` = what the cores' longest stream takes on each.
 */
struct viv_sram viv_sram_plan(const struct viv_chip *chip, const struct viv_nn *nn, const struct viv_tile *tile,
                              uint64_t kernel_bytes);

#endif
