/* SPDX-License-Identifier: MIT */
/*
 * The whole simulator of the Rockchip chip that the first byte selects. The
 * input changes sound register programs: a task begins with a byte that says
 * what it does, then come changes of 5 bytes, a byte that picks a register of
 * the kind's whole program and 4 that its value is XORed with, until a byte
 * ends the task. A last task is of raw words.
 */
#include <stdlib.h>
#include <string.h>

#include "programs.h"

#define CYCLES 200000u /* what a job may take by the timing model */
#define CHANGE 5u
#define END 0xffu /* in place of a register */
#define CHIPS 2u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bench benches[CHIPS];
static const struct mica_chip *const chips[CHIPS] = {&bench_rk3588, &bench_rk3566};

static void open_benches(void)
{
    for (unsigned i = 0; i < CHIPS; i++) {
        struct random random = {i};
        bench_open(&benches[i], chips[i], NULL);
        fill_rooms(&benches[i], &random);
        rk_sim_set_cycle_limit(benches[i].sim, CYCLES);
    }
}

static void make(struct task *task, const struct mica_chip *chip, uint8_t kind)
{
    struct shape shape = small_shape;
    shape.depthwise = kind & 4;
    shape.channels = shape.depthwise ? shape.out_channels : 16;
    if (kind % 4 == 2)
        make_elementwise(task, chip, &shape);
    else if (kind % 4 == 3)
        make_pool(task, chip, &shape);
    else
        make_convolution(task, chip, &shape);
}

/* Appends the task that the input begins with; how many bytes it took. */
static size_t add_task(struct vector_program *program, const struct mica_chip *chip, const uint8_t *data, size_t size)
{
    struct task task;
    size_t used = 1;
    make(&task, chip, data[0]);
    const struct rk_order *order = rk_program_order(((const struct rk_chip *)chip->parameters)->generation, task.kind);
    for (; size - used >= CHANGE && data[used] != END; used += CHANGE) {
        uint32_t value;
        memcpy(&value, data + used + 1, sizeof value);
        if (data[used] < order->count)
            task.registers.word[order->offsets[data[used]] / 4] ^= value;
        else
            task.start ^= value;
    }
    append_task(program, &task);
    return used < size && data[used] == END ? used + 1 : used;
}

static void add_words(struct vector_program *program, const uint8_t *data, size_t size)
{
    uint32_t count = (uint32_t)(size / sizeof(uint64_t));
    if (count == 0)
        return;
    count = count < MAX_WORDS - program->count ? count : MAX_WORDS - program->count;
    memcpy(program->words + program->count, data, count * sizeof(uint64_t));
    program->first[program->task_count] = program->count;
    program->length[program->task_count++] = count;
    program->count += count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vector_program program;
    if (!benches[0].sim)
        open_benches();
    if (size < 2)
        return 0;
    unsigned chip = *data % CHIPS;
    memset(&program, 0, sizeof program);
    data++, size--;
    while (size > 0 && program.task_count < MAX_TASKS - 1) {
        size_t used = add_task(&program, chips[chip], data, size);
        data += used, size -= used;
    }
    add_words(&program, data, size);
    vector_run(&benches[chip], &program, VECTOR_PROGRAM, NULL);
    return 0;
}
