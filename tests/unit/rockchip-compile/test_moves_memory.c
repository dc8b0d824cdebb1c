/* SPDX-License-Identifier: MIT */
/* Memory that runs out anywhere while operations of all kinds are compiled is an error, and nothing is lost. */
#include <errno.h>
#include <stdlib.h>

#include "failing.h"
#include "npu/rockchip/compile/plan.h"
#include "rig.h"

/* ---- graphs ------------------------------------------------------------------- */

static int32_t unary(struct rig *rig, struct mica_op op, const char *type, int32_t in, int32_t h, int32_t w, int32_t c)
{
    struct spec spec = {.type = rig->type, .scale = 0.05f, .rank = 4, .dims = {1, h, w, c}};
    int32_t out = rig_output(rig, &spec);
    rig_op(rig, op, type, &in, 1, &out, 1);
    return out;
}

static int32_t binary(struct rig *rig, struct mica_op op, const char *type, int32_t a, int32_t b, int32_t h, int32_t w,
                      int32_t c)
{
    struct spec spec = {.type = rig->type, .scale = 0.05f, .rank = 4, .dims = {1, h, w, c}};
    int32_t out = rig_output(rig, &spec), inputs[2] = {a, b};
    rig_op(rig, op, type, inputs, 2, &out, 1);
    return out;
}

static struct mica_op window(enum mica_op_kind kind)
{
    struct mica_op op = {.kind = kind};
    op.window =
        (struct mica_window){.kernel_x = 3, .kernel_y = 3, .stride_x = 1, .stride_y = 1, .padding = {1, 1, 1, 1}};
    return op;
}

