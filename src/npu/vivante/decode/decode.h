/* SPDX-License-Identifier: MIT */
/* Command streams, descriptors and coefficient buffers as named fields. */
#ifndef MICA_VIVANTE_DECODE_DECODE_H
#define MICA_VIVANTE_DECODE_DECODE_H

#include "npu/decode.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/sim/coef_huffman.h"

struct viv_decode {
    const struct viv_chip *chip;
    const struct mica_decode_sink *sink;
    const struct mica_decode_memory *memory; /* NULL: nothing but the stream is known */
    bool weights; /* lists each kernel's bias, offset and weights, not only their statistics */
};

/* A command stream, state by state; descriptors that it starts follow the write, with their coefficients. */
void viv_decode_stream(const struct viv_decode *decode, const uint32_t *words, size_t count);

/* A descriptor of VIV_NN_WORDS or VIV_TP_WORDS words. */
void viv_decode_nn(const struct viv_decode *decode, uint64_t address, const uint32_t *words);
void viv_decode_tp(const struct viv_decode *decode, uint64_t address, const uint32_t *words);

/*
 * A coefficient buffer of at most `size` bytes. `shape` says what the descriptor does; byte 0 tells V7 from Huffman
 * (specification, section 5).
 */
void viv_decode_coefficients(const struct viv_decode *decode, uint64_t address, const uint8_t *buffer, uint64_t size,
                             const struct viv_huffman_shape *shape);

#endif
