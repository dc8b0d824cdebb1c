/* SPDX-License-Identifier: MIT */
/* Whole programs: what their buffers, tails, borders and submissions look like, and memory that runs out. */
#include "support.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "failing.h"
#include "npu/rockchip/compile/emit.h"
#include "npu/rockchip/compile/plan.h"

/* ---- a small network ----------------------------------------------------------- */

#define WEIGHT_BYTES 200000

struct subject {
    struct net net;
    struct mica_partition partition;
    int32_t in, out;
};

static uint8_t *some_weights(void)
{
    static uint8_t weights[WEIGHT_BYTES];
    struct random random = {11};
    random_bytes(&random, weights, sizeof(weights));
    return weights;
}

static struct spec image(int32_t h, int32_t w, int32_t c)
{
    return (struct spec){.type = MICA_TYPE_UINT8, .scale = 0.05f, .zero_point = 7, .rank = 4, .dims = {1, h, w, c}};
}

static int32_t add_conv(struct net *net, int32_t in, struct spec to, bool depthwise, int32_t kernel, int32_t stride,
                        enum mica_activation activation)
{
    const struct mica_tensor *from = &net->graph->tensors[in];
    struct spec weights = {.type = MICA_TYPE_UINT8, .scale = 0.01f, .zero_point = 120, .rank = 4};
    int32_t dims[] = {depthwise ? 1 : to.dims[3], kernel, kernel, depthwise ? to.dims[3] : from->dims[3]};
    struct mica_op op = {.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D};
    op.window = (struct mica_window){.stride_x = stride, .stride_y = stride, .dilation_x = 1, .dilation_y = 1};
    op.window.padding.top = mica_same_padding(from->dims[1], kernel, stride, 1, &op.window.padding.bottom);
    op.window.padding.left = mica_same_padding(from->dims[2], kernel, stride, 1, &op.window.padding.right);
    op.window.activation = activation;
    memcpy(weights.dims, dims, sizeof(dims));
    int32_t inputs[] = {in, net_tensor(net, &weights, some_weights())};
    int32_t out = net_tensor(net, &to, NULL);
    net_op(net, op, depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", inputs, 2, out);
    assert_null(net->graph->ops[net->graph->op_count - 1].problem);
    return out;
}

static int32_t add_reshape(struct net *net, int32_t in, int32_t values)
{
    struct spec flat = image(1, 1, 1);
    flat.rank = 2;
    flat.dims[1] = values;
    int32_t out = net_tensor(net, &flat, NULL);
    net_op(net, (struct mica_op){.kind = MICA_OP_RESHAPE}, "RESHAPE", &in, 1, out);
    return out;
}

static int32_t add_fully_connected(struct net *net, int32_t in, int32_t outputs)
{
    int32_t values = net->graph->tensors[in].dims[1];
    struct spec weights = {.type = MICA_TYPE_UINT8, .scale = 0.01f, .zero_point = 130, .rank = 2};
    weights.dims[0] = outputs;
    weights.dims[1] = values;
    assert_true(outputs * values <= WEIGHT_BYTES);
    struct spec to = image(1, 1, 1);
    to.rank = 2;
    to.dims[1] = outputs;
    int32_t inputs[] = {in, net_tensor(net, &weights, some_weights())}, out = net_tensor(net, &to, NULL);
    net_op(net, (struct mica_op){.kind = MICA_OP_FULLY_CONNECTED}, "FULLY_CONNECTED", inputs, 2, out);
    assert_null(net->graph->ops[net->graph->op_count - 1].problem);
    return out;
}

/* Rows in several tasks, a depthwise layer, one whose clamp needs a table, and an image that is taken as a row. */
static void open_subject(struct subject *subject)
{
    struct net *net = &subject->net;
    net_open(net);
    struct spec in = image(150, 160, 16), middle = image(75, 80, 40), less = image(19, 20, 24), small = image(5, 5, 24);
    subject->in = net_tensor(net, &in, NULL);
    int32_t t = add_conv(net, subject->in, in, false, 3, 1, MICA_ACT_NONE);
    t = add_conv(net, t, middle, false, 3, 2, MICA_ACT_RELU_N1_TO_1);
    t = add_conv(net, t, middle, true, 3, 1, MICA_ACT_RELU6);
    t = add_conv(net, t, less, false, 1, 4, MICA_ACT_NONE);
    t = add_conv(net, t, small, false, 2, 4, MICA_ACT_NONE);
    t = add_reshape(net, t, 600);
    subject->out = add_fully_connected(net, t, 10);
    partition_init(&subject->partition, net, &subject->in, 1, &subject->out, 1);
}

static void close_subject(struct subject *subject)
{
    partition_finish(&subject->partition);
    net_close(&subject->net);
}

static struct mica_program *compile(struct subject *subject, const struct mica_chip *chip, uint32_t split)
{
    struct mica_program *program = NULL;
    struct mica_compile_options options = {.split = split};
    char reason[256];
    for (uint32_t i = 0; i < subject->net.graph->op_count; i++)
        if (chip->family->supports(chip, subject->net.graph, i, reason, sizeof(reason)))
            fail_msg("operation %u: %s", i, reason);
    if (chip->family->compile(chip, &subject->partition, &options, NULL, &subject->net.log, &program))
        fail_msg("%s", subject->net.log.last_error);
    assert_true(mica_program_valid(program));
    return program;
}

static const struct mica_chip *const chips[] = {&test_rk3588, &test_rk3566};

/* ---- tests ------------------------------------------------------------------------ */

static void one_core_takes_one_submission(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    for (unsigned i = 0; i < 2; i++) {
        struct mica_program *program = compile(&subject, chips[i], 0);
        assert_int_equal(program->submit_count, 1);
        assert_int_equal(program->submits[0].words, 2 * program->job_count);
        assert_true(program->job_count > 6);
        uint64_t macs = 0, expected = 0;
        for (uint32_t job = 0; job < program->job_count; job++)
            macs += program->jobs[job].macs;
        for (uint32_t op = 0; op < subject.net.graph->op_count; op++)
            expected += mica_op_macs(subject.net.graph, &subject.net.graph->ops[op]);
        assert_true(macs <= expected && macs + 100 >= expected);
        mica_program_destroy(program);
    }
    close_subject(&subject);
}

/* Link 0, amount 0, barrier, start, at a multiple of 64 bytes: the kernel starts each task by itself. */
static void every_program_ends_with_its_tail(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    for (unsigned i = 0; i < 2; i++) {
        struct mica_program *program = compile(&subject, chips[i], 0);
        uint32_t seen = 0;
        for (uint32_t r = 0; r < program->reloc_count; r++) {
            const struct mica_program_reloc *reloc = &program->relocs[r];
            if (!reloc->in_stream)
                continue;
            assert_int_equal(reloc->addend % 64, 0);
            assert_int_equal(reloc->offset % 8, 0);
            uint32_t words = program->submits[reloc->where].stream[reloc->offset / 4 + 1];
            uint64_t tail[4];
            memcpy(tail, program->buffers[reloc->target].data + reloc->addend + 8 * (uint64_t)(words - 4),
                   sizeof(tail));
            assert_true(tail[0] == 0 && tail[1] == UINT64_C(0x0101000000000014) && tail[2] == UINT64_C(0x0041) << 48);
            assert_int_equal(tail[3] >> 48, 0x81);
            assert_int_equal(tail[3] & 0xffff, 8);
            seen++;
        }
        assert_int_equal(seen, program->job_count);
        mica_program_destroy(program);
    }
    close_subject(&subject);
}

static void the_border_says_what_the_device_has(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    for (unsigned i = 0; i < 2; i++) {
        struct mica_program *program = compile(&subject, chips[i], 0);
        uint32_t atom = i ? 8 : 16;
        const struct mica_program_io *in = &program->inputs[0], *out = &program->outputs[0];
        assert_true(in->flip_sign && out->flip_sign && in->buffer != out->buffer);
        assert_true(in->layout.block == atom && out->layout.block == atom);
        assert_int_equal(in->layout.pixels * in->layout.channels, 150 * 160 * 16);
        assert_int_equal(in->layout.padding, (uint8_t)(7 - 128));
        assert_int_equal(out->layout.pixels, 1);
        assert_int_equal(out->layout.channels, 10);
        assert_int_equal(program->buffers[in->buffer].access, MICA_ACCESS_READ);
        assert_int_equal(program->buffers[out->buffer].access, MICA_ACCESS_WRITE);
        mica_program_destroy(program);
    }
    close_subject(&subject);
}

static void stages_split_one_inference(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    uint8_t *data[64] = {0}, *in = malloc(150 * 160 * 16), one[10], split[10];
    struct random random = {4};
    assert_non_null(in);
    random_bytes(&random, in, 150 * 160 * 16);
    data[subject.in] = in;
    data[subject.out] = one;
    struct mica_program *program = compile(&subject, &test_rk3588, 1);
    board_run(&test_rk3588, program, data, false);
    mica_program_destroy(program);
    for (uint32_t cores = 2; cores <= 5; cores++) {
        program = compile(&subject, &test_rk3588, cores);
        uint32_t together = 0, stage = 0;
        for (uint32_t i = 0; i < program->submit_count; i++) {
            const struct mica_program_submit *submit = &program->submits[i];
            assert_true(submit->core < 3 && submit->core < cores && submit->stage >= stage);
            together += i > 0 && submit->stage == stage;
            stage = submit->stage;
        }
        assert_true(together >= 2);
        data[subject.out] = split;
        board_run(&test_rk3588, program, data, cores % 2);
        assert_memory_equal(one, split, sizeof(one));
        mica_program_destroy(program);
    }
    free(in);
    close_subject(&subject);
}

/* Bytes and layers as a plane: no two storages may share a point of it. */
static void storages_never_meet(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    for (unsigned n = 0; n < 2; n++) {
        struct rk_plan plan;
        assert_int_equal(rk_plan_init(&plan, chips[n], &subject.partition, NULL, NULL, NULL), 0);
        assert_int_equal(rk_lower(&plan), 0);
        assert_int_equal(rk_memory_place(&plan), 0);
        uint64_t largest = 0;
        for (uint32_t i = 0; i < plan.storage_count; i++) {
            const struct rk_storage *a = &plan.storages[i];
            if (a->parent != RK_NONE || a->first == RK_NONE || a->buffer != RK_BUFFER_SCRATCH)
                continue;
            assert_true(a->offset % 64 == 0 && a->offset + a->size <= plan.scratch_bytes);
            for (uint32_t k = 0; k < i; k++) {
                const struct rk_storage *b = &plan.storages[k];
                if (b->parent != RK_NONE || b->first == RK_NONE || b->buffer != RK_BUFFER_SCRATCH)
                    continue;
                bool together = a->first <= b->last && b->first <= a->last;
                assert_true(!together || a->offset + a->size <= b->offset || b->offset + b->size <= a->offset);
                if (together && a->size + b->size > largest)
                    largest = a->size + b->size;
            }
        }
        assert_true(plan.scratch_bytes >= largest &&
                    plan.scratch_bytes <= largest + 64); /* a chain needs two at a time */
        rk_plan_finish(&plan);
    }
    close_subject(&subject);
}

/* The rows of a task and what must stay for its weights fit the buffer; row tasks that reuse weights follow. */
static void tasks_follow_only_where_weights_stay(void **state)
{
    (void)state;
    struct subject subject;
    open_subject(&subject);
    struct rk_plan plan;
    assert_int_equal(rk_plan_init(&plan, &test_rk3588, &subject.partition, NULL, NULL, NULL), 0);
    assert_int_equal(rk_lower(&plan), 0);
    uint32_t following = 0;
    for (uint32_t i = 0; i < plan.task_count; i++) {
        const struct rk_task *task = &plan.tasks[i];
        bool reuse = false;
        for (uint32_t w = 0; w < task->word_count; w++)
            if (rk_word_offset(task->words[w]) == 0x1040)
                reuse = rk_word_value(task->words[w]) >> 13 & 1;
        assert_int_equal(reuse, task->follows);
        if (task->follows)
            assert_true(i > 0 && plan.tasks[i - 1].op == task->op && plan.tasks[i - 1].layer == task->layer);
        following += task->follows;
    }
    assert_true(following >= 1);
    rk_plan_finish(&plan);
    close_subject(&subject);
}

static void an_input_can_be_an_output_too(void **state)
{
    (void)state;
    struct net net;
    net_open(&net);
    struct spec from = image(2, 3, 5);
    int32_t in = net_tensor(&net, &from, NULL), out = add_reshape(&net, in, 30);
    struct mica_partition partition;
    struct mica_program *program = NULL;
    partition_init(&partition, &net, &in, 1, &out, 1);
    uint8_t bytes[30], back[30], *data[] = {bytes, back};
    struct random random = {6};
    random_bytes(&random, bytes, sizeof(bytes));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(chips[i]->family->compile(chips[i], &partition, NULL, NULL, &net.log, &program), 0);
        assert_true(program->inputs[0].buffer != program->outputs[0].buffer);
        board_run(chips[i], program, data, false);
        assert_memory_equal(bytes, back, sizeof(bytes));
        mica_program_destroy(program);
    }
    partition_finish(&partition);
    net_close(&net);
}

