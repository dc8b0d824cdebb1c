/* SPDX-License-Identifier: MIT */
/*
 * MUL and SQUARED_DIFFERENCE as products (product.h). Planes of one piece of the
 * tensors lie side by side:
 *
 *     direct    marks of y, the last digit's first | y | x | masked, lowest bit first
 *     by bits   masked | x | y | bits of y
 *
 * By bits: where y is smaller than the output, its bits are made first and then
 * repeated with it; where the output is y again and again, multiply_groups.c
 * does without.
 */
#include <errno.h>
#include <stdio.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/multiply.h"
#include "npu/vivante/compile/query.h"

/* Smaller operands may be made in their planes, all of which then live as long as they do. */
#define PLACED (UINT64_C(64) << 10)
#define PLANES (VIV_PRODUCT_MARKS + 2 + VIV_PRODUCT_BITS)
#define DIRECT_Y VIV_PRODUCT_MARKS
#define DIRECT_X (DIRECT_Y + 1)
#define DIRECT_MASKED (DIRECT_X + 1)
#define BITS_X VIV_PRODUCT_BITS
#define BITS_Y (BITS_X + 1)
/* Of the smaller tensor: marks, y, bits. */
#define SMALL_Y VIV_PRODUCT_MARKS
#define SMALL_PLANES (SMALL_Y + 1 + VIV_PRODUCT_BITS)

static struct viv_ref plane(struct viv_ref base, uint64_t bytes, uint32_t index)
{
    base.offset += index * viv_elementwise_pitch(bytes);
    return base;
}

/* ---- one piece --------------------------------------------------------------------- */

/* The marks of y, in planes up to it. */
static int make_marks(struct viv_plan *plan, uint32_t op, struct viv_ref base, uint64_t bytes)
{
    int error = 0;
    for (uint32_t digit = 0; !error && digit < VIV_PRODUCT_DIGITS; digit++) {
        struct viv_mix mix;
        uint32_t first = VIV_PRODUCT_MARKS - 3 * digit;
        viv_product_marks(plan->chip, digit, &mix);
        error = viv_mix_jobs(plan, op, &mix, plane(base, bytes, first), plane(base, bytes, first - 3), bytes, false);
    }
    return error;
}

/* x and y are in their planes. */
static int multiply_direct(struct viv_plan *plan, uint32_t op, const struct viv_product *product, struct viv_ref base,
                           struct viv_ref out, uint64_t bytes)
{
    struct viv_mix mix;
    int error = make_marks(plan, op, base, bytes);
    viv_product_masked(plan->chip, product, &mix);
    if (!error)
        error = viv_mix_jobs(plan, op, &mix, base, plane(base, bytes, DIRECT_MASKED), bytes, false);
    viv_product_sum(product, true, &mix);
    return error ? error : viv_mix_jobs(plan, op, &mix, plane(base, bytes, DIRECT_Y), out, bytes, true);
}

/* x, y and the bits are in their planes. */
static int multiply_by_bits(struct viv_plan *plan, uint32_t op, const struct viv_product *product, struct viv_ref base,
                            struct viv_ref out, uint64_t bytes)
{
    struct viv_mix mix;
    viv_product_masked_bits(plan->chip, product, &mix);
    int error = viv_mix_jobs(plan, op, &mix, plane(base, bytes, BITS_X), base, bytes, false);
    viv_product_sum(product, false, &mix);
    return error ? error : viv_mix_jobs(plan, op, &mix, base, out, bytes, true);
}

/* The distance of two tensors of one scale: their difference and its opposite, clamped at 0, are added. */
struct viv_difference {
    int32_t bias; /* of the first minus the second: what their zero points differ by */
};

/* The operands are behind the other planes; both factors become their distance. */
static int subtract(struct viv_plan *plan, uint32_t op, const struct viv_difference *difference, struct viv_ref base,
                    uint64_t bytes)
{
    struct viv_mix sides = {.inputs = 2, .outputs = 2, .weight = {{1, -1}, {-1, 1}}};
    struct viv_mix both = {.inputs = 2, .outputs = 2, .weight = {{1, 1}, {1, 1}}};
    sides.bias[0] = difference->bias;
    sides.bias[1] = -difference->bias;
    viv_requant_factor(plan->chip, 1, &sides.requant);
    both.requant = sides.requant;
    int error =
        viv_mix_jobs(plan, op, &sides, plane(base, bytes, PLANES), plane(base, bytes, PLANES + 2), bytes, false);
    return error ? error
                 : viv_mix_jobs(plan, op, &both, plane(base, bytes, PLANES + 2), plane(base, bytes, DIRECT_Y), bytes,
                                false);
}

/* ---- MUL ------------------------------------------------------------------------------ */

uint32_t viv_multiply_y(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    if (!a->data != !b->data)
        return a->data ? 0 : 1;
    return a->bytes < b->bytes ? 0 : 1;
}

