/* SPDX-License-Identifier: MIT */
/* A small program of all operations: valid, invalid after each change, and compiled while memory runs out. */
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/hw/chips.h"

static const struct mica_chip chips[] = {
    {.name = "a311d", .clock_mhz = 800, .parameters = &viv_a311d},
    {.name = "s905d3", .clock_mhz = 800, .parameters = &viv_s905d3},
    {.name = "imx8mp", .clock_mhz = 1000, .parameters = &viv_imx8mp},
};
static const struct mica_chip *chip = &chips[0];

/* A test for each chip in turn. */
static void on_every_chip(void (*test)(void))
{
    for (size_t i = 0; i < sizeof(chips) / sizeof(chips[0]); i++) {
        chip = &chips[i];
        test();
    }
    chip = &chips[0];
}

/* ---- allocations that fail on demand (linked with --wrap) ------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static long allocations_left = -1; /* negative: no limit */

static bool allowed(void)
{
    if (allocations_left == 0)
        return false;
    allocations_left -= allocations_left > 0;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return allowed() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    return allowed() ? __real_realloc(old, size) : NULL;
}

/* ---- the program --------------------------------------------------------------- */

struct subject {
    struct net net;
    struct mica_partition partition;
};

static int32_t conv(struct net *net, int32_t in, const struct spec *out, bool depthwise, int32_t stride)
{
    static uint8_t weights[3 * 3 * 16 * 16];
    struct spec filter = {MICA_TYPE_UINT8, 0.01f, 100, 4, {16, 3, 3, 16}};
    filter.dims[0] = depthwise ? 1 : out->dims[3];
    filter.dims[3] = net->graph->tensors[in].dims[3];
    struct mica_op op = {.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D};
    op.window = (struct mica_window){3, 3, stride, stride, 1, 1, {1, 1, 1, 1}, MICA_ACT_NONE, 1};
    const int32_t inputs[] = {in, net_tensor(net, &filter, weights)};
    int32_t index = net_tensor(net, out, NULL);
    net_op(net, op, "CONV", inputs, 2, index);
    return index;
}

/* conv -> depthwise -> add -> concatenation with the first -> pad -> strided conv -> hard swish -> product with the
   conv -> maximum with a constant row -> reshape -> fully connected */
static void build(struct subject *subject)
{
    struct net *net = &subject->net;
    static uint8_t weights[10 * 7 * 7 * 8];
    struct spec image = {MICA_TYPE_UINT8, 0.02f, 10, 4, {1, 10, 10, 3}}, deep = image, wide, padded, small;
    struct spec flat = {MICA_TYPE_UINT8, 0.02f, 10, 2, {1, 7 * 7 * 8}}, end = flat, filter = flat, amounts;
    deep.dims[3] = 16;
    wide = deep;
    wide.dims[3] = 32;
    padded = wide;
    padded.dims[1] = padded.dims[2] = 13;
    small = padded;
    small.dims[1] = small.dims[2] = 7;
    small.dims[3] = 8;
    end.dims[1] = filter.dims[0] = 10;
    filter.dims[1] = flat.dims[1];
    amounts = (struct spec){.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}};
    const int32_t pads[] = {0, 0, 1, 2, 1, 2, 0, 0};
    net_open(net);
    int32_t in = net_tensor(net, &image, NULL);
    int32_t a = conv(net, in, &deep, false, 1), b = conv(net, a, &deep, true, 1);
    int32_t sum = net_tensor(net, &deep, NULL), joined = net_tensor(net, &wide, NULL);
    const int32_t terms[] = {a, b}, parts[] = {sum, a};
    net_op(net, (struct mica_op){.kind = MICA_OP_ADD}, "ADD", terms, 2, sum);
    net_op(net, (struct mica_op){.kind = MICA_OP_CONCATENATION, .axis = 3}, "CONCATENATION", parts, 2, joined);
    const int32_t pad[] = {joined, net_tensor(net, &amounts, pads)};
    int32_t bordered = net_tensor(net, &padded, NULL), vector = net_tensor(net, &flat, NULL);
    net_op(net, (struct mica_op){.kind = MICA_OP_PAD}, "PAD", pad, 2, bordered);
    int32_t halved = conv(net, bordered, &small, false, 2), curved = net_tensor(net, &small, NULL);
    net_op(net, (struct mica_op){.kind = MICA_OP_HARD_SWISH}, "HARD_SWISH", &halved, 1, curved);
    struct spec row = small;
    row.dims[1] = 1;
    const int32_t factors[] = {curved, halved};
    int32_t product = net_tensor(net, &small, NULL), raised = net_tensor(net, &small, NULL);
    const int32_t sides[] = {product, net_tensor(net, &row, weights)};
    net_op(net, (struct mica_op){.kind = MICA_OP_MUL}, "MUL", factors, 2, product);
    net_op(net, (struct mica_op){.kind = MICA_OP_MAXIMUM}, "MAXIMUM", sides, 2, raised);
    net_op(net, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &raised, 1, vector);
    const int32_t full[] = {vector, net_tensor(net, &filter, weights)};
    int32_t out = net_tensor(net, &end, NULL);
    net_op(net, (struct mica_op){.kind = MICA_OP_FULLY_CONNECTED}, "FULLY_CONNECTED", full, 2, out);
    char reason[256];
    for (uint32_t i = 0; i < net->graph->op_count; i++)
        if (viv_supports(chip, net->graph, i, reason, sizeof(reason)))
            fail_msg("operation %u: %s", i, reason);
    const int32_t outputs[] = {out, sum};
    partition_init(&subject->partition, net, &in, 1, outputs, 2);
}

