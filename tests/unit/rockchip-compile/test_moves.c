/* SPDX-License-Identifier: MIT */
/* Concatenation, split, slice, padding, resizing, depth and space, run on both generations' simulators. */
#include <math.h>
#include <string.h>

#include "rig.h"

static const struct mica_chip *const chips[] = {&test_rk3588, &test_rk3566};
#define CHIPS 2

/* ---- concatenation --------------------------------------------------------------- */

static int32_t part_size(struct rig *rig, int32_t axis, bool aligned)
{
    if (axis != 3)
        return rig_between(rig, 1, 9);
    return aligned ? 16 * rig_between(rig, 1, 3) : rig_channels(rig);
}

/* Inputs of the partition, or values that it computes (then parts of the output are where they are computed). */
static int32_t any_part(struct rig *rig, struct spec *spec, bool computed)
{
    int32_t in = rig_input(rig, spec);
    if (!computed)
        return in;
    int32_t out = rig_output(rig, spec), inputs[2] = {in, in};
    rig->output_count -= (uint32_t)rig_between(rig, 0, 1); /* not always anybody else's business */
    rig_op(rig, (struct mica_op){.kind = MICA_OP_MAXIMUM}, "MAXIMUM", inputs, 2, &out, 1);
    return out;
}

static void run_concatenation(const struct mica_chip *chip, uint64_t seed)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    int32_t axis = 1 + (int32_t)(seed % 3), count = rig_between(&rig, 1, 4), sum = 0, parts[5], source[5];
    bool aligned = rig_between(&rig, 0, 1), scaled = rig.type == MICA_TYPE_UINT8 && rig_between(&rig, 0, 1);
    struct spec out = rig_image(&rig, 0.05, rig_between(&rig, 1, 6), rig_between(&rig, 1, 7),
                                axis == 3 ? 1 : rig_channels(&rig)),
                specs[5];
    for (int32_t i = 0; i < count; i++) {
        struct spec other = rig_image(&rig, 0.05, 1, 1, 1);
        specs[i] = out;
        if (scaled) {
            specs[i].scale = other.scale;
            specs[i].zero_point = other.zero_point;
        }
        specs[i].dims[axis] = part_size(&rig, axis, aligned);
        bool again = i > 0 && rig_between(&rig, 0, 4) == 0;
        if (again)
            specs[i] = specs[i - 1];
        parts[i] = again ? parts[i - 1] : any_part(&rig, &specs[i], rig_between(&rig, 0, 1));
        source[i] = again ? source[i - 1] : (int32_t)rig.inputs[rig.input_count - 1];
        sum += specs[i].dims[axis];
    }
    out.dims[axis] = sum;
    int32_t to = rig_output(&rig, &out);
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_CONCATENATION, .axis = axis}, "CONCATENATION", parts, (uint32_t)count,
           &to, 1);
    if (!rig_run(&rig))
        fail_msg("%s", rig.reason);
    for (int32_t y = 0; y < out.dims[1]; y++)
        for (int32_t x = 0; x < out.dims[2]; x++)
            for (int32_t c = 0; c < out.dims[3]; c++) {
                int32_t at[3] = {y, x, c}, i = 0;
                while (at[axis - 1] >= specs[i].dims[axis])
                    at[axis - 1] -= specs[i++].dims[axis];
                rig_check(&rig, to, y, x, c, rig_real(&rig, source[i], at[0], at[1], at[2]), scaled ? 0.53 : 1e-3);
            }
    rig_close(&rig);
}

static void concatenation_has_all_parts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 240; seed++)
        run_concatenation(chips[seed / 3 % CHIPS], seed);
}

/* ---- split and slice --------------------------------------------------------------- */

static void run_split(const struct mica_chip *chip, uint64_t seed)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    int32_t axis = 1 + (int32_t)(seed % 3), count = rig_between(&rig, 1, 3), to[3];
    int32_t size = part_size(&rig, axis, rig_between(&rig, 0, 1));
    struct spec in = rig_image(&rig, 0.05, rig_between(&rig, 1, 6), rig_between(&rig, 1, 7), rig_channels(&rig)), out;
    in.dims[axis] = size * count;
    out = in;
    out.dims[axis] = size;
    int32_t from = any_part(&rig, &in, rig_between(&rig, 0, 1)), source = rig.inputs[0];
    int32_t inputs[2] = {rig_numbers(&rig, &axis, 1), from};
    for (int32_t i = 0; i < count; i++)
        to[i] = rig_output(&rig, &out);
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_SPLIT}, "SPLIT", inputs, 2, to, (uint32_t)count);
    if (!rig_run(&rig))
        fail_msg("%s", rig.reason);
    for (int32_t i = 0; i < count; i++)
        for (int32_t y = 0; y < out.dims[1]; y++)
            for (int32_t x = 0; x < out.dims[2]; x++)
                for (int32_t c = 0; c < out.dims[3]; c++) {
                    int32_t at[3] = {y, x, c};
                    at[axis - 1] += i * size;
                    rig_equal(&rig, to[i], y, x, c, rig_pixel(&rig, source, at[0], at[1], at[2]));
                }
    rig_close(&rig);
}

