/* SPDX-License-Identifier: MIT */
/*
 * The simulator of the Vivante NPUs: executes command streams bit for bit as
 * the specification describes the hardware. It sees device memory, the stream
 * and the chip's parameters, nothing else. The functions have the signatures of
 * struct mica_npu_family.
 */
#ifndef MICA_VIVANTE_SIM_SIM_H
#define MICA_VIVANTE_SIM_SIM_H

#include "npu/npu.h"

int viv_sim_create(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                   struct mica_log *log, void **sim);
void viv_sim_destroy(void *sim); /* accepts NULL */

/*
 * Parts of one TP operation run beside each other on the TP cores: of such a
 * set each report gets the cycles by which its part makes the set longer, so
 * that the cycles of all reports add up to the stream's.
 */
int viv_sim_run(void *sim, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
                size_t *count);

/*
 * Reads coefficient buffers as V7 streams, whatever the chip would make of them. Mainline writes those for the S905D3,
 * whose hardware can't read them.
 */
void viv_sim_read_v7(void *sim);

/* Modelled cycles that one stream may take before it counts as hung; the default is one second of the chip's clock. */
void viv_sim_set_cycle_limit(void *sim, uint64_t cycles);

#endif