static int32_t pool(struct net *net, enum mica_op_kind kind, const char *type, int32_t in, int32_t stride)
{
    const struct mica_tensor *t = &net->graph->tensors[in];
    struct spec out = {MICA_TYPE_UINT8, 0.02f, 10, 4, {t->dims[0], t->dims[1] / stride, t->dims[2], t->dims[3]}};
    struct mica_op op = {.kind = kind, .window = {3, 2, 1, stride, 1, 1, {1, 0, 1, stride == 1}, MICA_ACT_RELU6, 1}};
    int32_t index = net_tensor(net, &out, NULL);
    net_op(net, op, type, &in, 1, index);
    return index;
}

/* Two images: strided conv -> average with padding -> maximum of 2x3, step 2x1 -> bilinear by 4/3 -> padded channels
   -> mean over channels and columns, maximum over rows */
static void build_windows(struct subject *subject)
{
    struct net *net = &subject->net;
    static const int32_t pads[] = {0, 0, 0, 0, 0, 0, 3, 0}, mean_axes[] = {2, 3}, rows = 1;
    struct spec image = {MICA_TYPE_UINT8, 0.02f, 10, 4, {2, 18, 18, 3}}, deep = image, large, wide;
    struct spec amounts = {.type = MICA_TYPE_INT32, .rank = 2, .dims = {4, 2}};
    struct spec two = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {2}}, one = two;
    one.dims[0] = 1;
    net_open(net);
    int32_t in = net_tensor(net, &image, NULL);
    deep.dims[1] = deep.dims[2] = 6;
    deep.dims[3] = 16;
    int32_t a = conv(net, in, &deep, false, 3);
    int32_t b = pool(net, MICA_OP_AVERAGE_POOL_2D, "AVERAGE_POOL_2D", a, 1);
    int32_t c = pool(net, MICA_OP_MAX_POOL_2D, "MAX_POOL_2D", b, 2);
    large = deep;
    large.dims[1] = 4;
    large.dims[2] = 8;
    wide = large;
    wide.dims[3] = 19;
    const int32_t sizes[] = {4, 8};
    int32_t d = net_tensor(net, &large, NULL), e = net_tensor(net, &wide, NULL);
    const int32_t resize[] = {c, net_tensor(net, &two, sizes)}, pad[] = {d, net_tensor(net, &amounts, pads)};
    net_op(net, (struct mica_op){.kind = MICA_OP_RESIZE_BILINEAR}, "RESIZE_BILINEAR", resize, 2, d);
    net_op(net, (struct mica_op){.kind = MICA_OP_PAD}, "PAD", pad, 2, e);
    struct spec means = {MICA_TYPE_UINT8, 0.03f, 5, 2, {2, 4}}, most = {MICA_TYPE_UINT8, 0.02f, 10, 3, {2, 8, 19}};
    const int32_t mean[] = {e, net_tensor(net, &two, mean_axes)}, extreme[] = {e, net_tensor(net, &one, &rows)};
    const int32_t outputs[] = {net_tensor(net, &means, NULL), net_tensor(net, &most, NULL)};
    net_op(net, (struct mica_op){.kind = MICA_OP_MEAN}, "MEAN", mean, 2, outputs[0]);
    net_op(net, (struct mica_op){.kind = MICA_OP_REDUCE_MIN}, "REDUCE_MIN", extreme, 2, outputs[1]);
    char reason[256];
    for (uint32_t i = 0; i < net->graph->op_count; i++)
        if (net->graph->ops[i].problem || viv_supports(chip, net->graph, i, reason, sizeof(reason)))
            fail_msg("operation %u: %s", i, net->graph->ops[i].problem ? net->graph->ops[i].problem : reason);
    partition_init(&subject->partition, net, &in, 1, outputs, 2);
}

