/* SPDX-License-Identifier: MIT */
/*
 * Random graphs of operations that move values: where a value is kept must not matter. The same graph is run with all
 * its values as outputs, each of which then has memory that the host reads, and with the last one alone.
 *
 *     run_moves CHIP [first seed [count]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rig.h"

#define OPS 7

static const struct mica_chip *chip = &test_rk3588;
static unsigned first_seed = 1, seed_count = 250;

static struct spec spec_of(const struct rig *rig, int32_t index)
{
    const struct mica_tensor *t = &rig->net.graph->tensors[index];
    struct spec spec = {.type = t->type, .scale = t->quant.scale[0], .zero_point = t->quant.zero_point[0], .rank = 4};
    memcpy(spec.dims, t->dims, sizeof(spec.dims));
    return spec;
}

/* A value that is there, most often one of the last. */
static int32_t any_value(struct rig *rig)
{
    int32_t all = (int32_t)(rig->input_count + rig->output_count),
            i = rig_between(rig, 0, 1) && all > 3 ? rig_between(rig, all - 3, all - 1) : rig_between(rig, 0, all - 1);
    return i < (int32_t)rig->input_count ? rig->inputs[i] : rig->outputs[i - (int32_t)rig->input_count];
}

static bool same_but(const struct spec *a, const struct spec *b, int32_t axis)
{
    for (int32_t i = 0; i < 4; i++)
        if (i != axis && a->dims[i] != b->dims[i])
            return false;
    return true;
}

static void add_concatenation(struct rig *rig)
{
    int32_t axis = rig_between(rig, 1, 3), inputs[4] = {any_value(rig)}, count = 1;
    struct spec out = spec_of(rig, inputs[0]);
    for (int32_t tries = 0; tries < 12 && count < 4; tries++) {
        int32_t other = any_value(rig);
        struct spec spec = spec_of(rig, other);
        if (!same_but(&spec, &out, axis) || out.dims[axis] + spec.dims[axis] > 100)
            continue;
        out.dims[axis] += spec.dims[axis];
        inputs[count++] = other;
    }
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_CONCATENATION, .axis = axis}, "CONCATENATION", inputs, (uint32_t)count,
           &to, 1);
}

static void add_slice(struct rig *rig)
{
    int32_t from = any_value(rig), axis = rig_between(rig, 1, 3);
    struct spec out = spec_of(rig, from);
    struct mica_op op = {.kind = MICA_OP_SLICE};
    for (int32_t i = 0; i < 4; i++) {
        op.slice.step[i] = 1;
        op.slice.count[i] = out.dims[i];
    }
    op.slice.begin[axis] =
        axis == 3 ? rig_between(rig, 0, (out.dims[3] - 1) / 16) * 16 : rig_between(rig, 0, out.dims[axis] - 1);
    op.slice.count[axis] = out.dims[axis] = rig_between(rig, 1, out.dims[axis] - op.slice.begin[axis]);
    int32_t to = rig_output(rig, &out);
    rig_op(rig, op, "STRIDED_SLICE", &from, 1, &to, 1);
}

static void add_pool(struct rig *rig)
{
    int32_t from = any_value(rig);
    struct spec out = spec_of(rig, from);
    struct mica_op op = {.kind = MICA_OP_MAX_POOL_2D};
    op.window.stride_x = op.window.stride_y = 1;
    op.window.kernel_x = out.dims[2] > 1 ? 2 : 1;
    op.window.kernel_y = out.dims[1] > 2 ? 3 : 1;
    out.dims[2] -= op.window.kernel_x - 1;
    out.dims[1] -= op.window.kernel_y - 1;
    int32_t to = rig_output(rig, &out);
    rig_op(rig, op, "MAX_POOL_2D", &from, 1, &to, 1);
}

/* With another value of the same shape, if there is one. */
static void add_pair(struct rig *rig)
{
    int32_t inputs[2] = {any_value(rig)};
    struct spec out = spec_of(rig, inputs[0]);
    inputs[1] = inputs[0];
    for (int32_t tries = 0; tries < 10; tries++) {
        int32_t other = any_value(rig);
        struct spec spec = spec_of(rig, other);
        if (other != inputs[0] && same_but(&spec, &out, -1))
            inputs[1] = other;
    }
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_ADD}, "ADD", inputs, 2, &to, 1);
}