static void split_has_the_parts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++)
        run_split(chips[seed / 3 % CHIPS], seed);
}

static void run_slice(const struct mica_chip *chip, uint64_t seed)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    struct spec in = rig_image(&rig, 0.05, rig_between(&rig, 1, 16), rig_between(&rig, 1, 16), rig_channels(&rig));
    struct spec out = in;
    struct mica_op op = {.kind = MICA_OP_SLICE};
    for (int32_t i = 0; i < 4; i++) {
        bool whole = rig_between(&rig, 0, 2) == 0;
        op.slice.begin[i] = whole ? 0 : rig_between(&rig, 0, in.dims[i] - 1);
        op.slice.step[i] = whole || rig_between(&rig, 0, 1) ? 1 : rig_between(&rig, 1, 4);
        int32_t room = (in.dims[i] - 1 - op.slice.begin[i]) / op.slice.step[i] + 1;
        out.dims[i] = op.slice.count[i] = whole ? room : rig_between(&rig, 1, room);
    }
    int32_t from = any_part(&rig, &in, rig_between(&rig, 0, 1)), source = rig.inputs[0], to = rig_output(&rig, &out);
    /* Further operations read it where it is. */
    int32_t sum = rig_output(&rig, &out), twice[2] = {to, to};
    rig_op(&rig, op, "STRIDED_SLICE", &from, 1, &to, 1);
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_MINIMUM}, "MINIMUM", twice, 2, &sum, 1);
    if (!rig_run(&rig))
        fail_msg("%s", rig.reason);
    for (int32_t y = 0; y < out.dims[1]; y++)
        for (int32_t x = 0; x < out.dims[2]; x++)
            for (int32_t c = 0; c < out.dims[3]; c++) {
                const struct mica_slice *s = &op.slice;
                int32_t value = rig_pixel(&rig, source, s->begin[1] + y * s->step[1], s->begin[2] + x * s->step[2],
                                          s->begin[3] + c * s->step[3]);
                rig_equal(&rig, to, y, x, c, value);
                rig_equal(&rig, sum, y, x, c, value);
            }
    rig_close(&rig);
}

static void slice_takes_what_it_says(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++)
        run_slice(chips[seed % CHIPS], seed);
}

/* ---- padding ------------------------------------------------------------------------ */

static void run_pad(const struct mica_chip *chip, uint64_t seed)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    struct spec in = rig_image(&rig, 0.05, rig_between(&rig, 1, 9), rig_between(&rig, 1, 9), rig_channels(&rig)), out;
    int32_t amounts[8] = {0};
    out = in;
    for (int32_t i = 1; i < 4; i++) {
        bool none = rig_between(&rig, 0, i == 3 ? 2 : 1) > (i == 3 ? 0 : 0);
        for (int32_t side = 0; side < 2; side++)
            amounts[2 * i + side] = none && i == 3 ? 0 : rig_between(&rig, 0, rig_between(&rig, 0, 4) ? 5 : 40);
        out.dims[i] += amounts[2 * i] + amounts[2 * i + 1];
    }
    struct spec table = {.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}}, one = in;
    one.rank = 1;
    one.dims[0] = 1;
    int32_t inputs[3] = {rig_input(&rig, &in), net_tensor(&rig.net, &table, amounts), 0}, value = in.zero_point;
    bool own = rig_between(&rig, 0, 2) == 0;
    if (own)
        value = rig_value(&rig, inputs[2] = rig_constant(&rig, &one), 0);
    int32_t to = rig_output(&rig, &out);
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_PAD}, own ? "PADV2" : "PAD", inputs, own ? 3 : 2, &to, 1);
    if (!rig_run(&rig))
        fail_msg("%s", rig.reason);
    for (int32_t y = 0; y < out.dims[1]; y++)
        for (int32_t x = 0; x < out.dims[2]; x++)
            for (int32_t c = 0; c < out.dims[3]; c++) {
                int32_t row = y - amounts[2], column = x - amounts[4], channel = c - amounts[6];
                bool inside = row >= 0 && row < in.dims[1] && column >= 0 && column < in.dims[2] && channel >= 0 &&
                              channel < in.dims[3];
                rig_equal(&rig, to, y, x, c, inside ? rig_pixel(&rig, inputs[0], row, column, channel) : value);
            }
    rig_close(&rig);
}

