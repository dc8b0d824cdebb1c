/* SPDX-License-Identifier: MIT */
/*
 * Products whose output is the smaller operand y again and again, in one of the
 * layouts: a value for each channel, or for each pixel. Parts of x that see the
 * same y are channels of one job, beside one y, or a few in a row, for all:
 *
 *     masked, group by group | x, group by group | y | bits of y
 */
#include <errno.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/multiply.h"

#define MOST_GROUPS 32u
#define JOB_CYCLES 2500.0 /* that a job costs beside its work, about */

/*
 * Cycles: a group's traffic is 19 planes and its share of the ten shared ones twice, and each of its values meets 17
 * products for each group of the job and 73 more.
 */
static double cost_of(const struct viv_chip *chip, uint32_t rounds, uint64_t bytes, uint32_t groups, uint32_t repeats)
{
    double traffic = (19 + 20.0 / groups) / 8, products = (17.0 * groups + 73) / (64.0 * chip->nn_cores);
    double jobs = rounds / ((double)groups * repeats);
    return jobs * 3 * JOB_CYCLES + (double)rounds * (double)bytes * (traffic > products ? traffic : products) +
           9.0 * (double)bytes * repeats;
}

/* The same without groups: 67 bytes of traffic a value, eight jobs a piece (multiply.c). */
static double cost_of_pieces(double bytes)
{
    return ceil(bytes / (double)VIV_MULTIPLY_PIECE) * 8 * JOB_CYCLES + bytes * 67 / 8;
}

/* Groups that cost less than pieces do: few divisors of `rounds` can mean a job for each few bytes. */
static struct viv_cut choose_cut(const struct viv_chip *chip, uint32_t rounds, uint64_t bytes)
{
    struct viv_cut best = {.cost = cost_of_pieces((double)rounds * (double)bytes)};
    for (uint32_t groups = 2; groups <= MOST_GROUPS; groups++) {
        if (rounds % groups)
            continue;
        for (uint32_t repeats = 1; repeats * bytes * groups <= VIV_MULTIPLY_PIECE && repeats <= rounds / groups;
             repeats++) {
            if (rounds / groups % repeats || !viv_mix_foldable(repeats * bytes))
                continue;
            double cost = cost_of(chip, rounds, bytes, groups, repeats);
            if (cost >= best.cost)
                continue;
            best = (struct viv_cut){groups, repeats, cost};
        }
    }
    return best;
}

/* y and its bits, each as often as `repeats`, one behind the other. */
static int repeat_bits(struct viv_plan *plan, uint32_t op, uint64_t bytes, uint32_t repeats, struct viv_ref bits,
                       struct viv_ref to)
{
    struct viv_box box = {0};
    uint64_t pitch = bytes * repeats;
    viv_box_add(&box, VIV_PRODUCT_BITS + 1, viv_elementwise_pitch(bytes), pitch);
    viv_box_add(&box, (uint32_t)bytes, 1, 1);
    int error = viv_box_lower(plan, op, &box, bits, to, 0);
    for (uint32_t done = 1; !error && done < repeats; done *= 2) {
        uint32_t more = repeats - done < done ? repeats - done : done;
        struct viv_box copy = {0};
        viv_box_add(&copy, VIV_PRODUCT_BITS + 1, pitch, pitch);
        viv_box_add(&copy, (uint32_t)(more * bytes), 1, 1);
        error = viv_box_lower(plan, op, &copy, to, (struct viv_ref){to.storage, to.offset + done * bytes}, 0);
    }
    return error;
}

/* One cut's worth: x, y and the bits are in their planes of `bytes` bytes. */
static int multiply_groups(struct viv_plan *plan, uint32_t op, const struct viv_product *product, uint32_t groups,
                           struct viv_ref base, struct viv_ref out, uint64_t bytes)
{
    static const struct viv_mix_block masked[] = {{1, false}, {VIV_PRODUCT_BITS + 1, true}, {0, true}};
    static const struct viv_mix_block sum[] = {{VIV_PRODUCT_BITS, false}, {1, false}, {1, true}};
    struct viv_ref x = {base.storage, base.offset + VIV_PRODUCT_BITS * groups * bytes};
    struct viv_mix mix;
    viv_product_masked_bits(plan->chip, product, &mix);
    int error = viv_mix_groups(plan, op, &mix, masked, groups, x, base, bytes);
    viv_product_sum(product, false, &mix);
    return error ? error : viv_mix_groups(plan, op, &mix, sum, groups, base, out, bytes);
}

int viv_multiply_in_groups(struct viv_plan *plan, uint32_t op_index, bool planar, const struct viv_cut *cut,
                           const struct viv_product *product, struct viv_ref out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t y = viv_multiply_y(plan->graph, op);
    uint64_t all = mica_op_output(plan->graph, op, 0)->bytes, bytes = mica_op_input(plan->graph, op, y)->bytes;
    uint64_t pitch = bytes * cut->repeats, size = pitch * cut->groups;
    struct viv_ref base = {VIV_NONE, 0}, bits, x, planes;
    int error = viv_pair_value(plan, op_index, (uint32_t)op->inputs[1 - y], planar, &x);
    if (!error)
        error = viv_multiply_bits(plan, op_index, (uint32_t)op->inputs[y], planar, &bits);
    if (!error)
        error = viv_plan_storage(plan, (VIV_PRODUCT_BITS + 1) * (size + pitch), &base);
    planes = base;
    planes.offset += (VIV_PRODUCT_BITS + 1) * size;
    if (!error)
        error = repeat_bits(plan, op_index, bytes, cut->repeats, bits, planes);
    planes.offset -= size;
    for (uint64_t done = 0; !error && done < all; done += size) {
        error = size == all ? viv_multiply_load(plan, op_index, all, all, x, planes)
                            : viv_tp_copy(plan, op_index, size, x, planes, 0);
        if (!error)
            error = multiply_groups(plan, op_index, product, cut->groups, base, out, pitch);
        x.offset += size;
        out.offset += size;
    }
    return error;
}

struct viv_cut viv_multiply_cut(const struct viv_plan *plan, const struct mica_op *op, bool *planar)
{
    const struct mica_tensor *y = mica_op_input(plan->graph, op, viv_multiply_y(plan->graph, op));
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    struct viv_cut cut = {0};
    for (uint32_t other = 0; !cut.groups && other < 2; other++) {
        bool layout = other ? !*planar : *planar;
        uint32_t rounds = viv_pair_rounds(y, out, layout);
        if (layout && !viv_shape_transposable(viv_shape_of(out)))
            continue;
        if (rounds)
            cut = choose_cut(plan->chip, rounds, y->bytes);
        if (cut.groups)
            *planar = layout;
    }
    return cut;
}
