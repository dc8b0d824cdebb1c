/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/sum.h"

#define LIMIT 1.998 /* steps of the output: below 2, results differ by at most 1 */
#define LARGEST 255 /* of weights of one copy, from the least to the largest */

struct chooser {
    const struct viv_chip *chip;
    const struct mica_tensor *inputs[2];
    double scale[2], out_scale;
    bool subtract;
};

static double largest_value(const struct mica_tensor *tensor)
{
    uint8_t zero = viv_zero_point(tensor);
    return zero > 127 ? zero : 255 - zero;
}

/* Weights whose unit is `unit` of the inputs' scale. */
static double bound_of(const struct chooser *chooser, const int32_t *weight, double unit,
                       const struct viv_requant *requant)
{
    double factor = unit / chooser->out_scale,
           error = fabs(viv_requant_exact(chooser->chip, requant) / factor - 1) * 256;
    for (unsigned i = 0; i < 2; i++)
        error += fabs(weight[i] * unit - chooser->scale[i]) * largest_value(chooser->inputs[i]) / chooser->out_scale;
    double twice = 2 * fmax(chooser->scale[0], chooser->scale[1]);
    return 0.5 + error + 0.5 + 4 * ldexp(twice / chooser->out_scale, -20);
}

static bool drivers(const struct chooser *chooser, const struct mica_tensor *out, struct viv_sum *sum)
{
    const struct mica_tensor *a = chooser->inputs[0];
    sum->add = viv_add_weights(a, chooser->inputs[1], out, chooser->subtract);
    if (!viv_requant_make(chooser->chip, a->quant.scale[0], sum->add.weight_scale, out->quant.scale[0], &sum->requant))
        return false;
    const int32_t weight[] = {sum->add.weight[0], chooser->subtract ? -sum->add.weight[1] : sum->add.weight[1]};
    sum->bound = bound_of(chooser, weight, chooser->scale[0] * (double)sum->add.weight_scale, &sum->requant);
    return sum->bound < LIMIT;
}

/* The first input's weight is given, the unit is as fine as that makes it. */
static void try_weight(const struct chooser *chooser, uint32_t copies, int32_t first, struct viv_sum *best)
{
    double second = round(first * chooser->scale[1] / chooser->scale[0]), unit = chooser->scale[0] / first;
    double shares[] = {ceil((double)first / copies), ceil(second / copies)};
    if (fmax(shares[0], shares[1]) > LARGEST || (chooser->subtract && shares[0] + shares[1] > LARGEST))
        return;
    struct viv_sum sum = {.copies = copies, .weight = {first, (int32_t)second}};
    if (!viv_requant_factor(chooser->chip, unit / chooser->out_scale, &sum.requant))
        return;
    sum.bound = bound_of(chooser, sum.weight, unit, &sum.requant);
    if (best->bound == 0 || sum.bound < best->bound)
        *best = sum;
}

bool viv_sum_choose(const struct viv_chip *chip, const struct mica_tensor *a, const struct mica_tensor *b,
                    const struct mica_tensor *out, bool subtract, struct viv_sum *sum)
{
    struct chooser chooser = {.chip = chip, .inputs = {a, b}, .subtract = subtract};
    chooser.scale[0] = (double)a->quant.scale[0];
    chooser.scale[1] = (double)b->quant.scale[0];
    chooser.out_scale = (double)out->quant.scale[0];
    *sum = (struct viv_sum){0};
    if (drivers(&chooser, out, sum))
        return true;
    struct viv_sum finer = {0};
    for (uint32_t copies = 1; copies <= VIV_SUM_COPIES && !(finer.bound > 0 && finer.bound < LIMIT); copies++)
        for (int32_t first = 1; first <= (int32_t)(LARGEST * copies); first++)
            try_weight(&chooser, copies, first, &finer);
    if (finer.bound > 0)
        *sum = finer;
    if (subtract)
        sum->weight[1] = -sum->weight[1];
    return finer.bound > 0 && finer.bound < LIMIT;
}