static void drop(struct subject *subject)
{
    partition_finish(&subject->partition);
    net_close(&subject->net);
}

static struct mica_program *compile(struct subject *subject, struct mica_threads *threads)
{
    struct mica_program *program = NULL;
    if (viv_compile(chip, &subject->partition, NULL, threads, &subject->net.log, &program))
        fail_msg("%s", subject->net.log.last_error);
    return program;
}

static void run_out_of_memory(void (*make)(struct subject *subject), const struct mica_compile_options *options)
{
    struct subject subject;
    make(&subject);
    long allowance = 0;
    for (int result = -1; result; allowance++) {
        struct mica_program *program = NULL;
        allocations_left = allowance;
        result = viv_compile(chip, &subject.partition, options, NULL, &subject.net.log, &program);
        allocations_left = -1;
        if (result)
            assert_int_equal(result, -ENOMEM);
        assert_true((result == 0) == (program != NULL));
        mica_program_destroy(program);
    }
    assert_true(allowance > 20);
    drop(&subject);
}

static void run_out_of_memory_twice(void)
{
    const struct mica_compile_options size = {.optimize_size = true}, on_chip = {.on_chip = true};
    run_out_of_memory(build, NULL);
    run_out_of_memory(build, &size);
    run_out_of_memory(build, &on_chip);
    run_out_of_memory(build_windows, NULL);
}

static void running_out_of_memory_is_an_error_and_nothing_else(void **state)
{
    (void)state;
    on_every_chip(run_out_of_memory_twice);
}

/* Alone and on three threads. */
static void compile_twice(void)
{
    struct subject subject;
    build(&subject);
    struct mica_threads *threads = mica_threads_create(3);
    struct mica_program *a = compile(&subject, NULL), *b = compile(&subject, threads);
    assert_int_equal(a->buffer_count, b->buffer_count);
    for (uint32_t i = 0; i < a->buffer_count; i++) {
        assert_int_equal(a->buffers[i].size, b->buffers[i].size);
        assert_int_equal(a->buffers[i].data_size, b->buffers[i].data_size);
        if (a->buffers[i].data_size)
            assert_memory_equal(a->buffers[i].data, b->buffers[i].data, a->buffers[i].data_size);
    }
    assert_int_equal(a->reloc_count, b->reloc_count);
    assert_memory_equal(a->submits[1].stream, b->submits[1].stream, a->submits[1].words * 4);
    mica_program_destroy(a);
    mica_program_destroy(b);
    mica_threads_destroy(threads);
    drop(&subject);
}

static void compiling_twice_gives_the_same(void **state)
{
    (void)state;
    on_every_chip(compile_twice);
}

#define EXPECT_INVALID(place, value)               \
    do {                                           \
        assert_true(mica_program_valid(program));  \
        __typeof__(place) saved = (place);         \
        (place) = (value);                         \
        assert_false(mica_program_valid(program)); \
        (place) = saved;                           \
    } while (0)

