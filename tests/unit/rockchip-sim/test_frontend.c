/* SPDX-License-Identifier: MIT */
/* Programs, words, register groups, tables and reports: what the front end does with a stream. */
#include <errno.h>
#include <string.h>

#include "programs.h"

#define CODE VECTOR_PROGRAM

static void open_with_rooms(struct bench *bench, const struct mica_chip *chip)
{
    struct random random = {12};
    bench_open(bench, chip, NULL);
    fill_rooms(bench, &random);
}

static int run_words(struct bench *bench, const uint64_t *words, uint32_t count)
{
    uint32_t stream[2] = {CODE, count};
    size_t jobs;
    memcpy(bench_at(bench, CODE), words, 8 * (size_t)count);
    return rk_sim_run(bench->sim, stream, 2, NULL, 0, &jobs);
}

static void expect(struct bench *bench, int result, int error, const char *message)
{
    if (result != error || !strstr(bench->log.last_error, message))
        fail_msg("%d (%s), not %d (%s)", result, bench->log.last_error, error, message);
}

static void bad_words(void **state)
{
    const struct {
        uint64_t words[3];
        uint32_t count;
        const char *message;
    } cases[] = {
        {{0}, 1, "starts nothing: the task would hang"},
        {{UINT64_C(0x1001000000004020), RK_WORD_BARRIER}, 2, "starts nothing: the task would hang"},
        {{UINT64_C(0x1002000000004020)}, 1, "no block has this target"},
        {{UINT64_C(0x0000000000004020)}, 1, "no block has this target"},
        {{UINT64_C(0x0041000000010000)}, 1, "no block has this target"},
        {{UINT64_C(0x2001000000004020)}, 1, "isn't one of the target's block"},
        {{UINT64_C(0x1001000000004021)}, 1, "isn't one of the target's block"},
        {{UINT64_C(0x100100000000ffff)}, 1, "isn't one of the target's block"},
        {{UINT64_C(0x0401000000002004)}, 1, "this chip has no such register"},
        {{rk_word(0x1001, 0x4014, 0x10000)}, 1, "reserved bits are set"},
        {{UINT64_C(0x1001000000004028)}, 1, "this chip has no such register"},
        {{UINT64_C(0x1001000000010000 | 0x4008)}, 1, "status and enable"},
        {{UINT64_C(0x1001000000004000)}, 1, "status and enable"},
        {{UINT64_C(0x02010000000e1004)}, 1, "the kernel writes this pointer"},
        {{UINT64_C(0x08010000000e3004)}, 1, "the kernel writes this pointer"},
        {{UINT64_C(0x0101000000000020)}, 1, "PC's link registers alone"},
        {{UINT64_C(0x0101000000000008)}, 1, "PC's link registers alone"},
        {{RK_WORD_BARRIER, UINT64_C(0x0081000000180000)}, 2, "a start has offset 8"},
        {{UINT64_C(0x0081000000180008)}, 1, "a start without a barrier"},
        {{RK_WORD_BARRIER, UINT64_C(0x1001000000004020), UINT64_C(0x0081000000180008)}, 3, "a start without a barrier"},
        {{RK_WORD_BARRIER, UINT64_C(0x0081000000000008)}, 2, "can't work together"},
        {{RK_WORD_BARRIER, UINT64_C(0x0081000000080008)}, 2, "can't work together"},
        {{RK_WORD_BARRIER, UINT64_C(0x00810000001f0008)}, 2, "can't work together"},
        {{RK_WORD_BARRIER, UINT64_C(0x0081000000780008)}, 2, "can't work together"},
        {{rk_word(0x1001, 0x4100, 0x20400)}, 1, "reserved bits are set"},
        {{rk_word(0x1001, 0x4100, 0x20201)}, 1, "513 entries"},
    };
    struct bench bench;
    open_with_rooms(&bench, &bench_rk3588);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(&bench, run_words(&bench, cases[i].words, cases[i].count), -EIO, cases[i].message);
    bench_close(&bench);
}