/* One convolution whose channels' scales are so far apart that it is computed once for each of several classes. */
static void open_classes(struct subject *subject)
{
    static float scales[24];
    struct net *net = &subject->net;
    net_open(net);
    struct spec image = {.type = MICA_TYPE_INT8, .scale = 0.05f, .rank = 4, .dims = {1, 12, 10, 24}};
    struct spec weights = {.type = MICA_TYPE_INT8, .rank = 4, .dims = {24, 3, 3, 24}, .scales = scales};
    for (int i = 0; i < 24; i++)
        scales[i] = i % 3 == 0 ? 0.1f : i % 3 == 1 ? 1e-4f : 1e-6f;
    weights.scale = scales[0];
    struct mica_op op = {.kind = MICA_OP_CONV_2D};
    op.window = (struct mica_window){3, 3, 1, 1, 1, 1, {1, 1, 1, 1}, MICA_ACT_RELU_N1_TO_1, 0};
    int32_t in = net_tensor(net, &image, NULL), inputs[] = {in, net_tensor(net, &weights, some_weights())};
    subject->in = in;
    subject->out = net_tensor(net, &image, NULL);
    net_op(net, op, "CONV_2D", inputs, 2, subject->out);
    partition_init(&subject->partition, net, &subject->in, 1, &subject->out, 1);
    for (unsigned i = 0; i < 2; i++) { /* a maximum and a clamp at the least, besides two convolutions */
        struct mica_program *program = compile(subject, chips[i], 0);
        assert_true(program->job_count >= 4);
        mica_program_destroy(program);
    }
}

