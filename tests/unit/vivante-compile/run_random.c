/* SPDX-License-Identifier: MIT */
/*
 * Random graphs, compiled, run on a simulated chip and compared byte for byte
 * with the CPU kernels in that chip's arithmetic.
 *
 *     run_random CHIP [first seed [count]]
 */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "npu/vivante/hw/fields.h"
#include "runtime/instance.h"
#include "runtime/partition.h"

#define MAX_OPS 8
#define MAX_POOL 64
#define MAX_VALUES 40000 /* of one tensor */

/* A chip, and what its documentation says of it, for checks that must not trust the compiler's own table. */
struct subject {
    const struct mica_chip *chip;
    enum mica_arithmetic arithmetic;
    uint32_t input_rows, accumulators, sram, sram_align, most_kernels;
};

static const struct subject subjects[] = {
    {&mica_chip_a311d, MICA_ARITHMETIC_VIVANTE_V7, 12, 64, 512 * 1024, 128, 127},
    {&mica_chip_s905d3, MICA_ARITHMETIC_VIVANTE_V7, 6, 64, 512 * 1024, 128, 127},
    {&mica_chip_imx8mp, MICA_ARITHMETIC_VIVANTE_V8, 9, 32, 256 * 1024, 256, 21},
};

static const struct subject *subject = &subjects[0];

#define KINDS 128 /* more than there are */

struct world {
    struct random random;
    struct net net;
    enum mica_type type;
    int32_t pool[MAX_POOL]; /* tensors that operations may read */
    uint32_t pool_count;
    int32_t inputs[MAX_POOL];
    uint32_t input_count;
    uint32_t ops[4 * MAX_OPS]; /* those the NPU takes */
    uint32_t op_count;
    uint32_t kinds[KINDS];
};

static uint32_t below(struct world *world, uint32_t bound)
{
    return random_below(&world->random, bound);
}

static int32_t between(struct world *world, int32_t low, int32_t high)
{
    return (int32_t)random_between(&world->random, (uint32_t)low, (uint32_t)high);
}

static float scale_near(struct world *world, double scale)
{
    return (float)(scale * (0.5 + below(world, 1000) / 1000.0));
}

static int32_t any_zero_point(struct world *world)
{
    int32_t zero = below(world, 4) ? between(world, 0, 255) : 0;
    return world->type == MICA_TYPE_INT8 ? zero - 128 : zero;
}

static const struct mica_tensor *tensor(const struct world *world, int32_t index)
{
    return &world->net.graph->tensors[index];
}

static void offer(struct world *world, int32_t index)
{
    if (world->pool_count < MAX_POOL)
        world->pool[world->pool_count++] = index;
}

static int32_t new_input(struct world *world, const struct spec *spec)
{
    int32_t index = net_tensor(&world->net, spec, NULL);
    world->inputs[world->input_count++] = index;
    offer(world, index);
    return index;
}

/* Most of the time something that exists, so that graphs get deep. */
static int32_t pick(struct world *world, uint32_t rank)
{
    for (unsigned i = 0; i < 8 && world->pool_count; i++) {
        uint32_t last = world->pool_count - 1, at = below(world, 2) ? last : below(world, world->pool_count);
        if (!rank || tensor(world, world->pool[at])->rank == rank)
            return world->pool[at];
    }
    static const int32_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 13, 14, 16, 17, 20, 28, 33, 56, 65, 70};
    struct spec spec = {.type = world->type, .scale = scale_near(world, 0.02), .rank = 4};
    spec.zero_point = any_zero_point(world);
    spec.dims[0] = below(world, 16) ? 1 : between(world, 2, 3);
    spec.dims[1] = sizes[below(world, 17)];
    spec.dims[2] = sizes[below(world, 17)];
    if (below(world, 20) == 0) /* one long side, now and then */
        spec.dims[1 + below(world, 2)] = between(world, 100, 600);
    int32_t room = MAX_VALUES / (spec.dims[0] * spec.dims[1] * spec.dims[2]);
    spec.dims[3] = between(world, 1, room < 80 ? room : 80);
    return new_input(world, &spec);
}

