/* SPDX-License-Identifier: MIT */
/*
 * Decoder of Huffman coefficient buffers (specification, sections 5.2 and 5.3).
 * Input is untrusted: nothing is read past the end and nothing is allocated
 * that the buffer's bits can't fill.
 */
#ifndef MICA_VIVANTE_SIM_COEF_HUFFMAN_H
#define MICA_VIVANTE_SIM_COEF_HUFFMAN_H

#include <stdbool.h>

#include "npu/vivante/hw/chips.h"
#include "npu/vivante/sim/coef_v7.h"

#define VIV_HUFFMAN_HEADER_BYTES 64u

/* What the descriptor and the chip say about a buffer. */
struct viv_huffman_shape {
    const struct viv_chip *chip;
    uint32_t kernels_per_core; /* of a superblock */
    uint32_t kernel_w, kernel_h;
    uint32_t channels; /* that a kernel sees; not looked at when depthwise */
    bool depthwise;    /* in hardware: kernels have one channel */
    uint8_t zero_point;
    /* Chips with a bias table: the job's output channels, and the bytes of an output plane, from which
     * viv_coefs.offset is made. Not looked at otherwise: the stream says it. */
    uint32_t kernels, plane;
};

/*
 * Size of the whole buffer from its header of VIV_HUFFMAN_HEADER_BYTES; -EIO when the header makes no sense or is
 * that of a V7 buffer. `address` is for messages.
 */
int viv_coef_huffman_size(const uint8_t *header, const struct viv_huffman_shape *shape, uint64_t address,
                          struct mica_log *log, uint64_t *size);

/*
 * Decodes a buffer of `size` bytes, as viv_coef_huffman_size() gave it; on success `coefs` owns memory, to be
 * released by viv_coefs_release(). Weights are uint8 again, with their zero point. The kernels of a chip with a bias
 * table come in channel order, others as the cores have them, core 0's first.
 */
int viv_coef_huffman_decode(const uint8_t *buffer, uint64_t size, const struct viv_huffman_shape *shape,
                            uint64_t address, struct mica_threads *threads, struct mica_log *log,
                            struct viv_coefs *coefs);

#endif