static void pad_surrounds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 120; seed++)
        run_pad(chips[seed % CHIPS], seed);
}

/* ---- resizing ----------------------------------------------------------------------- */

struct sizes {
    bool nearest, align, half;
    int32_t h, w, out_h, out_w;
    bool twice; /* in two passes, each of which rounds */
};

static double position(const struct sizes *s, int32_t i, int32_t in, int32_t out)
{
    double step = s->align && out > 1 ? (double)(in - 1) / (out - 1) : (double)in / out;
    return s->half ? (i + 0.5) * step - (s->nearest ? 0 : 0.5) : i * step;
}

static double clip(double value, int32_t in)
{
    return value < 0 ? 0 : value > in - 1 ? in - 1 : value;
}

static double resized(const struct rig *rig, const struct sizes *s, int32_t tensor, int32_t y, int32_t x, int32_t c)
{
    double row = position(s, y, s->h, s->out_h), column = position(s, x, s->w, s->out_w);
    if (s->nearest)
        return rig_real(rig, tensor, (int32_t)clip(s->align ? floor(row + 0.5) : floor(row + 1e-9), s->h),
                        (int32_t)clip(s->align ? floor(column + 0.5) : floor(column + 1e-9), s->w), c);
    row = clip(row, s->h);
    column = clip(column, s->w);
    double fy = row - floor(row), fx = column - floor(column), sum = 0;
    for (int32_t i = 0; i < 2; i++)
        for (int32_t j = 0; j < 2; j++)
            sum +=
                (i ? fy : 1 - fy) * (j ? fx : 1 - fx) *
                rig_real(rig, tensor, (int32_t)clip(floor(row) + i, s->h), (int32_t)clip(floor(column) + j, s->w), c);
    return sum;
}

static bool run_resize(const struct mica_chip *chip, uint64_t seed, const struct sizes *s, char *reason)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    struct spec in = rig_image(&rig, 0.05, s->h, s->w, rig_channels(&rig)), out = in;
    out.dims[1] = s->out_h;
    out.dims[2] = s->out_w;
    int32_t size[2] = {s->out_h, s->out_w};
    int32_t inputs[2] = {rig_input(&rig, &in), rig_numbers(&rig, size, 2)}, to = rig_output(&rig, &out);
    struct mica_op op = {.kind = s->nearest ? MICA_OP_RESIZE_NEAREST : MICA_OP_RESIZE_BILINEAR};
    op.resize = (struct mica_resize){.align_corners = s->align, .half_pixel_centers = s->half};
    rig_op(&rig, op, s->nearest ? "RESIZE_NEAREST_NEIGHBOR" : "RESIZE_BILINEAR", inputs, 2, &to, 1);
    bool runs = rig_run(&rig);
    for (int32_t y = 0; runs && y < s->out_h; y++)
        for (int32_t x = 0; x < s->out_w; x++)
            for (int32_t c = 0; c < in.dims[3]; c++)
                rig_check(&rig, to, y, x, c, resized(&rig, s, inputs[0], y, x, c),
                          s->nearest ? 1e-3
                          : s->twice ? 1.01
                                     : 0.51);
    strcpy(reason, rig.reason);
    rig_close(&rig);
    return runs;
}

static void resized_by_whole_factors(void **state)
{
    (void)state;
    static const int32_t factors[] = {1, 2, 4};
    char reason[256];
    for (uint64_t seed = 1; seed <= 120; seed++) {
        struct random random = {seed};
        int32_t fx = factors[random_below(&random, 3)],
                fy = random_below(&random, 3) ? fx : factors[random_below(&random, 3)];
        struct sizes s = {.nearest = seed % 2, .half = random_below(&random, 2)};
        s.align = !s.half && !s.nearest && random_below(&random, 2);
        s.h = random_between(&random, 1, 9);
        s.w = random_between(&random, 1, 9);
        if (s.align) {
            s.h++;
            s.w++;
        }
        s.out_h = s.align ? (s.h - 1) * fy + 1 : s.h * fy;
        s.out_w = s.align ? (s.w - 1) * fx + 1 : s.w * fx;
        if (s.nearest && random_below(&random, 3) == 0) { /* smaller */
            struct sizes other = s;
            s.h = other.out_h;
            s.w = other.out_w;
            s.out_h = other.h;
            s.out_w = other.w;
        }
        if (!run_resize(chips[seed / 2 % CHIPS], seed, &s, reason))
            fail_msg("%dx%d to %dx%d: %s", s.h, s.w, s.out_h, s.out_w, reason);
    }
}

