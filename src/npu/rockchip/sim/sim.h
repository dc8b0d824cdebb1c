/* SPDX-License-Identifier: MIT */
/*
 * The simulator of the Rockchip NPUs: runs the tasks of a rocket job bit for
 * bit as the specification describes the hardware. It sees device memory, the
 * tasks and the chip's parameters, nothing else. The functions have the
 * signatures of struct mica_npu_family.
 */
#ifndef MICA_ROCKCHIP_SIM_SIM_H
#define MICA_ROCKCHIP_SIM_SIM_H

#include "npu/npu.h"

int rk_sim_create(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                  struct mica_log *log, void **sim);
void rk_sim_destroy(void *sim); /* accepts NULL */
int rk_sim_set_clock(void *sim, double mhz);

/*
 * The stream is the array of tasks: address of a register program, its count of 64-bit words. Registers, look-up
 * tables and what is on the chip last from one task to the next, not from one stream to the next: a kernel may run
 * anything in between.
 */
int rk_sim_run(void *sim, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
               size_t *count);

/* Modelled cycles that one stream may take before it counts as hung; the default is the kernel's half a second. */
void rk_sim_set_cycle_limit(void *sim, uint64_t cycles);

#endif