static void bad_streams(void **state)
{
    struct bench bench;
    size_t count;
    uint32_t stream[4] = {CODE, 0, CODE, 4};
    open_with_rooms(&bench, &bench_rk3588);
    expect(&bench, rk_sim_run(bench.sim, stream, 1, NULL, 0, &count), -EIO, "a task has two");
    expect(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &count), -EIO, "PC.REGISTER_AMOUNTS");
    stream[1] = 0x20001;
    expect(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &count), -EIO, "PC.REGISTER_AMOUNTS");
    stream[0] = CODE + 8;
    stream[1] = 4;
    expect(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &count), -EIO, "multiple of 16");
    stream[0] = VECTOR_OUTPUT;
    expect(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &count), -EFAULT, "register program");
    stream[0] = 0xfffffff0;
    expect(&bench, rk_sim_run(bench.sim, stream, 2, NULL, 0, &count), -EFAULT, "register program");
    assert_int_equal(rk_sim_run(bench.sim, stream, 0, NULL, 0, &count), 0);
    assert_int_equal(count, 0);
    bench_close(&bench);
}

static void nothing_follows_the_start(void **state)
{
    static struct vector_program program;
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    make_pool(&task, &bench_rk3588, &small_shape);
    memset(&program, 0, sizeof program);
    append_task(&program, &task);
    assert_int_equal(run_words(&bench, program.words, program.count + 1), 0); /* a no-op may */
    program.words[program.count] = RK_WORD_BARRIER;
    expect(&bench, run_words(&bench, program.words, program.count + 1), -EIO, "nothing can follow");
    bench_close(&bench);
}

/* The pooling unit alone: works, and says what mainline makes of it, once. */
static void note(void *user, enum mica_log_level level, const char *message)
{
    unsigned *count = user;
    *count += level == MICA_LOG_WARNING && strstr(message, "mainline") != NULL;
}

static void pooling_is_noted(void **state)
{
    struct bench bench;
    struct task task;
    unsigned count = 0;
    open_with_rooms(&bench, &bench_rk3588);
    bench.log = (struct mica_log){.sink = note, .user = &count, .level = MICA_LOG_WARNING};
    make_pool(&task, &bench_rk3588, &small_shape);
    assert_int_equal(run_task(&bench, &task, NULL), 0);
    assert_int_equal(run_task(&bench, &task, NULL), 0);
    assert_int_equal(count, 1);
    bench_close(&bench);
}

/* ---- register groups ------------------------------------------------------------- */

/* Keeps of a task's words only those that are named, and the tail. */
static void keep(struct vector_program *program, uint32_t task, const uint16_t *offsets, size_t count)
{
    uint64_t *words = program->words + program->first[task];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < program->length[task]; i++) {
        bool named = rk_block_of_target(rk_word_target(words[i])) == RK_BLOCK_COUNT;
        for (size_t j = 0; j < count; j++)
            named |= rk_word_offset(words[i]) == offsets[j];
        if (named)
            words[kept++] = words[i];
    }
    program->length[task] = kept;
}

/* The third task says only what is different from the first; the second differs in everything it can. */
static void groups_alternate_and_last(void **state)
{
    static const uint16_t said[] = {0x4004, 0x5004, 0x4020};
    static struct vector_program program;
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    memset(&program, 0, sizeof program);
    make_elementwise(&task, &bench_rk3588, &small_shape);
    append_task(&program, &task);
    set_field(&task, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, 0x7001);
    set_field(&task, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT + 0x10000);
    append_task(&program, &task);
    set_field(&task, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT + 0x20000);
    append_task(&program, &task);
    keep(&program, 2, said, 3);
    assert_int_equal(program.length[2], 5);
    if (vector_run(&bench, &program, CODE, NULL))
        fail_msg("%s", bench.log.last_error);
    const uint8_t *out = bench_at(&bench, VECTOR_OUTPUT);
    assert_memory_equal(out, out + 0x20000, 3 * 54 * 16);
    assert_true(memcmp(out, out + 0x10000, 3 * 54 * 16) != 0);
    /* Alone it has nothing to go by. */
    program.first[0] = program.first[2];
    program.length[0] = program.length[2];
    program.task_count = 1;
    assert_int_equal(vector_run(&bench, &program, CODE, NULL), -EIO);
    bench_close(&bench);
}