static struct spec spec_like(const struct world *world, int32_t index)
{
    const struct mica_tensor *t = tensor(world, index);
    struct spec spec = {.type = t->type, .scale = t->quant.scale[0], .zero_point = t->quant.zero_point[0]};
    spec.rank = t->rank;
    memcpy(spec.dims, t->dims, sizeof(spec.dims));
    return spec;
}

/* Adds the operation; its output can be read by others if the NPU takes it. */
static bool add_op(struct world *world, struct mica_op op, const char *type, const int32_t *inputs, uint32_t count,
                   int32_t output)
{
    char reason[256] = "";
    uint32_t index = world->net.graph->op_count;
    net_op(&world->net, op, type, inputs, count, output);
    if (world->net.graph->ops[index].problem)
        fail_msg("the test made a bad %s: %s", type, world->net.graph->ops[index].problem);
    if (mica_vivante.supports(subject->chip, world->net.graph, index, reason, sizeof(reason))) {
        assert_true(reason[0]);
        return false;
    }
    world->ops[world->op_count++] = index;
    assert_true(op.kind < KINDS);
    world->kinds[op.kind]++;
    offer(world, output);
    return true;
}

static enum mica_activation any_activation(struct world *world)
{
    static const enum mica_activation all[] = {MICA_ACT_NONE, MICA_ACT_NONE, MICA_ACT_RELU, MICA_ACT_RELU6};
    return all[below(world, 4)];
}

/* Constant weights, some sparse. */
static int32_t any_weights(struct world *world, const struct spec *spec)
{
    size_t size = 1;
    for (uint32_t i = 0; i < spec->rank; i++)
        size *= (size_t)spec->dims[i];
    uint8_t *data = malloc(size);
    assert_non_null(data);
    random_bytes(&world->random, data, size);
    uint32_t zeros = below(world, 3) ? 0 : below(world, 257);
    for (size_t i = 0; i < size; i++)
        if (below(world, 256) < zeros)
            data[i] = (uint8_t)spec->zero_point;
    int32_t index = net_tensor(&world->net, spec, data);
    free(data);
    return index;
}

static int32_t any_bias(struct world *world, int32_t channels, float scale)
{
    if (below(world, 8) == 0)
        return MICA_NO_TENSOR;
    int32_t *data = calloc((size_t)channels, 4);
    assert_non_null(data);
    for (int32_t i = 0; i < channels; i++)
        data[i] = between(world, 0, 40000) - 20000;
    struct spec spec = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {channels}, .scale = scale};
    int32_t index = net_tensor(&world->net, &spec, data);
    free(data);
    return index;
}

static struct spec weight_spec(struct world *world)
{
    struct spec spec = {.type = world->type, .scale = scale_near(world, 0.01), .rank = 4};
    spec.zero_point = world->type == MICA_TYPE_INT8 ? 0 : any_zero_point(world);
    return spec;
}

/* So that sums of `terms` products fill the range without leaving it often. */
static float output_scale(struct world *world, float in, float weight, int32_t terms)
{
    return scale_near(world, (double)in * weight * 75 * 75 * sqrt((double)terms) / 60);
}

static int32_t dilated(int32_t kernel, int32_t dilation)
{
    return (kernel - 1) * dilation + 1;
}

static void axis_padding(struct world *world, int32_t size, int32_t kernel, int32_t stride, int32_t dilation,
                         unsigned mode, int32_t *before, int32_t *after)
{
    *before = *after = 0;
    if (mode == 0) {
        *before = mica_same_padding(size, kernel, stride, dilation, after);
    } else if (mode == 1 && kernel > 1) {
        *before = (int32_t)below(world, (uint32_t)kernel);
        *after = (int32_t)below(world, (uint32_t)kernel);
    }
}