/* What picks, turns round or brings into another layout. */
static void build_layouts(struct rig *rig, int32_t in)
{
    static const int32_t amounts[8] = {0, 0, 1, 1, 2, 1, 0, 0}, order[4] = {0, 3, 1, 2}, rows[3] = {3, 0, 1};
    static const int32_t columns[1] = {2}, both[2] = {1, 2};
    struct spec table = {.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}};
    struct mica_op gather = {.kind = MICA_OP_GATHER, .axis = 1}, sum = {.kind = MICA_OP_REDUCE_MAX, .keep_dims = true};
    binary(rig, (struct mica_op){.kind = MICA_OP_MIRROR_PAD}, "MIRROR_PAD", in, net_tensor(&rig->net, &table, amounts),
           6, 8, 20);
    binary(rig, (struct mica_op){.kind = MICA_OP_REVERSE}, "REVERSE_V2", in, rig_numbers(rig, columns, 1), 4, 5, 20);
    binary(rig, (struct mica_op){.kind = MICA_OP_TRANSPOSE}, "TRANSPOSE", in, rig_numbers(rig, order, 4), 20, 4, 5);
    binary(rig, gather, "GATHER", in, rig_numbers(rig, rows, 3), 3, 5, 20);
    binary(rig, sum, "REDUCE_MAX", in, rig_numbers(rig, both, 2), 1, 1, 20);
    int32_t wide = unary(rig, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", in, 4, 25, 4);
    unary(rig, (struct mica_op){.kind = MICA_OP_RELU6}, "RELU6", wide, 4, 25, 4);
    int32_t more = unary(rig, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", wide, 1, 200, 2);
    int32_t pixels = unary(rig, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", in, 1, 200, 2);
    struct mica_op joint = {.kind = MICA_OP_CONCATENATION, .axis = 1};
    int32_t pieces = binary(rig, joint, "CONCATENATION", pixels, more, 2, 200, 2);
    unary(rig, (struct mica_op){.kind = MICA_OP_RELU}, "RELU", pieces, 2, 200, 2);
}

/* Two operands whose combination takes steps. */
static void build_pairs(struct rig *rig, int32_t in)
{
    struct spec slopes = {.type = rig->type, .scale = 0.05f, .rank = 1, .dims = {20}};
    binary(rig, (struct mica_op){.kind = MICA_OP_PRELU}, "PRELU", in, rig_constant(rig, &slopes), 4, 5, 20);
    if (rig->type == MICA_TYPE_INT8)
        binary(rig, (struct mica_op){.kind = MICA_OP_SQUARED_DIFFERENCE}, "SQUARED_DIFFERENCE", in, in, 4, 5, 20);
}

/* Everything that takes steps of its own, on images of 4 x 5 x 20. */
static void build(struct rig *rig)
{
    struct spec image = {.type = rig->type, .scale = 0.05f, .rank = 4, .dims = {1, 4, 5, 20}}, one = image;
    one.dims[1] = one.dims[2] = one.dims[3] = 1;
    int32_t in = rig_input(rig, &image), single = rig_input(rig, &one), constant = rig_constant(rig, &one);
    struct mica_op add = {.kind = MICA_OP_ADD, .activation = MICA_ACT_RELU_N1_TO_1};
    binary(rig, add, "ADD", in, single, 4, 5, 20);
    binary(rig, (struct mica_op){.kind = MICA_OP_MUL}, "MUL", in, constant, 4, 5, 20);
    unary(rig, (struct mica_op){.kind = MICA_OP_HARD_SWISH}, "HARD_SWISH", in, 4, 5, 20);
    unary(rig, window(MICA_OP_MAX_POOL_2D), "MAX_POOL_2D", in, 4, 5, 20);
    unary(rig, window(MICA_OP_AVERAGE_POOL_2D), "AVERAGE_POOL_2D", in, 4, 5, 20);
    struct mica_op concatenation = {.kind = MICA_OP_CONCATENATION, .axis = 3};
    binary(rig, concatenation, "CONCATENATION", in, in, 4, 5, 40);
    concatenation.axis = 2;
    binary(rig, concatenation, "CONCATENATION", in, in, 4, 10, 20);
    struct mica_op slice = {.kind = MICA_OP_SLICE};
    slice.slice = (struct mica_slice){{0, 1, 0, 3}, {1, 1, 2, 1}, {1, 2, 2, 5}};
    unary(rig, slice, "STRIDED_SLICE", in, 2, 2, 5);
    struct spec table = {.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}};
    const int32_t amounts[8] = {0, 0, 1, 0, 20, 0, 0, 3}, size[2] = {8, 10}, axes[2] = {1, 2};
    binary(rig, (struct mica_op){.kind = MICA_OP_PAD}, "PAD", in, net_tensor(&rig->net, &table, amounts), 5, 25, 23);
    struct mica_op resize = {.kind = MICA_OP_RESIZE_BILINEAR};
    resize.resize.half_pixel_centers = true;
    binary(rig, resize, "RESIZE_BILINEAR", in, rig_numbers(rig, size, 2), 8, 10, 20);
    struct mica_op mean = {.kind = MICA_OP_MEAN, .keep_dims = true};
    binary(rig, mean, "MEAN", in, rig_numbers(rig, axes, 2), 1, 1, 20);
    unary(rig, (struct mica_op){.kind = MICA_OP_DEPTH_TO_SPACE, .block = 2}, "DEPTH_TO_SPACE", in, 8, 10, 5);
    build_layouts(rig, in);
    build_pairs(rig, in);
}

/* What operation `op` costs, as soon as there is memory enough; moved values cost nothing, others something. */
static void check_cost(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op)
{
    struct mica_way way = {.us = -1};
    int error = -ENOMEM;
    for (long failing = 0; error == -ENOMEM && failing < 100000; failing++) {
        allocations_left = failing;
        error = rk_describe(chip, graph, op, NULL, &way);
        allocations_left = -1;
    }
    assert_int_equal(error, 0);
    assert_true(way.jobs ? way.us > 0 : way.us == 0);
    if (graph->ops[op].kind != MICA_OP_RESHAPE && graph->ops[op].kind != MICA_OP_CONCATENATION)
        assert_true(way.jobs > 0);
}

static void check_chip(const struct mica_chip *chip)
{
    struct rig rig;
    struct mica_partition partition;
    struct mica_program *program = NULL;
    rig_open(&rig, chip, 1);
    build(&rig);
    for (uint32_t i = 0; i < rig.net.graph->op_count; i++)
        if (chip->family->supports(chip, rig.net.graph, i, rig.reason, sizeof(rig.reason)))
            fail_msg("operation %u: %s", i, rig.reason);
    partition_init(&partition, &rig.net, rig.inputs, rig.input_count, rig.outputs, rig.output_count);
    int error = -ENOMEM;
    long failing = 0;
    for (; error == -ENOMEM && failing < 100000; failing++) {
        allocations_left = failing;
        error = chip->family->compile(chip, &partition, NULL, NULL, &rig.net.log, &program);
        allocations_left = -1;
    }
    assert_int_equal(error, 0);
    assert_true(failing > 100);
    for (uint32_t i = 0; i < rig.net.graph->op_count; i++)
        check_cost(chip, rig.net.graph, i);
    mica_program_destroy(program);
    partition_finish(&partition);
    rig_close(&rig);
}

static void memory_may_run_out_anywhere(void **state)
{
    (void)state;
    check_chip(&test_rk3588);
    check_chip(&test_rk3566);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_may_run_out_anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
