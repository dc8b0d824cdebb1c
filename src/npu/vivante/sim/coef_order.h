/* SPDX-License-Identifier: MIT */
/* What both coefficient formats share: V7's order of a kernel's weights, and how streams lie in a buffer. */
#ifndef MICA_VIVANTE_SIM_COEF_ORDER_H
#define MICA_VIVANTE_SIM_COEF_ORDER_H

#include <stdint.h>
#include <string.h>

#define STREAM_ALIGNMENT 64u
#define MAX_KERNEL_PIXELS 225u /* 15 x 15, what the descriptor can say */
#define CHANNELS_A_STEP 6u     /* of a 1x1 kernel */

static inline uint32_t load32(const uint8_t *bytes)
{
    uint32_t word;
    memcpy(&word, bytes, sizeof word);
    return word;
}

/* Blocks of three columns by two rows, upper row first (specification, section 5.1). */
static inline void order_blocks(uint8_t *next, uint32_t width, uint32_t height)
{
    for (uint32_t row = 0; row < height; row += 2)
        for (uint32_t column = 0; column < width; column += 3)
            for (uint32_t r = row; r < row + 2 && r < height; r++)
                for (uint32_t q = column; q < column + 3 && q < width; q++)
                    *next++ = (uint8_t)(r * width + q);
}

#endif