static bool random_window(struct world *world, const struct mica_tensor *in, struct mica_window *window)
{
    static const int32_t kernels[] = {1, 1, 1, 3, 3, 3, 5, 2, 4, 7, 11}, large[] = {12, 15, 16, 23, 33};
    *window = (struct mica_window){.dilation_x = 1, .dilation_y = 1, .depth_multiplier = 1};
    window->kernel_x = window->kernel_y = kernels[below(world, 11)];
    if (below(world, 5) == 0)
        window->kernel_y = kernels[below(world, 11)];
    window->stride_x = window->stride_y = below(world, 3) ? 1 : 2;
    if (below(world, 8) == 0) { /* what the cores do not have */
        *(below(world, 2) ? &window->kernel_x : &window->kernel_y) = large[below(world, 5)];
        window->stride_x = between(world, 1, 5);
        window->stride_y = between(world, 1, 5);
    }
    if (below(world, 8) == 0) {
        window->dilation_x = between(world, 1, 6);
        window->dilation_y = between(world, 1, 6);
    }
    unsigned mode = below(world, 3);
    axis_padding(world, in->dims[2], window->kernel_x, window->stride_x, window->dilation_x, mode,
                 &window->padding.left, &window->padding.right);
    axis_padding(world, in->dims[1], window->kernel_y, window->stride_y, window->dilation_y, mode, &window->padding.top,
                 &window->padding.bottom);
    window->activation = any_activation(world);
    return in->dims[2] + window->padding.left + window->padding.right >=
               dilated(window->kernel_x, window->dilation_x) &&
           in->dims[1] + window->padding.top + window->padding.bottom >= dilated(window->kernel_y, window->dilation_y);
}

static struct spec conv_output(struct world *world, const struct mica_tensor *in, const struct mica_window *w,
                               int32_t channels)
{
    struct spec spec = {.type = world->type, .zero_point = any_zero_point(world), .rank = 4};
    spec.dims[0] = in->dims[0];
    spec.dims[1] =
        (in->dims[1] + w->padding.top + w->padding.bottom - dilated(w->kernel_y, w->dilation_y)) / w->stride_y + 1;
    spec.dims[2] =
        (in->dims[2] + w->padding.left + w->padding.right - dilated(w->kernel_x, w->dilation_x)) / w->stride_x + 1;
    spec.dims[3] = channels;
    return spec;
}

