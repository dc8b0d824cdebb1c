/* SPDX-License-Identifier: MIT */
/* Element-wise operations and look-ups, run on both generations' simulators. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/table.h"
#include "rig.h"

static const struct mica_chip *const chips[] = {&test_rk3588, &test_rk3566};
#define CHIPS 2

/* ---- look-ups: exactly what the table says -------------------------------------- */

static void check_lookup(const struct mica_chip *chip, struct mica_op op, const char *type, uint64_t seed)
{
    struct rig rig;
    uint8_t table[256];
    rig_open(&rig, chip, seed);
    struct spec in = rig_image(&rig, 0.03, rig_between(&rig, 1, 9), rig_between(&rig, 1, 40), rig_channels(&rig));
    struct spec out = in;
    out.scale = (float)(in.scale * exp2(rig_between(&rig, -100, 100) / 100.0));
    if (op.kind == MICA_OP_TANH || op.kind == MICA_OP_LOGISTIC) {
        out.scale = op.kind == MICA_OP_TANH ? 1.0f / 128 : 1.0f / 256;
        out.zero_point = (op.kind == MICA_OP_TANH ? 0 : -128) + (in.type == MICA_TYPE_UINT8 ? 128 : 0);
    }
    if (op.kind == MICA_OP_QUANTIZE && seed % 3 == 0) { /* to the other type, nothing else changes */
        out.type = in.type == MICA_TYPE_UINT8 ? MICA_TYPE_INT8 : MICA_TYPE_UINT8;
        out.scale = in.scale;
        out.zero_point += out.type == MICA_TYPE_UINT8 ? 128 : -128;
    }
    if (op.kind == MICA_OP_RELU && seed % 3 == 0)
        out.scale = in.scale;
    int32_t from = rig_input(&rig, &in), to = rig_output(&rig, &out);
    rig_op(&rig, op, type, &from, 1, &to, 1);
    bool runs = rig_run(&rig);
    assert_int_equal(runs, mica_cpu_table(rig.net.graph, &rig.net.graph->ops[0], table) == 0);
    for (size_t i = 0; runs && i < rig.net.graph->tensors[to].bytes; i++)
        if (rig.data[to][i] != table[rig.data[from][i]])
            fail_msg("%s on %s, %u: %u instead of %u", type, chip->name, rig.data[from][i], rig.data[to][i],
                     table[rig.data[from][i]]);
    rig_close(&rig);
}

static void lookups_are_the_table(void **state)
{
    (void)state;
    static const struct {
        enum mica_op_kind kind;
        const char *type;
    } kinds[] = {
        {MICA_OP_LOGISTIC, "LOGISTIC"}, {MICA_OP_TANH, "TANH"},   {MICA_OP_HARD_SWISH, "HARD_SWISH"},
        {MICA_OP_RELU, "RELU"},         {MICA_OP_RELU6, "RELU6"}, {MICA_OP_RELU_N1_TO_1, "RELU_N1_TO_1"},
        {MICA_OP_QUANTIZE, "QUANTIZE"}, {MICA_OP_ELU, "ELU"},     {MICA_OP_LEAKY_RELU, "LEAKY_RELU"},
    };
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            struct mica_op op = {.kind = kinds[i].kind};
            if (op.kind == MICA_OP_LEAKY_RELU)
                op.alpha = 0.1f;
            check_lookup(chips[seed % CHIPS], op, kinds[i].type, seed);
        }
}

/* ---- two operands ------------------------------------------------------------------ */

struct pair {
    enum mica_op_kind kind;
    const char *type;
};

static const struct pair pairs[] = {{MICA_OP_ADD, "ADD"},
                                    {MICA_OP_SUB, "SUB"},
                                    {MICA_OP_MUL, "MUL"},
                                    {MICA_OP_MAXIMUM, "MAXIMUM"},
                                    {MICA_OP_MINIMUM, "MINIMUM"}};

static double combine(enum mica_op_kind kind, double a, double b)
{
    switch (kind) {
    case MICA_OP_ADD:
        return a + b;
    case MICA_OP_SUB:
        return a - b;
    case MICA_OP_MUL:
        return a * b;
    case MICA_OP_MAXIMUM:
        return a > b ? a : b;
    default:
        return a < b ? a : b;
    }
}

/* The nearest step to a bound is what TFLite clamps to. */
static double clamp(const struct rig *rig, int32_t tensor, enum mica_activation activation, double value)
{
    double scale = (double)rig->net.graph->tensors[tensor].quant.scale[0];
    double low = activation == MICA_ACT_RELU_N1_TO_1 ? round(-1 / scale) * scale : 0;
    double high = activation == MICA_ACT_RELU_N1_TO_1 ? 1 : 6;
    if (activation == MICA_ACT_NONE)
        return value;
    value = value < low ? low : value;
    return activation != MICA_ACT_RELU && value > round(high / scale) * scale ? round(high / scale) * scale : value;
}