static int product_of(const struct viv_plan *plan, const struct mica_op *op, struct viv_product *product)
{
    uint32_t y = viv_multiply_y(plan->graph, op);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    product->x_zero = viv_zero_point(y ? a : b);
    product->y_zero = viv_zero_point(y ? b : a);
    viv_clamp_first(viv_bounds_of(op->activation, out), viv_zero_point(out), &product->out_zero, &product->relu);
    if (!viv_requant_make(plan->chip, a->quant.scale[0], b->quant.scale[0], out->quant.scale[0], &product->requant))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    return 0;
}

/* A constant's y and bits, behind each other. */
static int constant_bits(struct viv_plan *plan, const struct mica_tensor *y, bool planar, struct viv_ref *ref)
{
    uint64_t pitch = viv_elementwise_pitch(y->bytes);
    uint8_t *planes;
    int error = viv_plan_constant(plan, pitch * (VIV_PRODUCT_BITS + 1), ref, &planes);
    if (error)
        return error;
    viv_pair_lay_down(y, y, planar, planes);
    for (uint32_t bit = 0; bit < VIV_PRODUCT_BITS; bit++)
        for (size_t i = 0; i < y->bytes; i++)
            planes[(bit + 1) * pitch + i] = planes[i] >> bit & 1 ? 255 : 255 - VIV_PRODUCT_BIT_STEP;
    return 0;
}

int viv_multiply_bits(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref)
{
    const struct mica_tensor *y = &plan->graph->tensors[tensor];
    struct viv_ref base = {VIV_NONE, 0}, source;
    struct viv_mix mix;
    if (y->data)
        return constant_bits(plan, y, planar, ref);
    int error = viv_pair_source(plan, op, tensor, planar, &source);
    if (!error)
        error = viv_plan_storage(plan, SMALL_PLANES * viv_elementwise_pitch(y->bytes), &base);
    if (!error)
        error = viv_place(plan, source, y->bytes, base, SMALL_Y * viv_elementwise_pitch(y->bytes), 0, op);
    if (!error)
        error = make_marks(plan, op, base, y->bytes);
    viv_product_bits(plan->chip, &mix);
    *ref = plane(base, y->bytes, SMALL_Y);
    return error ? error : viv_mix_jobs(plan, op, &mix, base, plane(base, y->bytes, SMALL_Y + 1), y->bytes, false);
}

static int lower_by_bits(struct viv_plan *plan, uint32_t op_index, bool planar, const struct viv_product *product,
                         struct viv_ref out)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint32_t y = viv_multiply_y(plan->graph, op);
    const struct mica_tensor *t = mica_op_input(plan->graph, op, y), *result = mica_op_output(plan->graph, op, 0);
    uint64_t pitch = viv_elementwise_pitch(result->bytes);
    struct viv_layers layers = {VIV_PRODUCT_BITS + 1, viv_elementwise_pitch(t->bytes), pitch};
    struct viv_ref base, bits;
    int error = viv_multiply_bits(plan, op_index, (uint32_t)op->inputs[y], planar, &bits);
    if (!error)
        error = viv_plan_storage(plan, (BITS_Y + layers.count) * pitch, &base);
    if (!error)
        error = viv_pair_place(plan, op_index, (uint32_t)op->inputs[1 - y], planar, base, BITS_X * pitch);
    if (!error)
        error = viv_repeat_lower(plan, op_index, t, result, planar, &layers, bits, plane(base, result->bytes, BITS_Y));
    return error ? error : multiply_by_bits(plan, op_index, product, base, out, result->bytes);
}

int viv_multiply_load(struct viv_plan *plan, uint32_t op, uint64_t bytes, uint64_t size, struct viv_ref from,
                      struct viv_ref to)
{
    if (bytes <= PLACED)
        return viv_place(plan, from, bytes, to, 0, 0, op);
    return viv_tp_copy(plan, op, size, from, to, 0);
}

/* Pieces one after the other in the same planes, from two operands of the output's shape. */
static int lower_direct(struct viv_plan *plan, uint32_t op, const struct viv_product *product, const uint32_t *tensors,
                        bool planar, const struct viv_difference *difference, struct viv_ref out)
{
    uint64_t bytes = mica_op_output(plan->graph, &plan->graph->ops[op], 0)->bytes;
    uint64_t piece = bytes < VIV_MULTIPLY_PIECE ? bytes : VIV_MULTIPLY_PIECE;
    uint32_t first = difference ? PLANES : DIRECT_Y;
    struct viv_ref base, ref[2];
    int error = viv_plan_storage(plan, (PLANES + (difference ? 4 : 0)) * viv_elementwise_pitch(piece), &base);
    for (uint32_t i = 0; !error && i < 2; i++)
        error = viv_pair_value(plan, op, tensors[i], planar, &ref[i]);
    for (uint64_t done = 0; !error && done < bytes; done += piece) {
        uint64_t size = bytes - done < piece ? bytes - done : piece;
        for (uint32_t i = 0; !error && i < 2; i++, ref[i - 1].offset += size)
            error = viv_multiply_load(plan, op, bytes, size, ref[i], plane(base, size, first + i));
        if (!error && difference)
            error = subtract(plan, op, difference, base, size);
        if (!error)
            error = multiply_direct(plan, op, product, base, out, size);
        out.offset += size;
    }
    return error;
}

