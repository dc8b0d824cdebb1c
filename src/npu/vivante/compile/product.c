/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/product.h"

#define TOP 255            /* what a mark or bit that is set counts as */
#define LAST_DIGIT_STEP 4  /* of the last digit's marks, from which nothing is taken away */
#define LARGEST_WEIGHT 128 /* of the sum */

/* What one of the digit counts in y. */
static int32_t unit_of(uint32_t digit)
{
    return 64 >> (2 * digit);
}

/* From a mark that is not set to one that is: so that marks can be taken from y, one for one. */
static int32_t step_of(uint32_t digit)
{
    return digit + 1 == VIV_PRODUCT_DIGITS ? LAST_DIGIT_STEP : unit_of(digit);
}

/* Place of mark `mark` (1 to 3) of a digit among the twelve, the last digit's first. */
static uint32_t mark_plane(uint32_t digit, uint32_t mark)
{
    return 3 * (VIV_PRODUCT_DIGITS - 1 - digit) + mark - 1;
}

static struct viv_mix new_mix(const struct viv_chip *chip, uint32_t inputs, uint32_t outputs, int32_t out_zero)
{
    struct viv_mix mix = {.inputs = inputs, .outputs = outputs, .out_zero = (uint8_t)out_zero, .relu = out_zero > 0};
    viv_requant_factor(chip, 1, &mix.requant);
    return mix;
}

/* What is left of y behind the digits before is `step` times too large: a difference of 1 saturates. */
void viv_product_marks(const struct viv_chip *chip, uint32_t digit, struct viv_mix *mix)
{
    int32_t step = step_of(digit);
    *mix = new_mix(chip, 3 * digit + 1, 3, TOP - step);
    for (uint32_t mark = 1; mark <= 3; mark++) {
        int32_t bias = 1 - (int32_t)mark * unit_of(digit);
        for (uint32_t before = 0; before < digit; before++) {
            bias += 3 * (TOP - step_of(before));
            for (uint32_t i = 0; i < 3; i++)
                mix->weight[mark - 1][3 * (digit - 1 - before) + i] = (int16_t)-step;
        }
        mix->weight[mark - 1][3 * digit] = (int16_t)step;
        mix->bias[mark - 1] = bias * step;
    }
}

/* Adds `factor` times a bit to output `k`: nothing where it is set when `set`, else where it isn't. */
static void add_bit(struct viv_mix *mix, uint32_t k, uint32_t bit, int32_t factor, bool set)
{
    uint32_t digit = (VIV_PRODUCT_BITS - 1 - bit) / 2;
    int32_t nothing = set ? TOP : TOP - step_of(digit);
    if (bit % 2) {
        mix->weight[k][mark_plane(digit, 2)] = (int16_t)factor;
    } else { /* of the digits 1 and 3 */
        mix->weight[k][mark_plane(digit, 1)] = mix->weight[k][mark_plane(digit, 3)] = (int16_t)factor;
        mix->weight[k][mark_plane(digit, 2)] = (int16_t)-factor;
    }
    mix->bias[k] -= factor * nothing;
}

void viv_product_bits(const struct viv_chip *chip, struct viv_mix *mix)
{
    *mix = new_mix(chip, VIV_PRODUCT_MARKS, VIV_PRODUCT_BITS, TOP - VIV_PRODUCT_BIT_STEP);
    for (uint32_t bit = 0; bit < VIV_PRODUCT_BITS; bit++)
        add_bit(mix, bit, bit, VIV_PRODUCT_BIT_STEP / LAST_DIGIT_STEP, false);
}

/* Above 127 the complement takes part. */
static bool turned(uint8_t zero)
{
    return zero > 127;
}

static int32_t zero_of(uint8_t zero)
{
    return turned(zero) ? TOP - zero : zero;
}

/* x, or its complement, in output k. */
static void add_x(const struct viv_product *product, struct viv_mix *mix, uint32_t k, uint32_t plane)
{
    mix->weight[k][plane] = turned(product->x_zero) ? -1 : 1;
    mix->bias[k] += turned(product->x_zero) ? TOP : 0;
}

void viv_product_masked(const struct viv_chip *chip, const struct viv_product *product, struct viv_mix *mix)
{
    bool set = !turned(product->y_zero);
    *mix = new_mix(chip, VIV_PRODUCT_MARKS + 2, VIV_PRODUCT_BITS, 0);
    for (uint32_t bit = 0; bit < VIV_PRODUCT_BITS; bit++) {
        int32_t factor = 256 / step_of((VIV_PRODUCT_BITS - 1 - bit) / 2);
        add_x(product, mix, bit, VIV_PRODUCT_MARKS + 1);
        add_bit(mix, bit, bit, set ? factor : -factor, set);
    }
}

void viv_product_masked_bits(const struct viv_chip *chip, const struct viv_product *product, struct viv_mix *mix)
{
    bool set = !turned(product->y_zero);
    *mix = new_mix(chip, VIV_PRODUCT_BITS + 2, VIV_PRODUCT_BITS, 0);
    for (uint32_t bit = 0; bit < VIV_PRODUCT_BITS; bit++) {
        int32_t factor = (set ? 256 : -256) / VIV_PRODUCT_BIT_STEP;
        add_x(product, mix, bit, 0);
        mix->weight[bit][2 + bit] = (int16_t)factor;
        mix->bias[bit] -= factor * (set ? TOP : TOP - VIV_PRODUCT_BIT_STEP);
    }
}

/* sign * (sum of the masked - zero of x * y - zero of y * x + both zeros), x and y being the complements where turned.
 */
void viv_product_sum(const struct viv_product *product, bool before, struct viv_mix *mix)
{
    int32_t x_zero = zero_of(product->x_zero), y_zero = zero_of(product->y_zero);
    bool turned_x = turned(product->x_zero), turned_y = turned(product->y_zero);
    int32_t sign = turned_x == turned_y ? 1 : -1, first = before ? 2 : 0;
    *mix = (struct viv_mix){.inputs = VIV_PRODUCT_BITS + 2, .outputs = 1, .requant = product->requant};
    mix->out_zero = product->out_zero;
    mix->relu = product->relu;
    for (int32_t bit = 0; bit < (int32_t)VIV_PRODUCT_BITS; bit++)
        mix->weight[0][first + bit] = (int16_t)(sign * (LARGEST_WEIGHT >> (VIV_PRODUCT_BITS - 1 - bit)));
    uint32_t x = before ? 1 : VIV_PRODUCT_BITS, y = before ? 0 : VIV_PRODUCT_BITS + 1;
    mix->weight[0][x] = (int16_t)(turned_x ? sign * y_zero : -sign * y_zero);
    mix->weight[0][y] = (int16_t)(turned_y ? sign * x_zero : -sign * x_zero);
    mix->bias[0] = sign * (x_zero * y_zero - (turned_x ? TOP * y_zero : 0) - (turned_y ? TOP * x_zero : 0));
}