static int32_t at(const struct spec *spec, uint32_t from_end, int32_t i)
{
    return spec->rank > from_end && spec->dims[spec->rank - 1 - from_end] > 1 ? i : 0;
}

/* Some dimensions become 1. */
static struct spec shrunk(struct rig *rig, struct spec spec, unsigned which)
{
    static const unsigned masks[] = {0, 6, 1, 7, 2, 4, 3, 5}; /* bits: channels, columns, rows */
    unsigned mask = masks[which % 8];
    for (uint32_t i = 0; i < 3; i++)
        if (mask >> i & 1)
            spec.dims[3 - i] = 1;
    if (mask == 6 && rig_between(rig, 0, 1)) { /* the same, said with fewer dimensions */
        spec.rank = 1;
        spec.dims[0] = spec.dims[3];
    }
    return spec;
}

static bool run_pair(const struct mica_chip *chip, uint64_t seed, char *reason)
{
    struct rig rig;
    rig_open(&rig, chip, seed);
    const struct pair *pair = &pairs[seed % 5];
    bool order = pair->kind == MICA_OP_MAXIMUM || pair->kind == MICA_OP_MINIMUM;
    int32_t h = rig_between(&rig, 1, 12), w = rig_between(&rig, 1, 20), c = rig_channels(&rig);
    struct spec full = rig_image(&rig, 0.05, h, w, c), a = full, b = rig_image(&rig, 0.05, h, w, c), out;
    if (order)
        b = a;
    unsigned which = random_below(&rig.random, 16);
    b = shrunk(&rig, b, which < 8 ? which : 0);
    if (rig_between(&rig, 0, 1)) {
        struct spec other = a;
        a = b;
        b = other;
    }
    bool constant = rig_between(&rig, 0, 2) == 0, twice = which == 15;
    int32_t first = rig_input(&rig, &a);
    int32_t second = twice ? first : constant ? rig_constant(&rig, &b) : rig_input(&rig, &b);
    if (twice)
        b = a;
    out = full;
    for (uint32_t i = 0; twice && i < 4; i++)
        out.dims[i] = a.rank == 4 ? a.dims[i] : 1;
    if (twice && a.rank == 1) {
        out.rank = 1;
        out.dims[0] = a.dims[0];
    }
    if (!order) {
        struct spec any = rig_image(&rig, pair->kind == MICA_OP_MUL ? 0.1 : 0.07, h, w, c);
        out.scale = any.scale;
        out.zero_point = any.zero_point;
    }
    struct mica_op op = {.kind = pair->kind};
    if (!order)
        op.activation = (enum mica_activation)rig_between(&rig, 0, 3);
    int32_t to = rig_output(&rig, &out);
    rig_op(&rig, op, pair->type, (const int32_t[]){first, second}, 2, &to, 1);
    bool runs = rig_run(&rig);
    h = out.rank == 4 ? out.dims[1] : 1;
    w = out.rank == 4 ? out.dims[2] : 1;
    c = out.dims[out.rank - 1];
    for (int32_t y = 0; runs && y < h; y++)
        for (int32_t x = 0; x < w; x++)
            for (int32_t k = 0; k < c; k++) {
                double p = rig_real(&rig, first, at(&a, 2, y), at(&a, 1, x), at(&a, 0, k));
                double q = rig_real(&rig, second, at(&b, 2, y), at(&b, 1, x), at(&b, 0, k));
                double exact = clamp(&rig, to, op.activation, combine(pair->kind, p, q));
                rig_check(&rig, to, y, x, k, exact, order ? 1e-6 : pair->kind == MICA_OP_MUL ? 0.51 : 1.0);
            }
    if (runs)
        rig_check_cpu(&rig, to);
    if (!runs)
        strcpy(reason, rig.reason);
    rig_close(&rig);
    return runs;
}

static void pairs_are_exact_or_bounded(void **state)
{
    (void)state;
    unsigned ran = 0, refused = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        char reason[256];
        if (run_pair(chips[seed / 5 % CHIPS], seed, reason)) {
            ran++;
            continue;
        }
        refused++;
        assert_non_null(strstr(reason, "16 columns"));
    }
    print_message("%u ran, %u were refused\n", ran, refused);
    assert_true(refused < ran / 20);
}

/* A cube whose pixels are more than a task's fields count, and no product of sides that they do. */
static void large_planes_are_cut(void **state)
{
    (void)state;
    for (unsigned i = 0; i < CHIPS; i++) {
        struct rig rig;
        rig_open(&rig, chips[i], 5 + i);
        struct spec a = rig_spec(&rig, 0.05, 3, 1, 8209, 3, 0), b = rig_spec(&rig, 0.05, 3, 1, 8209, 3, 0), out = a;
        int32_t first = rig_input(&rig, &a), second = rig_input(&rig, &b), to = rig_output(&rig, &out);
        rig_op(&rig, (struct mica_op){.kind = MICA_OP_ADD}, "ADD", (const int32_t[]){first, second}, 2, &to, 1);
        assert_true(rig_run(&rig));
        assert_true(rig.tasks == 2);
        for (int32_t x = 0; x < 8209; x++)
            for (int32_t c = 0; c < 3; c++)
                rig_check(&rig, to, 0, x, c, rig_real(&rig, first, 0, x, c) + rig_real(&rig, second, 0, x, c), 1.0);
        rig_close(&rig);
    }
}