/* 0x30 goes back to group 0 and stays there. */
static void pointers_are_cleared(void **state)
{
    static const uint16_t said[] = {0x4004, 0x5004, 0x4020};
    static struct vector_program program;
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    memset(&program, 0, sizeof program);
    make_elementwise(&task, &bench_rk3588, &small_shape);
    append_task(&program, &task);
    task.registers.word[0x4004 / 4] = task.registers.word[0x5004 / 4] = 0x30;
    for (uint32_t i = 1; i < 3; i++) {
        set_field(&task, RK_DPU_DST_BASE_ADDR_DST_BASE_ADDR, VECTOR_OUTPUT + i * 0x10000);
        append_task(&program, &task);
        keep(&program, i, said, 3);
    }
    if (vector_run(&bench, &program, CODE, NULL))
        fail_msg("%s", bench.log.last_error);
    const uint8_t *out = bench_at(&bench, VECTOR_OUTPUT);
    assert_memory_equal(out, out + 0x10000, 3 * 54 * 16);
    assert_memory_equal(out, out + 0x20000, 3 * 54 * 16);
    /* Written to one group, executed from the other. */
    program.task_count = 1;
    vector_set(&program, 0, 0x4004, 0x01);
    expect(&bench, vector_run(&bench, &program, CODE, NULL), -EIO, "would execute register group 0");
    bench_close(&bench);
}

/* ---- the look-up table and the CBUF ---------------------------------------------- */

static void append_word(struct vector_program *program, uint16_t offset, uint32_t value)
{
    program->words[program->count++] = rk_word(rk_blocks[RK_DPU].target, offset, value);
    program->length[program->task_count]++;
}

/* Loads 513 entries each into the tables: e * 16 from -8192, and -e from 0; then a task with no more than a start. */
static void append_tables(struct vector_program *program, const struct task *task, uint32_t entries)
{
    program->first[program->task_count] = program->count;
    for (uint32_t id = 0; id < 2; id++) {
        append_word(program, 0x4100, 0x20000 | id << 16);
        for (uint32_t e = 0; e < entries; e++)
            append_word(program, 0x4104, (id ? (uint32_t) - (int32_t)e : e * 16 - 8192) & 0xffff);
    }
    const struct rk_order *order = rk_program_order(RK_GENERATION_RK3588, task->kind);
    for (size_t i = 0; i < order->count; i++)
        if (order->offsets[i] < 0x4100 || order->offsets[i] > 0x4104) {
            uint16_t offset = order->offsets[i];
            program->words[program->count++] =
                rk_word(rk_blocks[rk_block_at(offset)].target, offset, task->registers.word[offset / 4]);
            program->length[program->task_count]++;
        }
    program->words[program->count++] = RK_WORD_BARRIER;
    program->words[program->count++] = rk_word(RK_TARGET_START, RK_START_OFFSET, task->start);
    program->length[program->task_count++] += 2;
}

static void make_lookup(struct task *task)
{
    make_elementwise(task, &bench_rk3588, &small_shape);
    set_field(task, RK_DPU_BS_CFG_BS_BYPASS, 1);
    set_field(task, RK_DPU_BN_CFG_BN_BYPASS, 0);
    set_field(task, RK_DPU_BN_CFG_BN_MUL_BYPASS, 0);
    set_field(task, RK_DPU_BN_MUL_CFG_BN_MUL_OPERAND, 130); /* -16640 to 16510 */
    set_field(task, RK_DPU_EW_CFG_EW_LUT_BYPASS, 0);
    set_field(task, RK_DPU_EW_CFG_EW_OP_SRC, 0);
    set_field(task, RK_DPU_RDMA_RDMA_ERDMA_CFG_ERDMA_DISABLE, 1);
    set_field(task, RK_DPU_LUT_CFG_LUT_LO_LE_MUX, 2);
    set_field(task, RK_DPU_LUT_INFO_LUT_LE_INDEX_SELECT, 5);
    set_field(task, RK_DPU_LUT_INFO_LUT_LO_INDEX_SELECT, 5);
    set_field(task, RK_DPU_LUT_LE_START_LUT_LE_START, (uint32_t)-16384);
    set_field(task, RK_DPU_LUT_LO_END_LUT_LO_END, 16384);
    set_field(task, RK_DPU_LUT_LE_SLOPE_SCALE_LUT_LE_SLOPE_UFLOW_SCALE, 3);
    set_field(task, RK_DPU_LUT_LO_SLOPE_SCALE_LUT_LO_SLOPE_OFLOW_SCALE, (uint32_t)-5);
    set_field(task, RK_DPU_LUT_LO_SLOPE_SHIFT_LUT_LO_SLOPE_OFLOW_SHIFT, 1);
    set_field(task, RK_DPU_OUT_CVT_SCALE_OUT_CVT_SCALE, 1);
    set_field(task, RK_DPU_OUT_CVT_SHIFT_OUT_CVT_SHIFT, 6);
    set_field(task, RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, 0);
}

