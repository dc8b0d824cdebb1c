/* SPDX-License-Identifier: MIT */
/* The vendor's compile-time model, recovered from its tables (specification, section 18). */
#include "npu/rockchip/hw/timing.h"

#include <math.h>
#include <stdlib.h>

/* Outputs are computed in runs of so many pixels, input channels in lanes of so many. */
#define PIXEL_RUN 16u
#define INPUT_LANES 32u
/* A run of a direct convolution takes no fewer cycles a pixel: its results leave no faster. */
#define LEAST_CYCLES_A_PIXEL 4u

static uint64_t groups(uint64_t count, uint32_t of)
{
    return count / of + (count % of != 0);
}

static uint64_t padded_pixels(uint64_t pixels)
{
    return groups(pixels, PIXEL_RUN) * PIXEL_RUN;
}

uint64_t rk_direct_cycles(const struct rk_chip *chip, uint64_t pixels, uint32_t taps, uint32_t in_channels,
                          uint32_t out_channels)
{
    uint64_t cycles = taps * groups(in_channels, INPUT_LANES);
    if (cycles < LEAST_CYCLES_A_PIXEL)
        cycles = LEAST_CYCLES_A_PIXEL;
    return padded_pixels(pixels) * cycles * groups(out_channels, chip->kernel_group);
}

uint64_t rk_depthwise_cycles(const struct rk_chip *chip, uint64_t pixels, uint32_t taps, uint32_t channels)
{
    return padded_pixels(pixels) * taps * groups(channels, chip->depthwise_group);
}

uint64_t rk_memory_cycles(const struct rk_chip *chip, uint64_t bytes, double mhz)
{
    return (uint64_t)ceil((double)bytes / chip->bytes_per_ns * (mhz / 1000.0));
}

/* ---- cores that share the memory --------------------------------------------- */

/* What a core has left to do of its task. A task first waits for its dispatch, then computes and moves at once. */
struct core {
    uint32_t task; /* of the inference it is at */
    double dispatch_us, compute_us, bytes;
};

struct stream {
    const struct rk_task_cost *tasks;
    uint32_t count;
    double mhz;
    uint32_t waiting; /* inferences that no core has begun */
    struct core *cores;
    uint32_t core_count;
};

static bool is_idle(const struct stream *stream, const struct core *core)
{
    return core->task >= stream->count;
}

static bool is_moving(const struct stream *stream, const struct core *core)
{
    return !is_idle(stream, core) && core->dispatch_us <= 0 && core->bytes > 0;
}

static void begin_task(struct stream *stream, struct core *core)
{
    const struct rk_task_cost *cost = &stream->tasks[core->task];
    core->dispatch_us = cost->dispatch_us;
    core->compute_us = (double)cost->compute_cycles / stream->mhz;
    core->bytes = (double)cost->bytes;
}

/* On to the next task, or inference; tasks that cost nothing pass at once. */
static void advance(struct stream *stream, struct core *core)
{
    for (;;) {
        if (is_idle(stream, core)) {
            if (stream->waiting == 0)
                return;
            stream->waiting--;
            core->task = 0;
        } else {
            core->task++;
        }
        if (is_idle(stream, core))
            continue;
        begin_task(stream, core);
        if (core->dispatch_us > 0 || core->compute_us > 0 || core->bytes > 0)
            return;
    }
}

/* Bytes a microsecond that every core that moves any gets. */
static double share(const struct stream *stream, double bytes_per_us)
{
    uint32_t moving = 0;
    for (uint32_t i = 0; i < stream->core_count; i++)
        moving += is_moving(stream, &stream->cores[i]);
    return moving > 0 ? bytes_per_us / moving : bytes_per_us;
}

/* Microseconds until a core's dispatch, computing or moving ends, whichever is first. */
static double until_event(const struct core *core, double rate)
{
    if (core->dispatch_us > 0)
        return core->dispatch_us;
    if (core->bytes > 0 && core->compute_us > 0)
        return fmin(core->bytes / rate, core->compute_us);
    return core->bytes > 0 ? core->bytes / rate : core->compute_us;
}

/* `rest` less `step`; what ends at this event ends exactly, whatever was rounded. */
static double lessened(double rest, double amount)
{
    double left = rest - amount;
    return left > rest * 1e-12 ? left : 0;
}

static void let_pass(struct core *core, double us, double rate)
{
    if (core->dispatch_us > 0) {
        core->dispatch_us = lessened(core->dispatch_us, us);
        return;
    }
    core->compute_us = core->compute_us > 0 ? lessened(core->compute_us, us) : 0;
    core->bytes = core->bytes > 0 ? lessened(core->bytes, us * rate) : 0;
}

/* To the next event; its distance, 0: no core has anything to do. */
static double step(struct stream *stream, double bytes_per_us)
{
    double rate = share(stream, bytes_per_us), next = INFINITY;
    for (uint32_t i = 0; i < stream->core_count; i++)
        if (!is_idle(stream, &stream->cores[i]))
            next = fmin(next, until_event(&stream->cores[i], rate));
    if (!isfinite(next))
        return 0;
    for (uint32_t i = 0; i < stream->core_count; i++) {
        struct core *core = &stream->cores[i];
        if (is_idle(stream, core))
            continue;
        let_pass(core, next, rate);
        if (core->dispatch_us <= 0 && core->compute_us <= 0 && core->bytes <= 0)
            advance(stream, core);
    }
    return next;
}

double rk_stream_us(const struct rk_chip *chip, double mhz, const struct rk_task_cost *tasks, uint32_t count,
                    uint32_t inferences, uint32_t cores)
{
    if (count == 0 || cores == 0)
        return 0;
    /* Cores beyond the inferences never begin. */
    uint32_t used = cores < inferences ? cores : inferences;
    struct core *state = calloc(used > 0 ? used : 1, sizeof(*state));
    if (state == NULL)
        return -1;
    struct stream stream = {tasks, count, mhz, inferences, state, used};
    for (uint32_t i = 0; i < used; i++) {
        state[i].task = count;
        advance(&stream, &state[i]);
    }
    double now = 0, passed;
    while ((passed = step(&stream, chip->bytes_per_ns * 1000.0)) > 0)
        now += passed;
    free(state);
    return now;
}

double rk_stream_cap(const struct rk_chip *chip, double mhz, const struct rk_task_cost *tasks, uint32_t count,
                     uint32_t cores)
{
    double alone_us = 0, moving_us = 0;
    for (uint32_t i = 0; i < count; i++) {
        double move = (double)tasks[i].bytes / (chip->bytes_per_ns * 1000.0);
        alone_us += tasks[i].dispatch_us + fmax((double)tasks[i].compute_cycles / mhz, move);
        moving_us += move;
    }
    return moving_us * cores > alone_us ? alone_us / moving_us : cores;
}