static uint64_t coefficient_bytes(const struct subject *subject, bool size)
{
    const struct mica_compile_options options = {.optimize_size = size};
    struct mica_log log = {0};
    struct mica_program *program = NULL;
    assert_int_equal(viv_compile(chip, &subject->partition, &options, NULL, &log, &program), 0);
    uint64_t bytes = program->buffers[0].data_size;
    mica_program_destroy(program);
    return bytes;
}

/* A depthwise layer with room for different groups, where the chip needs any. */
static void compile_for_size(void)
{
    struct subject subject;
    struct spec image = {MICA_TYPE_UINT8, 0.02f, 10, 4, {1, 7, 7, 128}};
    net_open(&subject.net);
    int32_t in = net_tensor(&subject.net, &image, NULL), out = conv(&subject.net, in, &image, true, 1);
    partition_init(&subject.partition, &subject.net, &in, 1, &out, 1);
    uint64_t small = coefficient_bytes(&subject, true), fast = coefficient_bytes(&subject, false);
    assert_true(small <= fast);
    if (chip->parameters == &viv_a311d) /* on most cores two channels fit into a block of 64 bytes */
        assert_true(small < fast && small <= 128 * 45);
    drop(&subject);
}

static void optimizing_for_size_makes_coefficients_smaller(void **state)
{
    (void)state;
    on_every_chip(compile_for_size);
}

static void what_is_not_supported_is_not_compiled(void **state)
{
    (void)state;
    struct subject subject;
    build(&subject);
    struct mica_program *program;
    subject.net.graph->ops[1].window.kernel_x = 97;
    assert_int_equal(viv_compile(chip, &subject.partition, NULL, NULL, &subject.net.log, &program), -ENOTSUP);
    assert_non_null(strstr(subject.net.log.last_error, "larger than 96x96"));
    drop(&subject);
}

static void a_damaged_program_is_not_valid(void **state)
{
    (void)state;
    struct subject subject;
    build(&subject);
    struct mica_program *program = compile(&subject, NULL);
    EXPECT_INVALID(program->buffers[0].size, 0);
    EXPECT_INVALID(program->buffers[0].data_size, program->buffers[0].size + 1);
    EXPECT_INVALID(program->buffers[2].data_size, 1); /* has no data */
    EXPECT_INVALID(program->buffers[0].access, 0);
    EXPECT_INVALID(program->buffers[0].access, 4);
    EXPECT_INVALID(program->relocs[0].where, program->buffer_count);
    EXPECT_INVALID(program->relocs[0].offset, UINT32_MAX);
    EXPECT_INVALID(program->relocs[0].target, program->buffer_count);
    EXPECT_INVALID(program->relocs[0].shift, 32);
    EXPECT_INVALID(program->relocs[0].addend, UINT64_MAX);
    EXPECT_INVALID(program->relocs[0].addend, program->buffers[program->relocs[0].target].size);
    for (uint32_t i = 0; i < program->reloc_count; i++)
        if (program->relocs[i].in_stream) {
            EXPECT_INVALID(program->relocs[i].where, program->submit_count);
            EXPECT_INVALID(program->relocs[i].offset, program->submits[1].words * 4 - 3);
        }
    EXPECT_INVALID(program->inputs[0].buffer, program->buffer_count);
    EXPECT_INVALID(program->inputs[0].offset, 1);
    EXPECT_INVALID(program->outputs[1].size, UINT64_MAX);
    EXPECT_INVALID(program->submits[1].first_job, 1);
    EXPECT_INVALID(program->submits[1].job_count, UINT32_MAX);
    EXPECT_INVALID(program->submits[0].words, 0);
    memcpy(program->jobs[0].unit, "TP:", 3);
    EXPECT_INVALID(program->jobs[0].unit[3], ':');
    mica_program_destroy(program);
    drop(&subject);
    mica_program_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(running_out_of_memory_is_an_error_and_nothing_else),
        cmocka_unit_test(compiling_twice_gives_the_same),
        cmocka_unit_test(optimizing_for_size_makes_coefficients_smaller),
        cmocka_unit_test(what_is_not_supported_is_not_compiled),
        cmocka_unit_test(a_damaged_program_is_not_valid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