static void add_conv(struct world *world, bool depthwise)
{
    int32_t in = pick(world, 4), channels = tensor(world, in)->dims[3];
    const struct mica_tensor *t = tensor(world, in);
    struct mica_op op = {.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D};
    if (!random_window(world, t, &op.window))
        return;
    const struct mica_window *w = &op.window;
    struct spec filter = weight_spec(world), out = conv_output(world, t, w, 1);
    int32_t room = MAX_VALUES / (out.dims[0] * out.dims[1] * out.dims[2]), outputs = depthwise ? channels : 1;
    if (room < channels && depthwise)
        return;
    if (!depthwise)
        outputs = between(world, 1, room < 100 ? room : 100);
    const int32_t dims[] = {depthwise ? 1 : outputs, w->kernel_y, w->kernel_x, channels};
    memcpy(filter.dims, dims, sizeof(dims));
    out.dims[3] = outputs;
    float in_scale = t->quant.scale[0];
    out.scale = output_scale(world, in_scale, filter.scale, w->kernel_x * w->kernel_y * (depthwise ? 1 : channels));
    int32_t inputs[3] = {in, any_weights(world, &filter), any_bias(world, outputs, in_scale * filter.scale)};
    add_op(world, op, depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", inputs, 3, net_tensor(&world->net, &out, NULL));
}

static void add_pool(struct world *world)
{
    bool average = below(world, 2);
    int32_t in = pick(world, 4);
    const struct mica_tensor *t = tensor(world, in);
    struct mica_op op = {.kind = average ? MICA_OP_AVERAGE_POOL_2D : MICA_OP_MAX_POOL_2D};
    if (!random_window(world, t, &op.window))
        return;
    struct mica_window *w = &op.window;
    if (w->dilation_x > 1 || w->dilation_y > 1)
        return;
    struct spec out = conv_output(world, t, w, t->dims[3]);
    out.scale = t->quant.scale[0];
    out.zero_point = t->quant.zero_point[0];
    if (out.dims[0] * out.dims[1] * out.dims[2] * out.dims[3] <= 2 * MAX_VALUES)
        add_op(world, op, average ? "AVERAGE_POOL_2D" : "MAX_POOL_2D", &in, 1, net_tensor(&world->net, &out, NULL));
}

static void add_fully_connected(struct world *world)
{
    int32_t in = pick(world, 0);
    const struct mica_tensor *t = tensor(world, in);
    int32_t count = (int32_t)t->bytes, outputs = between(world, 1, 40);
    if (count > 5000 || (t->rank == 2 && t->dims[0] != 1))
        return;
    struct spec filter = weight_spec(world), out = {.type = world->type, .zero_point = any_zero_point(world)};
    filter.rank = out.rank = 2;
    filter.dims[0] = outputs;
    filter.dims[1] = count;
    out.dims[0] = 1;
    out.dims[1] = outputs;
    float in_scale = t->quant.scale[0];
    out.scale = output_scale(world, in_scale, filter.scale, count);
    struct mica_op op = {.kind = MICA_OP_FULLY_CONNECTED, .activation = any_activation(world)};
    int32_t inputs[3] = {in, any_weights(world, &filter), any_bias(world, outputs, in_scale * filter.scale)};
    add_op(world, op, "FULLY_CONNECTED", inputs, 3, net_tensor(&world->net, &out, NULL));
}

static bool same_shape(const struct mica_tensor *a, const struct mica_tensor *b)
{
    return a->rank == b->rank && !memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0]));
}

static void add_addition(struct world *world)
{
    int32_t a = pick(world, 0), b = MICA_NO_TENSOR;
    for (uint32_t i = 0; i < world->pool_count; i++)
        if (same_shape(tensor(world, a), tensor(world, world->pool[i])) && (b < 0 || below(world, 2)))
            b = world->pool[i];
    if (b == a && below(world, 4)) {
        struct spec spec = spec_like(world, a);
        spec.scale = scale_near(world, (double)spec.scale);
        b = new_input(world, &spec);
    }
    struct spec out = spec_like(world, a);
    float larger = fmaxf(tensor(world, a)->quant.scale[0], tensor(world, b)->quant.scale[0]);
    out.scale = scale_near(world, 1.5 * (double)larger);
    out.zero_point = any_zero_point(world);
    const int32_t inputs[] = {a, b};
    struct mica_op op = {.kind = MICA_OP_ADD, .activation = any_activation(world)};
    add_op(world, op, "ADD", inputs, 2, net_tensor(&world->net, &out, NULL));
}

/* The shape of a tensor with some dimensions of one element. */
static struct spec thinned(struct world *world, int32_t index)
{
    struct spec spec = spec_like(world, index);
    for (uint32_t i = 0; i < spec.rank; i++)
        if (below(world, 2))
            spec.dims[i] = 1;
    return spec;
}

/* Two tensors that broadcast, one of them constant now and then: extremes, which are exact, or a sum. */
static void add_broadcast(struct world *world)
{
    static const enum mica_op_kind kinds[] = {MICA_OP_MAXIMUM, MICA_OP_MINIMUM, MICA_OP_ADD};
    static const char *const types[] = {"MAXIMUM", "MINIMUM", "ADD"};
    uint32_t kind = below(world, 3);
    int32_t whole = pick(world, 0);
    struct spec out = spec_like(world, whole), thin = thinned(world, whole);
    int32_t other = kind < 2 && below(world, 3) == 0 ? any_weights(world, &thin) : new_input(world, &thin);
    bool swapped = below(world, 2);
    const int32_t inputs[] = {swapped ? other : whole, swapped ? whole : other};
    if (kind == 2)
        out.scale = scale_near(world, 1.5 * (double)out.scale);
    add_op(world, (struct mica_op){.kind = kinds[kind]}, types[kind], inputs, 2, net_tensor(&world->net, &out, NULL));
}