static double table_value(int index)
{
    if (index < -16384)
        return -8192 + 3 * (index + 16384);
    if (index < 0)
        return (index + 16384) / 2.0 - 8192;
    if (index <= 16384)
        return -index / 32.0;
    return -512 + ((-5 * (index - 16384)) >> 1);
}

static void tables(void **state)
{
    static struct vector_program program;
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    memset(&program, 0, sizeof program);
    make_lookup(&task);
    append_tables(&program, &task, 513);
    if (vector_run(&bench, &program, CODE, NULL))
        fail_msg("%s", bench.log.last_error);
    for (size_t i = 0; i < 3 * 54 * 16; i++) {
        if (i / (54 * 16) * 16 + i % 16 >= small_shape.out_channels)
            continue;
        int x = (int8_t)bench_at(&bench, VECTOR_INPUT)[i], y = (int8_t)bench_at(&bench, VECTOR_OUTPUT)[i];
        double exact = table_value(130 * x) / 64;
        exact = exact < -128 ? -128 : exact > 127 ? 127 : exact;
        if (y - exact > 0.51 || exact - y > 0.51)
            fail_msg("%d gives %d, not %g", x, y, exact);
    }
    memset(&program, 0, sizeof program);
    append_tables(&program, &task, 512); /* the last entry is missing */
    expect(&bench, vector_run(&bench, &program, CODE, NULL), -EIO, "loaded both tables");
    memset(&program, 0, sizeof program);
    append_tables(&program, &task, 514);
    expect(&bench, vector_run(&bench, &program, CODE, NULL), -EIO, "513 entries");
    bench_close(&bench);
}

static void unknown_table_registers(void **state)
{
    static const struct {
        enum rk_field_id field;
        uint32_t value;
    } cases[] = {
        {RK_DPU_LUT_CFG_LUT_LO_LE_MUX, 1},
        {RK_DPU_LUT_CFG_LUT_ROAD_SEL, 1},
        {RK_DPU_LUT_CFG_LUT_EXPAND_EN, 1},
        {RK_DPU_LUT_CFG_LUT_CAL_SEL, 1},
        {RK_DPU_LUT_LE_END_LUT_LE_END, 1},
        {RK_DPU_LUT_LO_START_LUT_LO_START, 1},
        {RK_DPU_LUT_INFO_LUT_LE_INDEX_SELECT, 32},
        {RK_DPU_LUT_INFO_LUT_LO_INDEX_SELECT, 255},
        {RK_DPU_EW_CFG_EW_OP_SRC, 1},
    };
    static struct vector_program program;
    struct bench bench;
    open_with_rooms(&bench, &bench_rk3588);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct task task;
        memset(&program, 0, sizeof program);
        make_lookup(&task);
        set_field(&task, cases[i].field, cases[i].value);
        append_tables(&program, &task, 513);
        assert_int_equal(vector_run(&bench, &program, CODE, NULL), -EIO);
    }
    bench_close(&bench);
}

static void reuse_of_what_is_on_chip(void **state)
{
    static const struct {
        enum rk_field_id field; /* that the second task changes */
        uint32_t value;
        int result;
    } cases[] = {
        {RK_DPU_OUT_CVT_OFFSET_OUT_CVT_OFFSET, 1, 0},
        {RK_CNA_DCOMP_ADDR0_DECOMPRESS_ADDR0, VECTOR_WEIGHTS + 16, -EIO},
    };
    static struct vector_program program;
    struct bench bench;
    struct task task;
    struct mica_job_report reports[MAX_TASKS];
    open_with_rooms(&bench, &bench_rk3588);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memset(&program, 0, sizeof program);
        make_convolution(&task, &bench_rk3588, &small_shape);
        append_task(&program, &task);
        set_field(&task, RK_CNA_CBUF_CON0_WEIGHT_REUSE, 1);
        set_field(&task, RK_CNA_CBUF_CON0_DATA_REUSE, 1);
        set_field(&task, cases[i].field, cases[i].value);
        append_task(&program, &task);
        assert_int_equal(vector_run(&bench, &program, CODE, reports), cases[i].result);
        if (cases[i].result)
            continue;
        assert_int_equal(reports[0].read_bytes - reports[1].read_bytes, 9 * 6 * 16 + 40 * 9 * 16);
        assert_int_equal(reports[0].coefficient_bytes, 40 * 9 * 16 + 40 * 8);
        assert_int_equal(reports[1].coefficient_bytes, 40 * 8);
    }
    bench_close(&bench);
}

/* ---- reports and limits ----------------------------------------------------------- */

