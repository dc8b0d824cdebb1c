/* SPDX-License-Identifier: MIT */
/* A simulated NPU on a bench: memory, simulator, and the last message; and register programs to give it. */
#ifndef TESTS_ROCKCHIP_SIM_SUPPORT_H
#define TESTS_ROCKCHIP_SIM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "npu/npu.h"
#include "npu/rockchip/sim/internal.h"
#include "npu/rockchip/sim/sim.h"

#define SKIP 77 /* meson's exit code for a test that can't run here */

struct bench {
    struct mica_device_memory memory;
    struct mica_log log;
    struct rk_sim *sim;
};

extern const struct mica_chip bench_rk3588, bench_rk3566;

void bench_open(struct bench *bench, const struct mica_chip *chip, struct mica_threads *threads);
void bench_close(struct bench *bench);

/* Maps zeroed memory that the device may use, and gives the host's view. */
uint8_t *bench_map(struct bench *bench, uint64_t address, uint64_t size, unsigned access);
uint8_t *bench_at(struct bench *bench, uint64_t address);

/* ---- register programs -------------------------------------------------------- */

#define MAX_WORDS 2048u
#define MAX_TASKS 4u

/* A vector folder's program: words as the vendor has them, cut into tasks. */
struct vector_program {
    uint64_t words[MAX_WORDS];
    uint32_t count, task_count;
    uint32_t first[MAX_TASKS], length[MAX_TASKS];
};

/* Reads `folder`/program.csv; tasks end behind their start words. False: not there. */
bool vector_read(const char *folder, struct vector_program *program);

/* Sets the value of every word of task `task` that writes the register at `offset`. */
void vector_set(struct vector_program *program, uint32_t task, uint16_t offset, uint32_t value);
/* Adds to them. */
void vector_add(struct vector_program *program, uint32_t task, uint16_t offset, uint32_t value);
/* The value of the first of them, 0: none. */
uint32_t vector_get(const struct vector_program *program, uint32_t task, uint16_t offset);

/* Puts the program into memory at `address` (the tasks 64-byte aligned) and runs it as one stream. */
int vector_run(struct bench *bench, const struct vector_program *program, uint32_t address,
               struct mica_job_report *reports);

/* ---- vectors, whole ------------------------------------------------------------- */

/* Where everything of a vector is put. */
#define VECTOR_PROGRAM 0x00100000u
#define VECTOR_INPUT 0x01000000u
#define VECTOR_OPERAND 0x02000000u
#define VECTOR_WEIGHTS 0x03000000u
#define VECTOR_COEFFICIENTS 0x04000000u
#define VECTOR_OUTPUT 0x05000000u
#define VECTOR_SCRATCH 0x06000000u
#define VECTOR_ROOM 0x00200000u

/* Maps the rooms, loads a folder's blobs and its program, relocated. False: not there. */
bool vector_load(struct bench *bench, const char *folder, struct vector_program *program);

/* A small fixed generator, so that failures repeat. */
struct random {
    uint64_t state;
};
uint32_t random_word(struct random *random);
uint32_t random_below(struct random *random, uint32_t bound);

/* A file's bytes with a zero behind them (free() them), NULL if it can't be read. */
uint8_t *read_whole_file(const char *path, size_t *size);

#endif