/* Functions of one value; those that TFLite has for int8 alone come last. */
static void add_function(struct world *world)
{
    static const struct {
        enum mica_op_kind kind;
        const char *type;
    } functions[] = {{MICA_OP_LOGISTIC, "LOGISTIC"},
                     {MICA_OP_TANH, "TANH"},
                     {MICA_OP_HARD_SWISH, "HARD_SWISH"},
                     {MICA_OP_LEAKY_RELU, "LEAKY_RELU"},
                     {MICA_OP_RELU6, "RELU6"},
                     {MICA_OP_ELU, "ELU"},
                     {MICA_OP_EXP, "EXP"},
                     {MICA_OP_ABS, "ABS"}};
    uint32_t function = below(world, world->type == MICA_TYPE_INT8 ? 8 : 5);
    struct mica_op op = {.kind = functions[function].kind, .alpha = (float)between(world, 0, 30) / 20 - 0.5f};
    int32_t in = pick(world, 0);
    struct spec out = spec_like(world, in);
    if (op.kind == MICA_OP_LOGISTIC || op.kind == MICA_OP_TANH) { /* TFLite wants no others */
        out.scale = op.kind == MICA_OP_TANH ? 1.0f / 128 : 1.0f / 256;
        out.zero_point = (op.kind == MICA_OP_TANH ? 128 : 0) - (world->type == MICA_TYPE_INT8 ? 128 : 0);
    } else {
        out.scale = scale_near(world, (double)out.scale);
        out.zero_point = any_zero_point(world);
    }
    add_op(world, op, functions[function].type, &in, 1, net_tensor(&world->net, &out, NULL));
}

static void add_concatenation(struct world *world)
{
    int32_t inputs[4], channels = 0, first = pick(world, 4);
    struct spec out = spec_like(world, first);
    uint32_t count = (uint32_t)between(world, 1, 4);
    for (uint32_t i = 0; i < count; i++) {
        struct spec spec = out;
        spec.dims[3] = between(world, 1, 9);
        inputs[i] = i == 0 || below(world, 4) == 0 ? first : new_input(world, &spec);
        channels += tensor(world, inputs[i])->dims[3];
    }
    for (uint32_t i = 1; i < count; i++) { /* not only the first place is the computed one */
        uint32_t at = below(world, i + 1);
        int32_t other = inputs[i];
        inputs[i] = inputs[at];
        inputs[at] = other;
    }
    out.dims[3] = channels;
    if (channels * out.dims[0] * out.dims[1] * out.dims[2] > 2 * MAX_VALUES)
        return;
    struct mica_op op = {.kind = MICA_OP_CONCATENATION, .axis = 3};
    add_op(world, op, "CONCATENATION", inputs, count, net_tensor(&world->net, &out, NULL));
}

static void add_pad(struct world *world)
{
    int32_t in = pick(world, 4);
    struct spec out = spec_like(world, in), spec = {.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}};
    int32_t amounts[8] = {0};
    for (unsigned i = 2; i < 6; i++)
        amounts[i] = (int32_t)below(world, 5);
    out.dims[1] += amounts[2] + amounts[3];
    out.dims[2] += amounts[4] + amounts[5];
    if (out.dims[0] * out.dims[1] * out.dims[2] * out.dims[3] > 2 * MAX_VALUES)
        return;
    const int32_t inputs[] = {in, net_tensor(&world->net, &spec, amounts)};
    add_op(world, (struct mica_op){.kind = MICA_OP_PAD}, "PAD", inputs, 2, net_tensor(&world->net, &out, NULL));
}

static int32_t some_divisor(struct world *world, int32_t value)
{
    int32_t divisor = between(world, 1, 12);
    while (value % divisor)
        divisor--;
    return divisor;
}

