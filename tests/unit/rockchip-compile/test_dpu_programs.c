/* SPDX-License-Identifier: MIT */
/* Tasks of the DPU alone are the vendor's programs for the same numbers, register by register. */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/dpu_task.h"

#define MAX_WORDS 1200

struct program {
    unsigned count;
    struct {
        unsigned target, offset, value;
    } words[MAX_WORDS];
};

/* Register writes of program.csv from line `first` on, at most `count`. */
static bool read_program(const char *name, unsigned first, unsigned count, struct program *program)
{
    char path[512], line[256];
    snprintf(path, sizeof(path), "%s/spec/rockchip/vectors/%s/program.csv", MICA_SHARED_DIR, name);
    FILE *file = fopen(path, "r");
    program->count = 0;
    while (file && fgets(line, sizeof(line), file)) {
        unsigned index, target, offset, value;
        if (sscanf(line, "%u,%x,%x,%x", &index, &target, &offset, &value) != 4 || index < first ||
            index >= first + count)
            continue;
        program->words[program->count].target = target;
        program->words[program->count].offset = offset;
        program->words[program->count++].value = value;
    }
    if (file)
        fclose(file);
    return file != NULL;
}

static bool differs_by_design(unsigned offset, const unsigned *allowed)
{
    for (; *allowed; allowed++)
        if (*allowed == offset)
            return true;
    return false;
}

static void compare(const struct program *program, const struct rk_dpu_task *task, uint32_t w, uint32_t h, uint32_t c,
                    const unsigned *allowed)
{
    struct rk_registers *registers = calloc(1, sizeof(*registers));
    const struct rk_order *order = rk_program_order(RK_GENERATION_RK3588, RK_PROGRAM_ELEMENTWISE);
    assert_non_null(registers);
    assert_true(rk_dpu_registers(registers, &rk_chip_rk3588, task, w, h, c));
    assert_int_equal(program->count, order->count);
    for (unsigned i = 0; i < order->count; i++) {
        unsigned offset = program->words[i].offset, value = registers->word[offset / 4];
        assert_int_equal(offset, order->offsets[i]);
        if (!differs_by_design(offset, allowed) && value != program->words[i].value)
            fail_msg("register 0x%04x: 0x%08x instead of 0x%08x", offset, value, program->words[i].value);
    }
    free(registers);
}

static const unsigned nothing[] = {0};
static struct program program;

static struct rk_dpu_task task_of(struct rk_dpu_stages stages, uint64_t plane)
{
    struct rk_cube cube = {.surface = plane, .shape = {24, 20, 32}};
    return (struct rk_dpu_task){.a = cube, .b = cube, .out = cube, .stages = stages};
}

static void two_operands_are_the_vendors(void **state)
{
    (void)state;
    struct rk_dpu_stages add = {.a_offset = 1,
                                .a_scale = rk_scale_of(0x7f00 / 2.0),
                                .b_scale = {0x4000, 0},
                                .out_scale = rk_scale_of(0x4040 / (double)(1 << 29)),
                                .combine = RK_DPU_ALU_ADD};
    struct rk_dpu_stages mul = {.a_offset = 1,
                                .b_scale = {1, 0},
                                .out_scale = rk_scale_of(0x4111 / (double)(1 << 21)),
                                .out_offset = -1,
                                .combine = RK_DPU_MULTIPLY};
    struct rk_dpu_stages sub = {.b_offset = 1,
                                .a_scale = {0x4000, 0},
                                .b_scale = {-0x7f00, 1},
                                .out_scale = rk_scale_of(0x402e / (double)(1 << 29)),
                                .combine = RK_DPU_ALU_ADD};
    if (!read_program("add2", 0, 69, &program))
        skip();
    struct rk_dpu_task task = task_of(add, 0x1e00);
    compare(&program, &task, 24, 20, 32, nothing);
    assert_true(read_program("mul2", 0, 69, &program));
    task = task_of(mul, 0x1e00);
    compare(&program, &task, 24, 20, 32, nothing);
    assert_true(read_program("sub2", 0, 69, &program));
    task = task_of(sub, 0x1e00);
    compare(&program, &task, 24, 20, 32, nothing);
}

/* The index of our tables is another function of the value, and so is what comes out of them. */
static void tables_are_used_as_the_vendor_does(void **state)
{
    (void)state;
    static const unsigned own[] = {0x4010, 0x4064, 0x4068, 0x4084, 0x4088, 0};
    struct rk_dpu_stages load = rk_dpu_copy(), use = rk_dpu_copy();
    if (!read_program("lut-tanh", 0, 69, &program))
        skip();
    struct rk_dpu_task task = task_of(load, 16);
    compare(&program, &task, 1, 1, 16, nothing);
    assert_true(read_program("lut-tanh", 1101, 69, &program));
    use.table = true;
    task = task_of(use, 0x1e00);
    compare(&program, &task, 24, 20, 32, own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_operands_are_the_vendors),
        cmocka_unit_test(tables_are_used_as_the_vendor_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
