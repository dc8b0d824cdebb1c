/* SPDX-License-Identifier: MIT */
/*
 * The product of two computed tensors x and y, place by place, on cores that
 * only multiply by constants: x is masked with each bit of y, and a convolution
 * adds the eight masked planes with weights of 1 to 128:
 *
 *     (x - x_zero) * (y - y_zero) = sum(2^b * (bit b of y ? x : 0)) - x_zero * y - y_zero * x + x_zero * y_zero
 *
 * That sum is the accumulator of one job, bit for bit, and is rounded once, as
 * a convolution's is. The bits come by twos from thresholds: a job with a large
 * weight saturates to either of two values, `step` apart, so that what is
 * behind the bits is y minus the thresholds; a mask is relu(x + w * (bit - 1))
 * with w large enough. Operands whose zero point is above 127 take part as 255
 * minus themselves: so the weights of the sum fit eight bits.
 */
#ifndef MICA_VIVANTE_COMPILE_PRODUCT_H
#define MICA_VIVANTE_COMPILE_PRODUCT_H

#include "npu/vivante/compile/mix.h"

#define VIV_PRODUCT_DIGITS 4u /* of two bits, the highest first */
#define VIV_PRODUCT_BITS 8u
#define VIV_PRODUCT_BIT_STEP 16                    /* from a bit that is not set to one that is, 255 */
#define VIV_PRODUCT_MARKS (3 * VIV_PRODUCT_DIGITS) /* thresholds: at least 1, 2, 3 of a digit */

struct viv_product {
    uint8_t x_zero, y_zero;
    struct viv_requant requant; /* of the product */
    uint8_t out_zero;
    bool relu;
};

/*
 * Marks of digit `digit`: planes are those of the digits before, the last one first, and y. Three outputs.
 */
void viv_product_marks(const struct viv_chip *chip, uint32_t digit, struct viv_mix *mix);

/* The eight bits of y from its twelve marks, the last digit's first. */
void viv_product_bits(const struct viv_chip *chip, struct viv_mix *mix);

/* x masked with each bit, from planes of the twelve marks, y and x. */
void viv_product_masked(const struct viv_chip *chip, const struct viv_product *product, struct viv_mix *mix);

/* The same from planes x, y and the eight bits. */
void viv_product_masked_bits(const struct viv_chip *chip, const struct viv_product *product, struct viv_mix *mix);

/* The product, from the eight masked planes, lowest bit first, and the operands: y and x before them, or x and y
 * behind. */
void viv_product_sum(const struct viv_product *product, bool before, struct viv_mix *mix);

#endif