static void add_reshape(struct world *world)
{
    int32_t in = pick(world, 0);
    struct spec out = spec_like(world, in);
    int32_t size = (int32_t)tensor(world, in)->bytes;
    int32_t a = some_divisor(world, size), b = some_divisor(world, size / a), last = size / a / b;
    const int32_t four[] = {1, a, b, last}, keep[] = {out.dims[0], out.dims[2], out.dims[1], out.dims[3]};
    bool same_channels = out.rank == 4 && below(world, 3) == 0;
    if (below(world, 4) == 0) {
        out.rank = 2;
        out.dims[0] = 1;
        out.dims[1] = size;
    } else {
        out.rank = 4;
        memcpy(out.dims, same_channels ? keep : four, sizeof(four));
    }
    add_op(world, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &in, 1, net_tensor(&world->net, &out, NULL));
}

static void grow(struct world *world)
{
    switch (below(world, 18)) {
    case 0:
    case 1:
    case 2:
    case 3:
        add_conv(world, false);
        break;
    case 4:
    case 5:
        add_conv(world, true);
        break;
    case 6:
        add_fully_connected(world);
        break;
    case 7:
    case 8:
        add_addition(world);
        break;
    case 9:
        add_concatenation(world);
        break;
    case 10:
        add_pad(world);
        break;
    case 11:
    case 12:
        add_function(world);
        break;
    case 13:
    case 14:
        add_broadcast(world);
        break;
    case 15:
    case 16:
        add_pool(world);
        break;
    default:
        add_reshape(world);
        break;
    }
}

/* Graph outputs: what nobody reads, and now and then something in between. */
static void choose_outputs(struct world *world)
{
    const struct mica_graph *graph = world->net.graph;
    int32_t outputs[4 * MAX_OPS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < world->op_count; i++) {
        int32_t out = graph->ops[world->ops[i]].outputs[0];
        bool read = false;
        for (uint32_t j = 0; j < world->op_count; j++)
            for (uint32_t k = 0; k < graph->ops[world->ops[j]].input_count; k++)
                read |= graph->ops[world->ops[j]].inputs[k] == out;
        if (!read || below(world, 4) == 0)
            outputs[count++] = out;
    }
    assert_int_equal(
        mica_graph_set_io(world->net.graph, world->inputs, world->input_count, outputs, count, &world->net.log), 0);
}

/* ---- limits of the chip, which the simulator's results do not depend on ------------ */

static uint32_t rows_per_vector(uint32_t columns, uint32_t kernel)
{
    uint32_t reach = columns + kernel - 1; /* timing.md, section 2 */
    return reach <= 18 ? 4 : reach <= 36 ? 2 : 1;
}

static void check_sram(const uint32_t *words)
{
    uint32_t image = viv_nn_get(words, VIV_NN_IMAGE_CACHE_START), kernel = viv_nn_get(words, VIV_NN_KERNEL_CACHE_START);
    uint32_t image_end = viv_nn_get(words, VIV_NN_IMAGE_CACHE_END);
    uint32_t kernel_end = viv_nn_get(words, VIV_NN_KERNEL_CACHE_END);
    if (viv_nn_get(words, VIV_NN_IMAGE_CACHING_MODE))
        assert_true(image >= 0x800 && image < image_end && image_end <= subject->sram &&
                    image % subject->sram_align == 0);
    else
        assert_true(image == 0 && image_end == 0x800);
    if (viv_nn_get(words, VIV_NN_KERNEL_CACHING_MODE))
        assert_true(kernel >= image_end && kernel < kernel_end && kernel_end <= subject->sram &&
                    kernel % subject->sram_align == 0);
    else
        assert_true(kernel == 0 && kernel_end == 0);
}

