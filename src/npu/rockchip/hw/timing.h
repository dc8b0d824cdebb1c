/* SPDX-License-Identifier: MIT */
/*
 * The timing model (specification, section 18): compute cycles from shapes,
 * memory cycles from bytes, the larger of the two counts. The compiler
 * chooses by it, the simulator reports it. It is the vendor's own
 * compile-time model, not a measurement.
 */
#ifndef MICA_ROCKCHIP_HW_TIMING_H
#define MICA_ROCKCHIP_HW_TIMING_H

#include <stdint.h>

#include "npu/rockchip/hw/chips.h"

/* NPU cycles of a convolution task of `pixels` outputs, `taps` kernel positions. */
uint64_t rk_direct_cycles(const struct rk_chip *chip, uint64_t pixels, uint32_t taps, uint32_t in_channels,
                          uint32_t out_channels);
uint64_t rk_depthwise_cycles(const struct rk_chip *chip, uint64_t pixels, uint32_t taps, uint32_t channels);

/* NPU cycles that `bytes` of memory traffic take at a clock. */
uint64_t rk_memory_cycles(const struct rk_chip *chip, uint64_t bytes, double mhz);

/* One task of an inference, for rk_stream_us(). */
struct rk_task_cost {
    uint64_t compute_cycles;
    uint64_t bytes;
    double dispatch_us;
};

/*
 * Microseconds until `inferences` inferences of the same `count` tasks are done on `cores` cores that
 * share the memory, each core taking the next inference when it is free. Tasks that want memory at the
 * same time share its bandwidth evenly. The sharing is an assumption: the vendor's model has one core.
 * All cores begin at once, so without differences they stay in step and want the memory at the same
 * time: the worst case. Negative when memory runs out.
 */
double rk_stream_us(const struct rk_chip *chip, double mhz, const struct rk_task_cost *tasks, uint32_t count,
                    uint32_t inferences, uint32_t cores);

/* What bounds that: so many times the throughput of one core, when the memory never rests. */
double rk_stream_cap(const struct rk_chip *chip, double mhz, const struct rk_task_cost *tasks, uint32_t count,
                     uint32_t cores);

#endif