static void large_factors_take_two_passes(void **state)
{
    (void)state;
    static const struct sizes all[] = {{.half = true, .h = 4, .w = 5, .out_h = 32, .out_w = 40, .twice = true},
                                       {.align = true, .h = 3, .w = 4, .out_h = 33, .out_w = 49, .twice = true},
                                       {.h = 3, .w = 2, .out_h = 48, .out_w = 64, .twice = true},
                                       {.nearest = true, .h = 3, .w = 4, .out_h = 48, .out_w = 64}};
    char reason[256];
    for (uint64_t seed = 0; seed < 8; seed++)
        if (!run_resize(chips[seed / 4 % CHIPS], seed, &all[seed % 4], reason))
            fail_msg("%s", reason);
}

static void other_factors_are_refused(void **state)
{
    (void)state;
    char reason[256];
    assert_false(
        run_resize(chips[0], 1, &(struct sizes){.nearest = true, .h = 4, .w = 4, .out_h = 6, .out_w = 6}, reason));
    assert_non_null(strstr(reason, "no whole multiples"));
    assert_false(run_resize(
        chips[0], 1, &(struct sizes){.nearest = true, .align = true, .h = 4, .w = 4, .out_h = 8, .out_w = 8}, reason));
    assert_non_null(strstr(reason, "uneven distances"));
    assert_false(run_resize(chips[0], 1, &(struct sizes){.h = 4, .w = 4, .out_h = 6, .out_w = 6}, reason));
    assert_non_null(strstr(reason, "no whole multiple"));
    assert_false(
        run_resize(chips[0], 1, &(struct sizes){.half = true, .h = 4, .w = 4, .out_h = 64, .out_w = 64}, reason));
    assert_non_null(strstr(reason, "8-bit weights"));
    assert_false(
        run_resize(chips[0], 1, &(struct sizes){.nearest = true, .h = 4, .w = 4, .out_h = 12, .out_w = 12}, reason));
    assert_non_null(strstr(reason, "strides 1, 2, 4 and 8"));
    assert_true(run_resize(chips[0], 1, &(struct sizes){.h = 1, .w = 1, .out_h = 33, .out_w = 33}, reason));
}

/* ---- depth and space ------------------------------------------------------------------ */

static void run_blocks(const struct mica_chip *chip, uint64_t seed)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    bool deepen = seed % 2;
    int32_t block = deepen ? rig_between(&rig, 1, 4) : 1 << rig_between(&rig, 0, 2), c = rig_channels(&rig);
    int32_t h = rig_between(&rig, 1, 6), w = rig_between(&rig, 1, 6);
    struct spec wide = rig_image(&rig, 0.05, h * block, w * block, c), deep = wide;
    deep.dims[1] = h;
    deep.dims[2] = w;
    deep.dims[3] = c * block * block;
    int32_t from = rig_input(&rig, deepen ? &wide : &deep), to = rig_output(&rig, deepen ? &deep : &wide);
    rig_op(&rig, (struct mica_op){.kind = deepen ? MICA_OP_SPACE_TO_DEPTH : MICA_OP_DEPTH_TO_SPACE, .block = block},
           deepen ? "SPACE_TO_DEPTH" : "DEPTH_TO_SPACE", &from, 1, &to, 1);
    if (!rig_run(&rig))
        fail_msg("%s", rig.reason);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++)
            for (int32_t k = 0; k < c * block * block; k++) {
                int32_t pixel = k / c, row = y * block + pixel / block, column = x * block + pixel % block;
                if (deepen)
                    rig_equal(&rig, to, y, x, k, rig_pixel(&rig, from, row, column, k % c));
                else
                    rig_equal(&rig, to, row, column, k % c, rig_pixel(&rig, from, y, x, k));
            }
    rig_close(&rig);
}

static void blocks_become_channels_and_back(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        run_blocks(chips[seed / 2 % CHIPS], seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concatenation_has_all_parts), cmocka_unit_test(split_has_the_parts),
        cmocka_unit_test(slice_takes_what_it_says),    cmocka_unit_test(pad_surrounds),
        cmocka_unit_test(resized_by_whole_factors),    cmocka_unit_test(large_factors_take_two_passes),
        cmocka_unit_test(other_factors_are_refused),   cmocka_unit_test(blocks_become_channels_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