static void check_limits(const uint32_t *words)
{
    uint32_t kernel = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE), count = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE);
    uint32_t columns = viv_nn_get(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE);
    uint32_t rows = viv_nn_get(words, VIV_NN_OUT_IMAGE_TILE_Y_SIZE), shared = rows_per_vector(columns, kernel);
    assert_in_range(columns, 1, 64);
    assert_true(columns <= viv_nn_get(words, VIV_NN_OUT_IMAGE_X_SIZE));
    assert_true(rows >= 1 && rows <= viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_SIZE));
    assert_true(rows + kernel - 1 <= subject->input_rows * shared);
    assert_true(count >= 1 && count * ((rows + shared - 1) / shared) <= subject->accumulators);
    assert_true(count <= (kernel == 1 ? 21 : subject->most_kernels));
    if (viv_nn_get(words, VIV_NN_POOLING))
        assert_true((columns % 2 == 0 || columns == viv_nn_get(words, VIV_NN_OUT_IMAGE_X_SIZE)) && rows % 2 == 0);
    check_sram(words);
}

static void check_descriptors(const struct mica_program *program)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        uint32_t words[VIV_NN_WORDS];
        if (!reloc->in_stream || program->submits[reloc->where].stream[reloc->offset / 4 - 1] != 0x08010428)
            continue;
        memcpy(words, program->buffers[reloc->target].data + reloc->addend, sizeof(words));
        check_limits(words);
    }
}

/* ---- running --------------------------------------------------------------------- */

static void **make_values(struct world *world)
{
    const struct mica_graph *graph = world->net.graph;
    void **values = calloc(graph->tensor_count, sizeof(void *));
    assert_non_null(values);
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        values[i] = malloc(graph->tensors[i].bytes);
        assert_non_null(values[i]);
        if (graph->tensors[i].data)
            memcpy(values[i], graph->tensors[i].data, graph->tensors[i].bytes);
        else
            random_bytes(&world->random, values[i], graph->tensors[i].bytes);
    }
    return values;
}

static void run_on_cpu(struct world *world, void **values)
{
    struct mica_cpu_options options = {.arithmetic = subject->arithmetic};
    for (uint32_t i = 0; i < world->op_count; i++)
        if (mica_cpu_run(world->net.graph, world->ops[i], values, &options, &world->net.log))
            fail_msg("%s", world->net.log.last_error);
}

static void compare(const struct mica_program_io *io, const uint8_t *got, const uint8_t *wanted)
{
    for (uint64_t i = 0; i < io->size; i++)
        if (got[i] != wanted[i])
            fail_msg("tensor %u byte %llu: %u instead of %u", io->tensor, (unsigned long long)i, got[i], wanted[i]);
}

static void run_on_npu(struct world *world, struct mica_winsys *winsys, const struct mica_program *program,
                       void **values)
{
    struct mica_instance *instance;
    const void **inputs = calloc(program->input_count + 1, sizeof(void *));
    void **outputs = calloc(program->output_count + 1, sizeof(void *));
    assert_true(inputs && outputs);
    if (mica_instance_create(winsys, program, &world->net.log, &instance))
        fail_msg("%s", world->net.log.last_error);
    for (uint32_t i = 0; i < program->input_count; i++)
        inputs[i] = values[program->inputs[i].tensor];
    for (uint32_t i = 0; i < program->output_count; i++) {
        outputs[i] = malloc(program->outputs[i].size);
        assert_non_null(outputs[i]);
    }
    for (unsigned run = 0; run < 2; run++) { /* twice: nothing of a run may stay behind */
        if (mica_instance_invoke(instance, inputs, outputs))
            fail_msg("%s", world->net.log.last_error);
        for (uint32_t i = 0; i < program->output_count; i++)
            compare(&program->outputs[i], outputs[i], values[program->outputs[i].tensor]);
    }
    size_t reports;
    mica_instance_reports(instance, &reports);
    assert_int_equal(reports, program->job_count);
    mica_instance_destroy(instance);
    for (uint32_t i = 0; i < program->output_count; i++)
        free(outputs[i]);
    free(outputs);
    free(inputs);
}