int viv_lower_multiply(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    uint8_t squares[256];
    if (viv_square_table(plan->chip, plan->graph, op, squares))
        return viv_lower_square(plan, op_index, squares);
    const struct mica_tensor *y = mica_op_input(plan->graph, op, viv_multiply_y(plan->graph, op));
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    bool planar = viv_pair_planar(plan, op);
    struct viv_cut cut = viv_multiply_cut(plan, op, &planar);
    bool by_bits = out->bytes <= VIV_MULTIPLY_PIECE && (y->bytes < out->bytes || y->data);
    struct viv_product product;
    struct viv_ref ref;
    int error = product_of(plan, op, &product);
    if (!error)
        error = viv_pair_output(plan, op_index, planar, &ref);
    if (!error)
        error = viv_clamp_begin(plan, op, viv_bounds_of(op->activation, out), &ref);
    if (error)
        return error;
    uint32_t second = viv_multiply_y(plan->graph, op);
    const uint32_t tensors[] = {(uint32_t)op->inputs[second], (uint32_t)op->inputs[1 - second]};
    plan->off = 1;
    if (cut.groups)
        snprintf(plan->way, sizeof(plan->way),
                 "one operand masked with the bits of the other, %u groups at once that see the same", cut.groups);
    else
        snprintf(plan->way, sizeof(plan->way), "one operand masked with the bits of the other, %s",
                 by_bits ? "which are repeated" : "place by place");
    if (cut.groups)
        return viv_multiply_in_groups(plan, op_index, planar, &cut, &product, ref);
    return by_bits ? lower_by_bits(plan, op_index, planar, &product, ref)
                   : lower_direct(plan, op_index, &product, tensors, planar, NULL, ref);
}

bool viv_supports_multiply(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    return viv_check_pair(query) && viv_check_scale(query, a->quant.scale[0], b->quant.scale[0], out->quant.scale[0]);
}

/* ---- SQUARED_DIFFERENCE ---------------------------------------------------------------- */

int viv_lower_squared_difference(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    const struct mica_tensor *a = mica_op_input(plan->graph, op, 0), *b = mica_op_input(plan->graph, op, 1);
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    const uint32_t tensors[] = {(uint32_t)op->inputs[0], (uint32_t)op->inputs[1]};
    struct viv_difference difference = {viv_zero_point(b) - viv_zero_point(a)};
    struct viv_product product = {.out_zero = viv_zero_point(out)};
    struct viv_ref ref;
    bool planar = viv_pair_planar(plan, op);
    if (!viv_requant_make(plan->chip, a->quant.scale[0], a->quant.scale[0], out->quant.scale[0], &product.requant))
        return mica_fail(plan->log, -ENOTSUP, "the scales of %s \"%s\" do not fit the NN cores", op->type, out->name);
    int error = viv_pair_output(plan, op_index, planar, &ref);
    return error ? error : lower_direct(plan, op_index, &product, tensors, planar, &difference, ref);
}

bool viv_supports_squared_difference(const struct viv_query *query)
{
    const struct mica_tensor *a = mica_op_input(query->graph, query->op, 0);
    const struct mica_tensor *b = mica_op_input(query->graph, query->op, 1);
    const struct mica_tensor *out = mica_op_output(query->graph, query->op, 0);
    if (!viv_check_pair(query))
        return false;
    if (a->type != MICA_TYPE_INT8)
        return viv_refuse(query, "%s of uint8 does not exist in TFLite", query->op->type);
    if (a->quant.scale[0] != b->quant.scale[0])
        return viv_refuse(query,
                          "the inputs' scales %g and %g differ: a difference of 8 bits would be rounded before it is "
                          "squared",
                          (double)a->quant.scale[0], (double)b->quant.scale[0]);
    double square = 65025.0 * (double)a->quant.scale[0] * (double)a->quant.scale[0] / (double)out->quant.scale[0];
    if (viv_zero_point(a) != viv_zero_point(b) && square < 256 - viv_zero_point(out))
        return viv_refuse(query, "the inputs' zero points %d and %d differ: differences don't fit 8 bits",
                          a->quant.zero_point[0], b->quant.zero_point[0]);
    return viv_check_scale(query, a->quant.scale[0], a->quant.scale[0], out->quant.scale[0]);
}