/* Squeeze and excite: one value a channel for all pixels of a large image. */
static void many_pixels_share_an_operand(void **state)
{
    (void)state;
    static const int32_t sizes[][2] = {{56, 56}, {14, 14}, {7, 7}, {112, 112}, {1, 300}, {180, 1}};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct rig rig;
        rig_open(&rig, chips[i % CHIPS], 5 + i);
        int32_t h = sizes[i][0], w = sizes[i][1];
        struct spec a = rig_image(&rig, 0.05, h, w, 19), b = rig_image(&rig, 0.05, 1, 1, 19), out = a;
        int32_t first = rig_input(&rig, &a), second = rig_input(&rig, &b), to = rig_output(&rig, &out);
        rig_op(&rig, (struct mica_op){.kind = MICA_OP_MUL}, "MUL", (const int32_t[]){second, first}, 2, &to, 1);
        assert_true(rig_run(&rig));
        for (int32_t y = 0; y < h; y++)
            for (int32_t x = 0; x < w; x++)
                for (int32_t c = 0; c < 19; c++)
                    rig_check(&rig, to, y, x, c, rig_real(&rig, first, y, x, c) * rig_real(&rig, second, 0, 0, c),
                              0.51);
        rig_close(&rig);
    }
}

/* Products with one number a channel, and bounds: no second cube, one task. */
static void constants_for_all_pixels_need_no_cube(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct rig rig;
        rig_open(&rig, chips[seed % CHIPS], seed);
        const struct pair *pair = &pairs[2 + seed % 3];
        bool product = pair->kind == MICA_OP_MUL;
        int32_t h = rig_between(&rig, 1, 9), w = rig_between(&rig, 1, 9), c = rig_channels(&rig);
        int32_t numbers = product && seed % 2 ? c : 1;
        struct spec a = rig_image(&rig, 0.05, h, w, c), b = a, out = a, any = rig_spec(&rig, 0.05, 1, numbers, 0, 0, 0);
        if (product) {
            b = any;
            out.scale = 3 * any.scale;
        }
        b.rank = 1;
        b.dims[0] = numbers;
        int32_t first = rig_input(&rig, &a), second = rig_constant(&rig, &b), to = rig_output(&rig, &out);
        int32_t inputs[2] = {seed & 4 ? first : second, seed & 4 ? second : first};
        rig_op(&rig, (struct mica_op){.kind = pair->kind}, pair->type, inputs, 2, &to, 1);
        assert_true(rig_run(&rig));
        assert_true(rig.tasks == 1 || product); /* products may be cut for several cores */
        for (int32_t i = 0; i < h * w * c; i++) {
            double p = rig_real(&rig, first, i / c / w, i / c % w, i % c);
            double q = rig_real(&rig, second, 0, 0, numbers == 1 ? 0 : i % c);
            rig_check(&rig, to, i / c / w, i / c % w, i % c, combine(pair->kind, p, q), product ? 0.51 : 1e-3);
        }
        rig_close(&rig);
    }
}

/* ---- refusals ------------------------------------------------------------------------- */

static void refuses(const struct spec *a, const struct spec *b, const struct spec *out, const char *because)
{
    struct rig rig;
    rig_open(&rig, chips[0], 1);
    int32_t first = rig_input(&rig, a), second = rig_input(&rig, b), to = rig_output(&rig, out);
    rig_op(&rig, (struct mica_op){.kind = MICA_OP_ADD}, "ADD", (const int32_t[]){first, second}, 2, &to, 1);
    assert_false(rig_run(&rig));
    if (!strstr(rig.reason, because))
        fail_msg("\"%s\" instead of \"%s\"", rig.reason, because);
    rig_close(&rig);
}

static void refusals_say_why(void **state)
{
    (void)state;
    struct spec image = {.type = MICA_TYPE_INT8, .scale = 0.1f, .rank = 4, .dims = {1, 4, 20, 8}};
    struct spec column = image, coarse = image;
    column.dims[2] = 1;
    refuses(&image, &column, &image, "16 columns at most");
    coarse.scale = 20000.0f;
    refuses(&coarse, &image, &image, "too far above");
    coarse.scale = 0;
    coarse.type = image.type = MICA_TYPE_INT32;
    refuses(&coarse, &coarse, &coarse, "uint8 and int8 only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookups_are_the_table),
        cmocka_unit_test(pairs_are_exact_or_bounded),
        cmocka_unit_test(constants_for_all_pixels_need_no_cube),
        cmocka_unit_test(large_planes_are_cut),
        cmocka_unit_test(many_pixels_share_an_operand),
        cmocka_unit_test(refusals_say_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