static void check_failing_memory(void (*open)(struct subject *), long least)
{
    struct subject subject;
    open(&subject);
    for (unsigned i = 0; i < 2; i++) {
        long needed = 0;
        for (int error = -1; error; needed++) {
            struct mica_program *program = NULL;
            struct mica_compile_options options = {.split = needed % 2 ? 3 : 0};
            allocations_left = needed;
            error = chips[i]->family->compile(chips[i], &subject.partition, &options, NULL, &subject.net.log, &program);
            allocations_left = -1;
            if (needed > 5000)
                fail_msg("%d: %s", error, subject.net.log.last_error);
            if (error && error != -ENOMEM)
                fail_msg("allocation %ld: %d, %s", needed, error, subject.net.log.last_error);
            assert_true(error == 0 || !program);
            mica_program_destroy(program);
        }
        assert_true(needed > least);
    }
    close_subject(&subject);
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    check_failing_memory(open_subject, 50);
    check_failing_memory(open_classes, 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_core_takes_one_submission),
        cmocka_unit_test(every_program_ends_with_its_tail),
        cmocka_unit_test(the_border_says_what_the_device_has),
        cmocka_unit_test(stages_split_one_inference),
        cmocka_unit_test(storages_never_meet),
        cmocka_unit_test(tasks_follow_only_where_weights_stay),
        cmocka_unit_test(an_input_can_be_an_output_too),
        cmocka_unit_test(memory_that_runs_out_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