static void run_seed(struct world *world, struct mica_winsys *winsys)
{
    struct mica_partition partition;
    struct mica_program *program;
    net_open(&world->net);
    world->type = below(world, 3) ? MICA_TYPE_UINT8 : MICA_TYPE_INT8;
    uint32_t ops = (uint32_t)between(world, 1, MAX_OPS);
    for (uint32_t i = 0; i < ops; i++)
        grow(world);
    choose_outputs(world);
    if (world->op_count) {
        assert_int_equal(
            mica_partition_create(world->net.graph, world->ops, world->op_count, &world->net.log, &partition), 0);
        struct mica_compile_options options = {.on_chip = below(world, 2) == 0, .optimize_size = below(world, 4) == 0};
        if (mica_vivante.compile(subject->chip, &partition, &options, NULL, &world->net.log, &program))
            fail_msg("%s", world->net.log.last_error);
        assert_true(mica_program_valid(program));
        check_descriptors(program);
        void **values = make_values(world);
        run_on_cpu(world, values);
        run_on_npu(world, winsys, program, values);
        for (uint32_t i = 0; i < world->net.graph->tensor_count; i++)
            free(values[i]);
        free(values);
        mica_program_destroy(program);
        mica_partition_finish(&partition);
    }
    net_close(&world->net);
}

static unsigned first_seed = 1, seed_count = 2000;

static void print_error_message(void *user, enum mica_log_level level, const char *message)
{
    (void)user, (void)level;
    print_error("%s\n", message);
}

static void random_graphs_equal_the_cpu(void **state)
{
    (void)state;
    struct mica_log log = {.sink = print_error_message, .level = MICA_LOG_ERROR};
    struct mica_winsys *winsys;
    uint32_t kinds[KINDS] = {0};
    assert_int_equal(mica_winsys_sim_create(subject->chip, NULL, &log, &winsys), 0);
    for (unsigned seed = first_seed; seed < first_seed + seed_count; seed++) {
        struct world world = {.random = {seed * UINT64_C(7919)}};
        print_message("seed %u\r", seed);
        run_seed(&world, winsys);
        for (unsigned i = 0; i < KINDS; i++)
            kinds[i] += world.kinds[i];
    }
    winsys->destroy(winsys);
    uint32_t functions = kinds[MICA_OP_LOGISTIC] + kinds[MICA_OP_TANH] + kinds[MICA_OP_HARD_SWISH] +
                         kinds[MICA_OP_LEAKY_RELU] + kinds[MICA_OP_RELU6] + kinds[MICA_OP_ELU] + kinds[MICA_OP_EXP] +
                         kinds[MICA_OP_ABS];
    print_message("conv %u, depthwise %u, fully connected %u, add %u, concatenation %u, pad %u, reshape %u, "
                  "functions %u, extremes %u, pools %u\n",
                  kinds[MICA_OP_CONV_2D], kinds[MICA_OP_DEPTHWISE_CONV_2D], kinds[MICA_OP_FULLY_CONNECTED],
                  kinds[MICA_OP_ADD], kinds[MICA_OP_CONCATENATION], kinds[MICA_OP_PAD], kinds[MICA_OP_RESHAPE],
                  functions, kinds[MICA_OP_MAXIMUM] + kinds[MICA_OP_MINIMUM],
                  kinds[MICA_OP_AVERAGE_POOL_2D] + kinds[MICA_OP_MAX_POOL_2D]);
}

int main(int argc, char **argv)
{
    for (unsigned i = 0; argc > 1 && i < sizeof(subjects) / sizeof(subjects[0]); i++)
        if (!strcmp(subjects[i].chip->name, argv[1]))
            subject = &subjects[i];
    if (argc < 2 || strcmp(subject->chip->name, argv[1])) {
        fprintf(stderr, "usage: %s CHIP [first seed [count]]\n", argv[0]);
        return 2;
    }
    if (argc > 2)
        first_seed = (unsigned)strtoul(argv[2], NULL, 0);
    if (argc > 3)
        seed_count = (unsigned)strtoul(argv[3], NULL, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_graphs_equal_the_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
