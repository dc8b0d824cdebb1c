/* SPDX-License-Identifier: MIT */
/* The bytes of a core's stream before they are coded (specification, sections 5.2.2 and 5.3.2). */
#ifndef MICA_VIVANTE_COMPILE_COEF_HUFFMAN_SEQUENCE_H
#define MICA_VIVANTE_COMPILE_COEF_HUFFMAN_SEQUENCE_H

#include "npu/vivante/compile/coef_huffman.h"

/*
 * No run of zeros goes across `at`; the `skip` bytes from there (a count, bias
 * or offset) are in no run. `close`: the last zero of a run that ends here goes raw.
 */
struct viv_break {
    uint32_t at;
    uint16_t skip;
    bool close;
};

struct viv_sequence {
    uint8_t *data; /* with coef_centred the zero point is in every byte, also in the kernel count's */
    uint32_t count;
    struct viv_break *breaks; /* ascending; the first is the kernel count, the last the end */
    uint32_t break_count;
};

/*
 * Which kernels the cores have; `rotation` numbers the placements that a chip with offsets in
 * its stream may use, 0 being the plain one. free() placement->kernels; false when memory runs out.
 */
bool viv_huffman_place(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_huffman_job *job,
                       uint32_t rotation, struct viv_huffman_placement *placement);

uint32_t viv_huffman_cores(const struct viv_chip *chip, const struct viv_kernel_set *set);

/* One core's bytes; `closings` adds the points where the vendor closes runs. False when memory runs out. */
bool viv_sequence_make(const struct viv_chip *chip, const struct viv_kernel_set *set, const struct viv_huffman_job *job,
                       const struct viv_huffman_placement *placement, uint32_t core, bool closings,
                       struct viv_sequence *sequence);

/* Replaces each byte by its difference to the one before, the first by itself. */
void viv_sequence_difference(struct viv_sequence *sequence);

void viv_sequence_finish(struct viv_sequence *sequence);

#endif