static void add_relu(struct rig *rig)
{
    int32_t from = any_value(rig);
    struct spec out = spec_of(rig, from);
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_RELU6}, "RELU6", &from, 1, &to, 1);
}

/* The same pixels in other rows. */
static void add_reshape(struct rig *rig)
{
    int32_t from = any_value(rig);
    struct spec out = spec_of(rig, from);
    out.dims[2] *= out.dims[1];
    out.dims[1] = 1;
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &from, 1, &to, 1);
}

/* The same values as pixels of other channels. */
static void add_relayout(struct rig *rig)
{
    int32_t from = any_value(rig), by = rig_between(rig, 2, 4);
    struct spec out = spec_of(rig, from);
    if (out.dims[3] % by == 0) {
        out.dims[3] /= by;
        out.dims[2] *= by;
    } else if (out.dims[2] % by == 0 && out.dims[3] * by <= 100) {
        out.dims[3] *= by;
        out.dims[2] /= by;
    }
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &from, 1, &to, 1);
}

/* Rows, columns or channels the other way round. */
static void add_reversal(struct rig *rig)
{
    int32_t inputs[2] = {any_value(rig)}, axis = rig_between(rig, 1, 3);
    struct spec out = spec_of(rig, inputs[0]);
    inputs[1] = rig_numbers(rig, &axis, 1);
    int32_t to = rig_output(rig, &out);
    rig_op(rig, (struct mica_op){.kind = MICA_OP_REVERSE}, "REVERSE_V2", inputs, 2, &to, 1);
}

static void run_seed(uint64_t seed)
{
    static void (*const add[])(struct rig *) = {add_concatenation, add_concatenation, add_slice, add_slice,
                                                add_pool,          add_pair,          add_relu,  add_relayout,
                                                add_reversal,      add_reshape};
    struct rig rig;
    rig_open(&rig, chip, seed);
    int32_t channels = rig_between(&rig, 0, 1) ? 16 * rig_between(&rig, 1, 3) : rig_channels(&rig);
    struct spec in = rig_image(&rig, 0.05, rig_between(&rig, 1, 6), rig_between(&rig, 1, 6), channels);
    for (int32_t i = rig_between(&rig, 1, 3); i > 0; i--)
        rig_input(&rig, &in);
    for (int32_t i = 0; i < OPS; i++)
        add[rig_between(&rig, 0, (int32_t)(sizeof(add) / sizeof(add[0])) - 1)](&rig);
    uint8_t *first;
    int32_t last = rig.outputs[rig.output_count - 1];
    size_t size = rig.net.graph->tensors[last].bytes;
    if (!rig_run(&rig))
        fail_msg("seed %llu: %s", (unsigned long long)seed, rig.reason);
    first = malloc(size);
    assert_non_null(first);
    memcpy(first, rig.data[last], size);
    rig.outputs[0] = last;
    rig.output_count = 1;
    assert_true(rig_run(&rig));
    if (memcmp(first, rig.data[last], size))
        fail_msg("seed %llu: the result depends on what else is an output", (unsigned long long)seed);
    free(first);
    rig_close(&rig);
}

static void where_values_are_does_not_matter(void **state)
{
    (void)state;
    for (unsigned seed = first_seed; seed < first_seed + seed_count; seed++)
        run_seed(seed);
}

int main(int argc, char **argv)
{
    if (argc < 2 || (strcmp(argv[1], "rk3588") && strcmp(argv[1], "rk3566"))) {
        fprintf(stderr, "usage: %s CHIP [first seed [count]]\n", argv[0]);
        return 2;
    }
    chip = !strcmp(argv[1], "rk3566") ? &test_rk3566 : &test_rk3588;
    if (argc > 2)
        first_seed = (unsigned)strtoul(argv[2], NULL, 0);
    if (argc > 3)
        seed_count = (unsigned)strtoul(argv[3], NULL, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(where_values_are_does_not_matter)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
