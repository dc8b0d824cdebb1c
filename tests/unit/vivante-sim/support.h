/* SPDX-License-Identifier: MIT */
/* A simulated NPU on a bench: memory, simulator, and the last message. */
#ifndef TESTS_VIVANTE_SIM_SUPPORT_H
#define TESTS_VIVANTE_SIM_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "npu/npu.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/sim/internal.h"
#include "npu/vivante/sim/sim.h"

#define SKIP 77 /* meson's exit code for a test that can't run here */

struct bench {
    struct mica_device_memory memory;
    struct mica_log log;
    struct viv_sim *sim;
};

/* The chips as the family hands them out, with nothing but a simulator behind. The plain one is the A311D. */
#define BENCH_CHIPS 3
extern const struct mica_chip bench_chip, bench_imx8mp, bench_s905d3;
extern const struct mica_chip *const bench_chips[BENCH_CHIPS];

void bench_open(struct bench *bench, struct mica_threads *threads); /* an A311D */
void bench_open_chip(struct bench *bench, const struct mica_chip *chip, struct mica_threads *threads);
void bench_close(struct bench *bench);

/* Maps zeroed memory that the device may use, and gives the host's view. */
uint8_t *bench_map(struct bench *bench, uint64_t address, uint64_t size, unsigned access);
uint8_t *bench_at(struct bench *bench, uint64_t address);

/* Starts one job with the descriptor at `address`. */
int bench_run_nn(struct bench *bench, uint32_t address, struct mica_job_report *report);
int bench_run_tp(struct bench *bench, uint32_t address, struct mica_job_report *report);

/* A small fixed generator, so that failures repeat. */
struct random {
    uint64_t state;
};
uint32_t random_word(struct random *random);
uint32_t random_below(struct random *random, uint32_t bound);

/* A file's bytes with a zero behind them (free() them), NULL if it can't be read. */
uint8_t *read_whole_file(const char *path, size_t *size);

#endif