static void reports_follow_the_model(void **state)
{
    static struct vector_program program;
    struct mica_job_report reports[MAX_TASKS];
    struct bench bench;
    struct task task;
    open_with_rooms(&bench, &bench_rk3588);
    assert_int_equal(rk_sim_set_clock(bench.sim, 1000), 0);
    memset(&program, 0, sizeof program);
    make_convolution(&task, &bench_rk3588, &small_shape);
    append_task(&program, &task);
    make_elementwise(&task, &bench_rk3588, &small_shape);
    append_task(&program, &task);
    assert_int_equal(vector_run(&bench, &program, CODE, reports), 0);
    const struct rk_chip *chip = bench_rk3588.parameters;
    assert_int_equal(reports[0].compute_cycles, 64 * 9 * 2); /* 54 pixels, 9 taps, two groups of 32 kernels */
    assert_int_equal(reports[0].write_bytes, 54 * 48);
    uint64_t bytes = reports[0].read_bytes + reports[0].write_bytes;
    assert_int_equal(reports[0].memory_cycles, rk_memory_cycles(chip, bytes, 1000));
    assert_int_equal(reports[0].cycles, 64 * 9 * 2);
    assert_true(reports[0].dispatch_us == chip->job_us && reports[1].dispatch_us == chip->task_us);
    assert_int_equal(reports[1].read_bytes, 2 * 54 * 48);
    assert_int_equal(reports[1].compute_cycles, 0);
    assert_int_equal(reports[1].cycles, reports[1].memory_cycles);
    assert_int_equal(rk_sim_set_clock(bench.sim, 100), 0);
    assert_int_equal(vector_run(&bench, &program, CODE, reports), 0);
    assert_int_equal(reports[0].memory_cycles, rk_memory_cycles(chip, bytes, 100));
    assert_int_equal(rk_sim_set_clock(bench.sim, 0), -EINVAL);
    assert_int_equal(rk_sim_set_clock(bench.sim, -1), -EINVAL);
    bench_close(&bench);
}

static void long_jobs_time_out(void **state)
{
    struct bench bench;
    struct task task;
    struct mica_job_report report;
    open_with_rooms(&bench, &bench_rk3588);
    make_convolution(&task, &bench_rk3588, &small_shape);
    assert_int_equal(run_task(&bench, &task, &report), 0);
    uint64_t dispatch = (uint64_t)(report.dispatch_us * ((const struct rk_chip *)bench_rk3588.parameters)->clock_mhz);
    rk_sim_set_cycle_limit(bench.sim, report.cycles + dispatch);
    assert_int_equal(run_task(&bench, &task, NULL), 0);
    rk_sim_set_cycle_limit(bench.sim, report.cycles + dispatch - 1);
    expect(&bench, run_task(&bench, &task, NULL), -EIO, "longer than the kernel's timeout");
    bench_close(&bench);
}

/* As many tasks as one likes: half a second is half a second. */
static void endless_jobs_time_out(void **state)
{
    enum { TASKS = 20000 };
    static uint32_t stream[2 * TASKS];
    static struct vector_program program;
    struct bench bench;
    struct task task;
    size_t count;
    open_with_rooms(&bench, &bench_rk3588);
    memset(&program, 0, sizeof program);
    make_elementwise(&task, &bench_rk3588, &small_shape);
    append_task(&program, &task);
    memcpy(bench_at(&bench, CODE), program.words, 8 * (size_t)program.count);
    for (size_t i = 0; i < TASKS; i++) {
        stream[2 * i] = CODE;
        stream[2 * i + 1] = program.count;
    }
    expect(&bench, rk_sim_run(bench.sim, stream, 2 * TASKS, NULL, 0, &count), -EIO, "kernel's timeout");
    assert_in_range(count, 10000, 500000 / 44);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_words),
        cmocka_unit_test(bad_streams),
        cmocka_unit_test(nothing_follows_the_start),
        cmocka_unit_test(pooling_is_noted),
        cmocka_unit_test(groups_alternate_and_last),
        cmocka_unit_test(pointers_are_cleared),
        cmocka_unit_test(tables),
        cmocka_unit_test(unknown_table_registers),
        cmocka_unit_test(reuse_of_what_is_on_chip),
        cmocka_unit_test(reports_follow_the_model),
        cmocka_unit_test(long_jobs_time_out),
        cmocka_unit_test(endless_jobs_time_out),
    };
    return cmocka_run_group_tests_name("front end", tests, NULL, NULL);
}
